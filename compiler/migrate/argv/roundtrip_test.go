package argv_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"mvdan.cc/sh/v3/syntax"

	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/flags"
)

// TestRoundTrip writes random arguments into every kind of file, each with the
// escapes of its kind, and reads the same arguments back. What the table of flags
// makes of them is then the same too.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		args := randomArgs(r)
		for name, text := range writings(t, r, args) {
			inv, findings := argv.Read(name, []byte(text), argv.Options{})
			var got []string
			for _, a := range inv.Args {
				got = append(got, a.Text)
				if len(a.Open) > 0 {
					t.Errorf("%s: %q is open: %q\n%s", name, a.Text, a.Open, text)
				}
				if a.Pos.File != name || !a.Pos.Known() {
					t.Errorf("%s: %q is at %v", name, a.Text, a.Pos)
				}
			}
			if findings.HasErrors() || !slices.Equal(got, args) {
				t.Fatalf("%s\ngot  %q\nwant %q\n%v\n%s", name, got, args, findings, text)
			}
			if got, want := parsed(inv.Args), parsed(argv.FromArgs(args).Args); got != want {
				t.Fatalf("%s\ngot  %s\nwant %s", name, got, want)
			}
		}
	}
}

// parsed is what the flags are, without their places.
func parsed(args []argv.Arg) string {
	line := flags.Parse(args)
	var b strings.Builder
	for i := range line.Given {
		g := &line.Given[i]
		fmt.Fprintf(&b, "%s %v %v", g.Name, g.Elements, g.Values)
		for _, f := range g.Findings {
			fmt.Fprintf(&b, " %s %s", f.Code, f.Message)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// randomArgs are arguments of a router with values that need quoting.
func randomArgs(r *rand.Rand) []string {
	words := []string{
		"--model-id", "--worker-urls", "http://a:1", "--port=3000", "--policy", "cache_aware", "--prefill-selector", "app=a,role in (x)",
		"", "-", "--", "it's", `a"b`, `back\slash`, `\`, `\\'`, "$HOME", "$$", "${X}", "$(id)", "`id`", "%i", "%%", "a b", " ", "a#b", "#c", "{a,b}", "*",
		"?", "~", "!", "&", ";", "|", "<", ">", "é", "日本", "{\"top_p\": 0.5}", "a: b", "- x", "null", "true", "012", "1e3", "--x=", "=", "'", "\"",
		"a\tb", "x\ny", "(", ")", "[1]", "\\n", "%", "$", "a\\ b", ":-", "@", "+", ",",
	}
	args := []string{"--model-id", "m"}
	for range r.IntN(12) {
		w := words[r.IntN(len(words))]
		if r.IntN(3) == 0 {
			w += words[r.IntN(len(words))]
		}
		args = append(args, w)
	}
	return args
}

// writings are the arguments in files of each kind.
func writings(t *testing.T, r *rand.Rand, args []string) map[string]string {
	t.Helper()
	quoted := func(s string) string {
		q, err := syntax.Quote(s, syntax.LangBash)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	var shell, unit []string
	kubernetes, compose := []any{"sgl-router"}, []any{"sgl-router"}
	for _, a := range args {
		shell = append(shell, quoted(a))
		unit = append(unit, unitQuoted(a))
		kubernetes = append(kubernetes, strings.ReplaceAll(a, "$", "$$"))
		compose = append(compose, strings.ReplaceAll(a, "$", "$$"))
	}
	separators := []string{" ", " \\\n  ", "  ", "\t"}
	script := "sgl-router"
	for _, q := range shell {
		script += separators[r.IntN(len(separators))] + q
	}
	pod := func(command []any) any {
		return map[string]any{"kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "r", "command": command}}}}
	}
	inner := []any{"bash", "-c", strings.ReplaceAll(script, "$", "$$")}
	return map[string]string{
		"a.sh":         "set -e\nexec " + script + "\n",
		"b.sh":         "bash -c " + quoted(script),
		"a.yaml":       inYAML(t, pod(kubernetes)),
		"b.yaml":       inYAML(t, pod(inner)),
		"a.json":       inJSON(t, pod(kubernetes)),
		"a.yml":        inYAML(t, map[string]any{"services": map[string]any{"r": map[string]any{"command": compose}}}),
		"b.yml":        inYAML(t, map[string]any{"services": map[string]any{"r": map[string]any{"command": inner}}}),
		"c.yml":        inYAML(t, map[string]any{"services": map[string]any{"r": map[string]any{"command": composeLine(args)}}}),
		"a.service":    "[Service]\nExecStart=/usr/bin/sgl-router " + strings.Join(unit, " ") + "\n",
		"b.service":    "[Service]\nExecStart=/usr/bin/sgl-router " + strings.Join(unit, " \\\n  ") + "\n",
		"only.txt":     strings.Join(shell, " "),
		"Dockerrun.sh": "docker run --rm -e A=b --name sgl-router img sgl-router " + strings.Join(shell, " "),
	}
}

func inYAML(t *testing.T, v any) string {
	t.Helper()
	out, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// composeLine is a command as one text, which no shell reads.
func composeLine(args []string) string {
	line := "sgl-router"
	for _, a := range args {
		line += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$$`, "`", "\\`").Replace(a) + `"`
	}
	return line
}

// unitQuoted quotes an argument as a unit has it.
func unitQuoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$", "%", "%%", "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}
