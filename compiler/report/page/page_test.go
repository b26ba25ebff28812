package page_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/compiler/report/page"
	"shunt/compiler/source"
)

// compiled is a plan as the command line makes it.
func compiled(t testing.TB, name, text string) page.Plan {
	t.Helper()
	r := compiler.Compile(context.Background(), compiler.Options{Compiler: "test"}, []source.Input{{Name: name, Reader: strings.NewReader(text)}})
	if r.Plan == nil {
		t.Fatal(r.Findings)
	}
	return page.Plan{Name: name, Document: r.Plan, Compiled: true, Findings: r.Findings}
}

func written(t testing.TB, p page.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := page.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func difference(t testing.TB, a, b page.Plan) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.WriteDiff(&out, a, b); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func examples(t *testing.T) map[string]page.Plan {
	t.Helper()
	names, err := filepath.Glob("../../../examples/*/routing.yaml")
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	out := make(map[string]page.Plan)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = compiled(t, name, string(text))
	}
	return out
}

// textOf is what a reader sees of a page, without its style and script.
func textOf(written string) string {
	written = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`).ReplaceAllString(written, "")
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(written, "\n"))
}

// TestEverythingIsThere looks for every place, name and engine of the examples.
func TestEverythingIsThere(t *testing.T) {
	for path, p := range examples(t) {
		out := written(t, p)
		if again := written(t, p); again != out {
			t.Errorf("%s: two pages of one plan differ", path)
		}
		text := textOf(out)
		values, err := report.Values(p.Document)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if strings.Contains(v.Pointer, "/breakpoints/") || strings.Contains(v.Pointer, "/requires/") {
				continue
			}
			name := v.Pointer[strings.LastIndexByte(v.Pointer, '/')+1:]
			inEngine, inLabels := strings.Contains(v.Pointer, "/engines/"), strings.Contains(v.Pointer, "/labels/")
			// These are shown, but not by their names.
			nameless := inEngine || inLabels || name == "id" || name == "type" || name == "worker_ids"
			if !nameless && !strings.Contains(text, name) {
				t.Errorf("%s: no %s", path, v.Pointer)
			}
			file, line, hasPlace := strings.Cut(v.Origin, ".yaml:")
			if hasPlace && !inEngine && !inLabels && name != "id" && !strings.Contains(text, filepath.Base(file)+".yaml:"+line) {
				t.Errorf("%s: the place of %s is not there: %s", path, v.Pointer, v.Origin)
			}
		}
		for _, m := range p.Document.Body.Models {
			for _, e := range m.Engines() {
				if !strings.Contains(text, e.URL) {
					t.Errorf("%s: no engine %s", path, e.URL)
				}
			}
		}
	}
}

// alone fails on a page that could ask anybody for anything.
func alone(t *testing.T, what, out string) {
	t.Helper()
	hash := func(tag string) string {
		_, rest, ok := strings.Cut(out, "<"+tag+">")
		body, _, closed := strings.Cut(rest, "</"+tag+">")
		if !ok || !closed || strings.Contains(body, "<"+tag) {
			t.Fatalf("%s: no one %s", what, tag)
		}
		sum := sha256.Sum256([]byte(body))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	want := "default-src 'none'; style-src " + hash("style") + "; script-src " + hash("script") + "; base-uri 'none'; form-action 'none'"
	if !strings.Contains(html.UnescapeString(out), `http-equiv="Content-Security-Policy" content="`+want+`"`) {
		t.Errorf("%s: the policy is not %s", what, want)
	}
	for _, bad := range []string{" src=", "<link", "@import", "<img", "<iframe", " style=", " onclick", "javascript:"} {
		if strings.Contains(strings.ToLower(out), bad) {
			t.Errorf("%s: the page has %s", what, bad)
		}
	}
	for _, m := range regexp.MustCompile(`(?:href=|url\()"?([^")> ]*)`).FindAllStringSubmatch(out, -1) {
		if !strings.HasPrefix(m[1], "#") {
			t.Errorf("%s: the page leads to %s", what, m[1])
		}
	}
	targets := make(map[string]bool)
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(out, -1) {
		if targets[m[1]] {
			t.Errorf("%s: two places %s", what, m[1])
		}
		targets[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` (?:href="#|data-go="|for="|aria-labelledby="|aria-controls=")([^" ]*)"`).FindAllStringSubmatch(out, -1) {
		if !targets[m[1]] {
			t.Errorf("%s: nothing has the id %s", what, m[1])
		}
	}
}

func TestNothingFromElsewhere(t *testing.T) {
	var before *page.Plan
	for name, p := range examples(t) {
		alone(t, name, written(t, p))
		if before != nil {
			alone(t, name, difference(t, *before, p))
		}
		before = &p
	}
	large := compiled(t, "large.json", many(t, 100))
	alone(t, "large", written(t, large))
}

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>'{{.}}` + "`${x}`"

// TestHostileNames: names are text wherever they stand.
func TestHostileNames(t *testing.T) {
	name, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(`{"version": 1, "models": [{"id": NAME,
		"discovery": {"static": {"engines": [{"id": NAME, "url": "http://10.0.0.1:1", "role": "plain", "labels": {NAME: NAME}}, {"id": "b", "url": "http://10.0.0.2:1", "role": "plain"}]}},
		"buckets": [{"id": NAME, "groups": {"plain": {"labels": {NAME: NAME}}}}, {"id": "other", "limits": {"min": 5}, "groups": {"plain": {"worker_ids": ["b"]}}}]}]}`, "NAME", string(name))
	p := compiled(t, "<b>.json", text)
	q := compiled(t, "other.yaml", "version: 1\nmodels:\n  - id: m\n    discovery: {static: {engines: [{id: e, url: 'http://10.0.0.1:1', role: plain}]}}\n")
	for what, out := range map[string]string{"plan": written(t, p), "added": difference(t, q, p), "removed": difference(t, p, q)} {
		if n := strings.Count(out, "<script"); n != 1 {
			t.Errorf("%s: %d scripts", what, n)
		}
		if strings.Contains(out, "<img") || strings.Contains(out, "<b>.json") {
			t.Errorf("%s: a name is markup", what)
		}
		if !strings.Contains(textOf(out), hostile) {
			t.Errorf("%s: the name is not there", what)
		}
	}
}

// many is a configuration of n buckets, no two of which have the same policy.
func many(t testing.TB, n int) string {
	t.Helper()
	type m = map[string]any
	var engines, buckets []any
	for i := range 64 {
		engines = append(engines, m{"id": fmt.Sprintf("prefill-%d", i), "url": fmt.Sprintf("http://10.1.0.%d:30000", i), "role": "prefill"},
			m{"id": fmt.Sprintf("decode-%d", i), "url": fmt.Sprintf("http://10.2.0.%d:30000", i), "role": "decode"})
	}
	for i := range n {
		limit := m{"max_running_requests": 64 + i, "max_inflight_requests": 32}
		buckets = append(buckets, m{
			"id": fmt.Sprintf("bucket-of-%d-tokens", 256*(i+1)), "rank": i, "limits": m{"min": max(256*(i+1)-2048, 0), "max": 256 * (i + 1)},
			"max_context_tokens": 512 * (i + 1), "ttft_ms": 100 + i,
			"groups": m{"pd": m{
				"prefill": m{"worker_ids": []string{fmt.Sprintf("prefill-%d", i%64)}, "policy": m{"type": "cache_aware", "min_matched_tokens": 256 + i, "worker_queue_limit": 16, "admission": limit}},
				"decode":  m{"policy": m{"type": "power_of_two", "choices": 3, "admission": limit}},
			}},
		})
	}
	data, err := json.MarshalIndent(m{"version": 1, "models": []any{m{
		"id": "large", "tokenizer": m{"path": "tokenizer"}, "ttft_slo": "slo_first", "discovery": m{"static": m{"engines": engines}}, "buckets": buckets,
	}}}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSize: 500 buckets with as many policies stay below a megabyte.
func TestSize(t *testing.T) {
	one := compiled(t, "/somewhere/rather/far/down/large.json", many(t, 500))
	if n := len(written(t, one)); n > 1_000_000 {
		t.Errorf("the page has %d bytes", n)
	}
	two := compiled(t, "large.json", strings.ReplaceAll(many(t, 500), `"max_context_tokens": `, `"max_context_tokens": 1`))
	if n := len(difference(t, one, two)); n > 1_000_000 {
		t.Errorf("the comparison has %d bytes", n)
	}
}

// TestReadPlan: a plan that was read has no findings, and says none.
func TestReadPlan(t *testing.T) {
	for _, p := range examples(t) {
		p.Compiled, p.Findings = false, nil
		if strings.Contains(textOf(written(t, p)), "inding") {
			t.Error("a plan has findings")
		}
	}
}

// TestGapAndFindings: what is wrong is seen.
func TestGapAndFindings(t *testing.T) {
	p := compiled(t, "gap.yaml", `version: 1
models:
  - id: m
    discovery: {static: {engines: [{id: e, url: "http://10.0.0.1:1", role: plain}, {id: idle, url: "http://10.0.0.2:1", role: plain}]}}
    buckets:
      - {id: low, limits: {max: 100}, groups: {plain: {worker_ids: [e]}}}
      - {id: high, limits: {min: 200}, groups: {plain: {worker_ids: [e]}}}
`)
	out := written(t, p)
	for _, want := range []string{"no bucket takes an input of 101 to 199", "no bucket: such a request is refused", "gap.yaml:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if len(p.Findings) == 0 {
		t.Fatal("no finding")
	}
	for i := range p.Findings {
		if !strings.Contains(html.UnescapeString(out), p.Findings[i].Message) {
			t.Errorf("no finding %q", p.Findings[i].Message)
		}
	}
	if strings.Contains(written(t, compiled(t, "a.yaml", "version: 1\nmodels:\n  - id: m\n    discovery: {static: {engines: [{id: e, url: 'http://10.0.0.1:1', role: plain}]}}\n")), "no bucket takes") {
		t.Error("a gap where there is none")
	}
}

// TestSuppressedFindings: what was accepted is shown as that, with the reason,
// and does not count.
func TestSuppressedFindings(t *testing.T) {
	p := examples(t)["../../../examples/plain/routing.yaml"]
	if p.Document == nil {
		t.Fatal("no example")
	}
	f := diag.New(diag.LengthGap, diag.Pos{File: "c.yaml", Line: 1, Column: 1}, "", "a gap")
	f.Suppressed = &diag.Suppression{By: diag.ByComment, Reason: "nobody asks for it"}
	p.Findings = diag.List{f}
	out := written(t, p)
	for _, want := range []string{"1 suppressed", "suppressed by comment: nobody asks for it", `badge suppressed`} {
		if !strings.Contains(out, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(out, "1 warning") {
		t.Error("the page counts a suppressed finding")
	}
}
