package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// conversations shows how turns follow the engine that holds their prefix.
func conversations() setup {
	prefill := []string{"--prefill-tokens-per-second", "20000", "--block-size", "64", "--events", "--replay", "--publish-loads"}
	decode := []string{"--inter-token", "2ms", "--output-tokens", "8"}
	return setup{
		example: "examples/cache-aware-pd/routing.yaml",
		engines: []engineArgs{
			{"P1", "prefill", prefill}, {"P2", "prefill", prefill}, {"P3", "prefill", prefill},
			{"D1", "decode", decode}, {"D2", "decode", decode},
		},
		// The tokenizer is named from where the example is, and the log must tell
		// how each pick went.
		adapt: func(text string) (string, error) {
			dir, err := filepath.Abs("examples/cache-aware-pd/tokenizer")
			if err != nil {
				return "", err
			}
			for _, r := range [][2]string{
				{"{path: tokenizer}", "{path: " + strconv.Quote(dir) + "}"},
				{"server: {", "server: {log: {level: debug, format: json}, "},
			} {
				if strings.Count(text, r[0]) != 1 {
					return "", fmt.Errorf("%q does not stand there once", r[0])
				}
				text = strings.Replace(text, r[0], r[1], 1)
			}
			return text, nil
		},
	}
}

// system is a long prompt that all conversations share: 6,000 tokens of the
// example's tokenizer, which has one for each byte.
func system() string { return strings.Repeat("You are a helpful clerk. ", 240) }

// conversations shows the three parts in turn.
func (s *stack) conversations(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.listening, s.stays, s.moves, s.compare} {
		if err := part(ctx); err != nil {
			return cause(ctx, err)
		}
	}
	return nil
}

// listening waits until the router has a load report of every engine; by then it
// follows their cache events, too.
func (s *stack) listening(ctx context.Context) error {
	return s.wait(ctx, "load reports of all engines", func() (bool, error) {
		n, err := s.metric(ctx, "shunt_load_tracked_engines")
		return n == float64(len(s.started)), err
	})
}

func (s *stack) wait(ctx context.Context, what string, ok func() (bool, error)) error {
	for {
		done, err := ok()
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// turn is one answered request.
type turn struct {
	prefill, decode, reason string
	prompt, cached          int
	first                   time.Duration // to the first token
	text                    string
}

// conversation is the messages of one client.
type conversation struct {
	id       string
	messages []map[string]string
}

func newConversation(id, system string) *conversation {
	return &conversation{id: id, messages: []map[string]string{{"role": "system", "content": system}}}
}

// say sends the next turn and keeps the answer for the ones after.
func (s *stack) say(ctx context.Context, c *conversation, text string) (turn, error) {
	c.messages = append(c.messages, map[string]string{"role": "user", "content": text})
	body, err := json.Marshal(map[string]any{
		"model": model, "stream": true, "max_tokens": 8, "messages": c.messages,
	})
	if err != nil {
		return turn{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return turn{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-Id", c.id)
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return turn{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return turn{}, fmt.Errorf("status %d %s", resp.StatusCode, said)
	}
	t := turn{}
	for part := range strings.SplitSeq(resp.Header.Get("X-Shunt-Decision"), "; ") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "prefill":
			t.prefill = value
		case "decode":
			t.decode = value
		case "prefill-reason":
			t.reason = value
		case "input":
			t.prompt, _ = strconv.Atoi(value)
		}
	}
	if err := t.read(resp.Body, began); err != nil {
		return t, err
	}
	c.messages = append(c.messages, map[string]string{"role": "assistant", "content": t.text})
	return t, nil
}

// read takes the answer's stream.
func (t *turn) read(r io.Reader, began time.Time) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return fmt.Errorf("event %q: %w", data, err)
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" && t.first == 0 {
				t.first = time.Since(began)
			}
			t.text += c.Delta.Content
		}
	}
	return lines.Err()
}

// measured is say, with what the prefill engines had to compute for it.
func (s *stack) measured(ctx context.Context, c *conversation, text string) (turn, error) {
	before, err := s.caches(ctx)
	if err != nil {
		return turn{}, err
	}
	t, err := s.say(ctx, c, text)
	if err != nil {
		return t, err
	}
	after, err := s.caches(ctx)
	t.cached = after.Cached - before.Cached
	t.prompt = t.cached + after.Prompt - before.Prompt
	fmt.Fprintf(s.out, "   turn %d of %s: prefill %s (%s), decode %s; %d of %d tokens cached, first token after %d ms\n",
		len(c.messages)/2, c.id, t.prefill, t.reason, t.decode, t.cached, t.prompt, t.first.Milliseconds())
	return t, err
}

// stays talks with one client.
func (s *stack) stays(ctx context.Context) error {
	fmt.Fprintln(s.out, "\n== A conversation stays with the engine that holds its prefix")
	c := newConversation("anna", system()+"You serve Anna.")
	owner := ""
	for n := range 4 {
		t, err := s.measured(ctx, c, fmt.Sprintf("question %d: what about %s?", n+1, strings.Repeat("this and that, ", 10)))
		if err != nil {
			return err
		}
		switch {
		case n == 0 && t.reason != "no_cache_candidate":
			return fmt.Errorf("the first turn was picked as %s", t.reason)
		case n > 0 && (t.prefill != owner || t.reason != "cache_candidate" || t.cached < t.prompt/2):
			return fmt.Errorf("turn %d went to %s as %s with %d of %d tokens cached; %s holds its prefix",
				n+1, t.prefill, t.reason, t.cached, t.prompt, owner)
		}
		owner = t.prefill
		if err := s.settled(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until the router knows what the engines cached.
func (s *stack) settled(ctx context.Context) error {
	return s.wait(ctx, "the index follows the engines", func() (bool, error) {
		c, err := s.caches(ctx)
		if err != nil {
			return false, err
		}
		n, err := s.metric(ctx, "shunt_prefix_index_owned_blocks")
		return n == float64(c.Blocks), err
	})
}

// moves has a second engine hold nearly as much, puts work in front of the first
// and sees the next turn move.
func (s *stack) moves(ctx context.Context) error {
	fmt.Fprintln(s.out, "\n== ... until another engine that holds nearly as much is under less pressure")
	var c *conversation
	var owner string
	// Clients who begin at the same moment are spread, since nobody holds their
	// prefix yet.
	for n := 0; ; n++ {
		if n == 10 {
			return errors.New("ten clients at once did not reach two engines")
		}
		shared := strings.Replace(system(), "helpful", fmt.Sprint("patient", n), 1)
		c = newConversation("bert", shared)
		turns, err := s.together(ctx, c, newConversation("carl", shared), newConversation("dora", shared))
		if err != nil {
			return err
		}
		if owner = turns[0].prefill; owner != turns[1].prefill || owner != turns[2].prefill {
			fmt.Fprintf(s.out, "   three clients with one prefix began on %s, %s and %s\n", owner, turns[1].prefill, turns[2].prefill)
			break
		}
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	t, err := s.measured(ctx, c, "And what is the rest?")
	if err != nil {
		return err
	}
	if t.reason != "cache_candidate" {
		return fmt.Errorf("picked as %s", t.reason)
	}
	owner = t.prefill
	relieve, err := s.press(ctx, owner)
	if err != nil {
		return err
	}
	defer relieve()
	before, err := s.metric(ctx, "shunt_cache_guard_overruled_total")
	if err != nil {
		return err
	}
	if t, err = s.measured(ctx, c, "And now?"); err != nil {
		return err
	}
	if err := s.trace(); err != nil {
		return err
	}
	after, err := s.metric(ctx, "shunt_cache_guard_overruled_total")
	if err != nil {
		return err
	}
	if t.prefill == owner || t.reason != "cache_candidate" || after == before || t.cached < t.prompt/2 {
		return fmt.Errorf("the turn went to %s as %s with %d of %d tokens cached, and the guard overruled %v times; want another holder than %s",
			t.prefill, t.reason, t.cached, t.prompt, after-before, owner)
	}
	return nil
}

// together sends a turn of several conversations at the same moment.
func (s *stack) together(ctx context.Context, all ...*conversation) ([]turn, error) {
	turns, failures := make([]turn, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() { turns[i], failures[i] = s.say(ctx, c, "Good morning, "+c.id+" here.") })
	}
	wg.Wait()
	return turns, errors.Join(failures...)
}

// press queues prompts on a prefill engine whose decode engine never comes, and
// waits until the router knows. It returns what takes them away again.
func (s *stack) press(ctx context.Context, id string) (relieve func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	relieve = func() {
		cancel()
		wg.Wait()
	}
	i := slices.IndexFunc(s.started, func(e engine) bool { return e.ID == id })
	for n := range 3 {
		body, err := json.Marshal(map[string]any{
			"model": model, "max_tokens": 1, "bootstrap_host": "127.0.0.1", "bootstrap_port": s.started[i].BootstrapPort,
			"bootstrap_room": 1_000_000 + n,
			"messages":       []any{map[string]any{"role": "user", "content": strings.Repeat(fmt.Sprint("work ", n), 4000)}},
		})
		if err != nil {
			relieve()
			return nil, err
		}
		wg.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.started[i].URL+"/v1/chat/completions", bytes.NewReader(body))
			if err != nil {
				return
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	err = s.wait(ctx, "the pressure is known", func() (bool, error) {
		pending, err := s.pending(ctx, id)
		if pending > 10_000 {
			fmt.Fprintf(s.out, "   %s now has %d prompt tokens waiting\n", id, pending)
			return true, nil
		}
		return false, err
	})
	if err != nil {
		relieve()
	}
	return relieve, err
}

// pending is what the router knows about the prompt tokens that wait on an engine.
func (s *stack) pending(ctx context.Context, id string) (int, error) {
	var list struct {
		Engines []struct {
			ID   string
			Load *struct {
				Pending int `json:"pending_prefill_tokens"`
			}
		}
	}
	if err := s.get(ctx, s.admin+"/admin/engines", &list); err != nil {
		return 0, err
	}
	for _, e := range list.Engines {
		if e.ID == id && e.Load != nil {
			return e.Load.Pending, nil
		}
	}
	return 0, nil
}

// trace prints how the last pick of a prefill engine went, from the router's log.
func (s *stack) trace() error {
	raw, err := os.ReadFile(filepath.Join(s.dir, "shuntd.log"))
	if err != nil {
		return err
	}
	var last struct {
		Decision struct {
			Buckets []struct {
				ID     string
				Groups []struct {
					Stage string
					Cache *struct {
						Source    string
						Guarded   bool
						Compared  int `json:"guard_compared"`
						Overruled int `json:"guard_overruled"`
						Holders   []struct {
							Engine, Fate string
							Uncached     int `json:"uncached_tokens"`
						}
					}
					Pick *struct{ Engine, Reason string }
				}
			}
		}
	}
	for line := range bytes.Lines(raw) {
		if bytes.Contains(line, []byte(`"msg":"routing decision"`)) {
			clear(last.Decision.Buckets)
			if err := json.Unmarshal(line, &last); err != nil {
				return fmt.Errorf("the router's log: %w", err)
			}
		}
	}
	fmt.Fprintln(s.out, "   the trace of that pick:")
	for _, b := range last.Decision.Buckets {
		for _, g := range b.Groups {
			if g.Cache == nil || g.Pick == nil {
				continue
			}
			for _, h := range g.Cache.Holders {
				fmt.Fprintf(s.out, "     %s holds the prompt but for %d tokens: %s\n", h.Engine, h.Uncached, h.Fate)
			}
			fmt.Fprintf(s.out, "     compared by %s; the guard compared %d and overruled the cache %d times; picked %s\n",
				g.Cache.Source, g.Cache.Compared, g.Cache.Overruled, g.Pick.Engine)
		}
	}
	return nil
}

// cacheState is what the prefill engines did, in tokens, and hold, in blocks.
type cacheState struct {
	Cached int `json:"cached_tokens"`
	Prompt int `json:"prompt_tokens"`
	Blocks int `json:"cached_blocks"`
}

func (s *stack) caches(ctx context.Context) (sum cacheState, err error) {
	for _, e := range s.started {
		if e.Role != "prefill" {
			continue
		}
		var c cacheState
		if err := s.get(ctx, e.URL+"/_sim/state", &c); err != nil {
			return sum, fmt.Errorf("engine %s: %w", e.ID, err)
		}
		sum.Cached += c.Cached
		sum.Prompt += c.Prompt
		sum.Blocks += c.Blocks
	}
	return sum, nil
}

func (s *stack) get(ctx context.Context, url string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if raw, ok := to.(*[]byte); ok {
		*raw, err = io.ReadAll(resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(to)
}

// metric sums a metric of the router over its labels.
func (s *stack) metric(ctx context.Context, name string) (float64, error) {
	var text []byte
	if err := s.get(ctx, s.admin+"/metrics", &text); err != nil {
		return 0, err
	}
	sum := 0.0
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllSubmatch(text, -1) {
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// result is what a workload came to.
type result struct {
	rate  float64 // cached tokens of all prompt tokens
	first time.Duration
}

// compare runs one workload under the example and under round_robin.
func (s *stack) compare(ctx context.Context) error {
	fmt.Fprintln(s.out, "\n== The same 9 conversations of 4 turns under cache_aware and under round_robin")
	aware, err := s.workload(ctx, true)
	if err != nil {
		return err
	}
	if err := s.roundRobin(ctx); err != nil {
		return err
	}
	robin, err := s.workload(ctx, false)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		name string
		result
	}{{"cache_aware", aware}, {"round_robin", robin}} {
		fmt.Fprintf(s.out, "   %-12s hit rate %4.1f %%, first token after %d ms on average\n", r.name, 100*r.rate, r.first.Milliseconds())
	}
	if aware.rate < robin.rate+0.1 {
		return fmt.Errorf("cache_aware had a hit rate of %.2f, round_robin %.2f", aware.rate, robin.rate)
	}
	return nil
}

// roundRobin swaps the plan of the running router.
func (s *stack) roundRobin(ctx context.Context) error {
	text, err := os.ReadFile(s.config)
	if err != nil {
		return err
	}
	head, _, ok := strings.Cut(string(text), "    affinity:")
	_, engines, ok2 := strings.Cut(string(text), "    discovery:")
	engines, _, ok3 := strings.Cut(engines, "    defaults:")
	if !ok || !ok2 || !ok3 {
		return errors.New("the example has another shape")
	}
	other := filepath.Join(s.dir, "round-robin.yaml")
	config := head + "    discovery:" + engines + "    buckets:\n      - id: all\n        groups:\n          pd:\n" +
		"            prefill: {policy: {type: round_robin}}\n            decode: {policy: {type: round_robin}}\n"
	if err := os.WriteFile(other, []byte(config), 0o600); err != nil {
		return err
	}
	said, err := s.output(ctx, s.path("shunt"), "compile", "-o", s.plan, other)
	if err != nil {
		s.print(said)
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.admin+"/admin/reload", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("reload: status %d %s", resp.StatusCode, said)
	}
	return nil
}

// workload empties the caches and holds nine conversations, three at a time.
func (s *stack) workload(ctx context.Context, indexed bool) (result, error) {
	for _, e := range s.started {
		var nothing []byte
		if err := s.get(ctx, e.URL+"/flush_cache", &nothing); err != nil {
			return result{}, err
		}
	}
	if indexed {
		if err := s.settled(ctx); err != nil {
			return result{}, err
		}
	}
	before, err := s.caches(ctx)
	if err != nil {
		return result{}, err
	}
	var mu sync.Mutex
	var firsts time.Duration
	turns, failures := 0, []error(nil)
	var wg sync.WaitGroup
	for lane := range 3 {
		wg.Go(func() {
			for n := range 3 {
				c := newConversation(fmt.Sprintf("client-%d-%d", lane, n), fmt.Sprintf("Case %d of %d. ", n, lane)+system())
				for range 4 {
					t, err := s.say(ctx, c, "Tell me more about "+strings.Repeat("it, ", 50))
					mu.Lock()
					firsts += t.first
					turns++
					if err != nil {
						failures = append(failures, err)
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		return result{}, err
	}
	after, err := s.caches(ctx)
	if err != nil {
		return result{}, err
	}
	cached, computed := after.Cached-before.Cached, after.Prompt-before.Prompt
	return result{rate: float64(cached) / float64(cached+computed), first: firsts / time.Duration(turns)}, nil
}
