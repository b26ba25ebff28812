package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

// maxRequestBytes bounds requests, bodies and worlds.
const maxRequestBytes = 64 << 20

func explainCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say how a plan routes a request, or what the code of a finding means",
		UsageText: "shunt explain --plan plan.json --request request.json [OPTION]...\nshunt explain --plan plan.json --body chat.json [OPTION]...\nshunt explain CODE",
		Description: "Decides one request with the code that shuntd runs, and prints every bucket in try order and why it was\n" +
			"skipped, the candidates, what the policy compared, what admission said, and the pick. - is standard input.\n\n" +
			"A request is {\"model\" (if the plan has several), \"input_tokens\" or \"token_ids\", \"max_output_tokens\" or\n" +
			"\"expected_peak_tokens\", \"session_key\", \"routing_key\", \"ttft_target_ms\", \"tps_target\"}; a body is what a\n" +
			"client sends to /v1/chat/completions, tokenized by the plan's tokenizer if it has one. A world is\n\n" +
			"   {\"engines\": [{\"id\", \"model\" (if the plan has several), \"healthy\", \"inflight\",\n" +
			"                 \"dispatched_since_report\", \"loads\": [...]}],\n" +
			"    \"prefixes\": [{\"block_size\", \"blocks\": {ENGINE: N}, \"tokens\": {ENGINE: [[ID, ...]]}, \"unavailable\": WHY}],\n" +
			"    \"bindings\": [{\"bucket\", \"session_key\" or \"routing_key\", \"engine\"}], \"bindings_unavailable\"}\n\n" +
			"Engines that it does not mention are healthy and idle, have reported nothing, and hold no prefix. loads has\n" +
			"an object for each rank of the engine: \"running_requests\", \"waiting_requests\", \"age_ms\", and all or none of\n" +
			"\"used_kv_tokens\", \"kv_tokens\", \"kv_capacity_tokens\", \"max_running_requests\", \"pending_prefill_tokens\"; with\n" +
			"them \"prefill_tokens_per_second\".\n\n" +
			"Draws are made from --seed, so a tie may be decided otherwise than by the server.\n\n" +
			"Exit status: 0 an engine or pair was picked, 1 none was, 2 wrong usage, 3 the job could not be done.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "plan", Usage: "the plan `FILE`, or a configuration, which is compiled"},
			&cli.StringFlag{Name: "request", Usage: "the facts of a request, as `FILE`"},
			&cli.StringFlag{Name: "body", Usage: "the body of a chat request, as `FILE`; its length is found as shuntd does"},
			&cli.StringFlag{Name: "world", Usage: "the state of the engines, as `FILE`"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`NAME` of the form of the decision: text or json"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`N` that decides every draw; another one may decide a tie otherwise"},
			noColorFlag(),
		}, inputFlags()),
		Action: func(c *cli.Context) error {
			if c.String("plan") == "" && c.NArg() == 1 {
				return explainCode(s.out, c.Args().First())
			}
			return explainDecision(c, s)
		},
	}
}

func explainDecision(c *cli.Context, s *streams) error {
	switch {
	case c.String("plan") == "":
		return wrongUsage("explain needs --plan FILE and --request FILE or --body FILE, or one code such as SH0206")
	case c.Args().Present():
		return wrongUsage("unexpected argument %q", c.Args().First())
	case (c.String("request") == "") == (c.String("body") == ""):
		return wrongUsage("explain --plan needs one of --request FILE and --body FILE")
	case stdinUses(c, "plan", "request", "body", "world") > 1:
		return wrongUsage("only one of --plan, --request, --body and --world can be - (standard input)")
	case c.String("format") != "text" && c.String("format") != "json":
		return wrongUsage("--format %q is not text or json", c.String("format"))
	}
	document, err := planOf(c, s, []string{c.String("plan")})
	if status, ok := errors.AsType[exitStatus](err); ok && status == exitFindings {
		return exitStatus(exitFailed) // 1 says that a request was decided
	}
	if err != nil {
		return err
	}
	request, err := readRequest(c, s, document)
	if err != nil {
		return err
	}
	var world simulate.World
	if name := c.String("world"); name != "" {
		data, err := readArgument(s, name, maxRequestBytes)
		if err != nil {
			return err
		}
		if world, err = simulate.ParseWorld(data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return decide(c, s, document, request, world)
}

// stdinUses counts the options that name standard input.
func stdinUses(c *cli.Context, names ...string) int {
	n := 0
	for _, name := range names {
		if c.String(name) == "-" {
			n++
		}
	}
	return n
}

func decide(c *cli.Context, s *streams, document *plan.Document, r simulate.Request, w simulate.World) error {
	sim, err := simulate.New(&document.Body, w, c.Uint64("seed"))
	if err != nil {
		return err
	}
	defer sim.Close()
	d, err := sim.Decide(c.Context, r)
	if errors.Is(err, simulate.ErrUnknownModel) {
		fmt.Fprintf(s.err, "shunt: %v: the plan has %s\n", err, modelIDs(document))
		return exitStatus(exitFindings)
	}
	if err != nil {
		return err
	}
	if c.String("format") == "json" {
		out := json.NewEncoder(s.out)
		out.SetIndent("", "  ")
		err = out.Encode(d)
	} else {
		err = simulate.Text(s.out, d)
	}
	if err == nil && d.Error != nil {
		return exitStatus(exitFindings)
	}
	return err
}

func modelIDs(document *plan.Document) string {
	list := ""
	for i := range document.Body.Models {
		if i > 0 {
			list += ", "
		}
		list += fmt.Sprintf("%q", document.Body.Models[i].ID)
	}
	return list
}

func readRequest(c *cli.Context, s *streams, document *plan.Document) (r simulate.Request, err error) {
	name, parse := c.String("request"), simulate.ParseRequest
	if name == "" {
		name, parse = c.String("body"), func(body *plan.Body, data []byte) (simulate.Request, error) {
			return simulate.ParseBody(c.Context, body, data)
		}
	}
	data, err := readArgument(s, name, maxRequestBytes)
	if err != nil {
		return r, err
	}
	if r, err = parse(&document.Body, data); err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
