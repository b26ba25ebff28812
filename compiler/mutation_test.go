package compiler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// spot is a member of an object of a configuration.
type spot struct {
	in   map[string]any
	key  string
	path string
}

// spots lists all members below v, in a fixed order.
func spots(v any, path string, out []spot) []spot {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at := source.Join(path, k)
			out = spots(v[k], at, append(out, spot{v, k, at}))
		}
	case []any:
		for i, e := range v {
			out = spots(e, fmt.Sprintf("%s/%d", path, i), out)
		}
	}
	return out
}

// example reads an example as JSON, which is YAML and CUE too, so that one text
// with the same places tests three readers.
func example(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.Open("../examples/" + name + "/routing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tree, list := source.Read(context.Background(), source.Options{}, []source.Input{{Name: "routing.yaml", Reader: file}})
	if tree == nil {
		t.Fatal(list)
	}
	return tree.JSON()
}

// found compiles a document under each name and returns its findings, which must
// be the same in all syntaxes.
func found(t *testing.T, document any, names ...string) (text string, list diag.List) {
	t.Helper()
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		r := compiler.Compile(context.Background(), compiler.Options{}, []source.Input{{Name: name, Reader: strings.NewReader(string(data))}})
		for j := range r.Findings {
			r.Findings[j].Pos.File, r.Findings[j].End.File = "", ""
			for k := range r.Findings[j].Related {
				r.Findings[j].Related[k].Pos.File = ""
			}
		}
		if i == 0 {
			list = r.Findings
		} else if got, want := r.Findings.String(), list.String(); got != want {
			t.Errorf("%s differs from JSON:\n%s\nwant\n%s\n%s", name, got, want, data)
		}
	}
	return string(data), list
}

// at reports whether an error of the list is on the line, from 1, and whose path
// is the one given.
func at(list diag.List, line int, path string) bool {
	return slices.ContainsFunc(list, func(f diag.Finding) bool {
		return f.Severity == diag.Error && f.Pos.Line == line && f.Path == path
	})
}

func lineOf(text, mark string) int { return strings.Count(text[:strings.Index(text, mark)], "\n") + 1 }

// TestEveryMember renames, retypes and deletes each member of the examples. Names
// and types are always mistakes; what may be deleted is known.
func TestEveryMember(t *testing.T) {
	optional := map[string]bool{
		"admin": true, "admission": true, "expose_decision": true, "limits": true, "listen": true, "max": true, "max_context_tokens": true,
		"max_kv_tokens": true, "max_running_requests": true, "max_inflight_requests": true, "max_waiting_requests": true, "min": true,
		"policy": true, "rank": true, "server": true, "worker_ids": true, "bootstrap_port": true, "defaults": true, "decode_policy": true,
		"labels": true, "zone": true, "tier": true, "match_labels": true, "state": true, "load": true, "freshness": true, "choices": true, "buckets": true,
		"breaker": true, "threshold": true, "cool_down": true, "gpu": true, "request_timeout": true, "log": true, "level": true, "format": true,
		"drain_timeout": true, "stale_timeout": true, "header_timeout": true, "connect_timeout": true, "stream_idle_timeout": true,
	}
	for _, name := range []string{"pd-labels", "plain"} {
		var document any
		if err := json.Unmarshal(example(t, name), &document); err != nil {
			t.Fatal(err)
		}
		if _, list := found(t, document, "a.json"); list.HasErrors() {
			t.Fatalf("%s: %v", name, list)
		}
		for _, s := range spots(document, "", nil) {
			old := s.in[s.key]
			s.in[s.key] = map[string]any{"zzz": map[string]any{}}
			text, list := found(t, document, "a.json")
			if !at(list, lineOf(text, `"zzz"`)-1, s.path) && !at(list, lineOf(text, `"zzz"`), s.path+"/zzz") {
				t.Errorf("%s: %s of another type: %s", name, s.path, list)
			}
			delete(s.in, s.key)
			if _, list := found(t, document, "a.json"); list.HasErrors() == optional[s.key] {
				t.Errorf("%s: %s deleted: %s", name, s.path, list)
			}
			renamed := "zzz" + s.key
			s.in[renamed] = old
			text, list = found(t, document, "a.json")
			if p := s.path[:len(s.path)-len(s.key)] + renamed; !at(list, lineOf(text, renamed), p) && !strings.HasSuffix(s.path, "/labels/"+s.key) {
				t.Errorf("%s: %s renamed: %s", name, s.path, list)
			}
			delete(s.in, renamed)
			s.in[s.key] = nil
			if _, list = found(t, document, "a.json"); !slices.ContainsFunc(list, func(f diag.Finding) bool { return f.Code == diag.NullValue && f.Path == s.path }) {
				t.Errorf("%s: %s null: %s", name, s.path, list)
			}
			s.in[s.key] = old
		}
	}
}

// TestManyMistakesAtOnce plants mistakes at random places and wants each of them
// in one run.
func TestManyMistakesAtOnce(t *testing.T) {
	data := example(t, "pd-two-buckets")
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var document any
		if err := json.Unmarshal(data, &document); err != nil {
			t.Fatal(err)
		}
		want := make(map[string]string) // mark by path
		for i := range 12 {
			all := spots(document, "", nil)
			s := all[random.IntN(len(all))]
			if slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(p string) bool {
				return strings.HasPrefix(p+"/", s.path+"/") || strings.HasPrefix(s.path+"/", p+"/")
			}) {
				continue
			}
			mark := fmt.Sprintf("zzz%dz", i)
			if i%2 == 0 {
				s.in[s.key] = []any{map[string]any{mark: 1}}
				// A list of engines, models or buckets has the mark in an element.
				want[s.path] = mark
			} else {
				s.in[mark] = 1
				want[s.path[:len(s.path)-len(s.key)]+mark] = mark
			}
		}
		text, list := found(t, document, "a.json", "a.yaml", "a.cue")
		for path, mark := range want {
			hit := slices.ContainsFunc(list, func(f diag.Finding) bool {
				return f.Severity == diag.Error && (f.Path == path || strings.HasPrefix(f.Path, path+"/")) &&
					f.Pos.Line <= lineOf(text, mark) && f.Pos.Line >= lineOf(text, mark)-2
			})
			if !hit {
				t.Errorf("%s is not reported near line %d:\n%s", path, lineOf(text, mark), list)
			}
		}
	}
}
