package bucketfile_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/bucketfile"
	"shunt/golden"
)

// TestRead compares what files are read as. The end of a name says which reader
// takes it: config.*, workers.*, decisions.*, and buckets for all others. With
// decisions before it, a bucket file is associated too.
func TestRead(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, c *golden.Case) {
		var decisions bucketfile.Decisions
		for _, name := range c.Inputs {
			var b strings.Builder
			var findings diag.List
			switch kind, _, _ := strings.Cut(name, "."); {
			case strings.HasSuffix(kind, "config"):
				var x bucketfile.Config
				x, findings = bucketfile.ReadConfig(t.Context(), name, c.Input(name))
				dump(&b, "", reflect.ValueOf(x))
			case strings.HasSuffix(kind, "workers"):
				var x []bucketfile.Worker
				x, _, findings = bucketfile.ReadWorkers(t.Context(), name, c.Input(name))
				dump(&b, "", reflect.ValueOf(x))
			case strings.HasSuffix(kind, "decisions"):
				decisions, findings = bucketfile.ReadDecisions(t.Context(), name, c.Input(name))
				dump(&b, "", reflect.ValueOf(decisions))
			default:
				var x bucketfile.File
				x, findings = bucketfile.Read(t.Context(), name, c.Input(name), bucketfile.Options{})
				if findings.HasErrors() {
					break
				}
				buckets, open, more := bucketfile.Associate(x, decisions)
				findings = append(findings, more...)
				dump(&b, "", reflect.ValueOf(buckets))
				if len(open) > 0 {
					b.Write(bucketfile.Template(open))
				}
				for _, o := range open {
					if len(o.Answer) == 0 {
						fmt.Fprintf(&b, "open %s\n", o.Question)
					}
				}
				decisions = bucketfile.Decisions{}
			}
			for _, f := range findings {
				fmt.Fprintln(&b, f)
				if f.Hint != "" {
					fmt.Fprintf(&b, "    %s\n", f.Hint)
				}
			}
			c.Want(name, b.String())
		}
	})
}

// dump writes what a value holds: one line for each Value with its origins.
func dump(b *strings.Builder, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			dump(b, path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			dump(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Struct:
		t := v.Type()
		if origins := v.FieldByName("Origins"); origins.IsValid() && t.NumField() == 2 {
			fmt.Fprintf(b, "%s = %#v", path, v.Field(0).Interface())
			for _, o := range origins.Interface().([]bucketfile.Origin) {
				fmt.Fprintf(b, " %s", strings.TrimSpace(o.Pos.String()+o.Pointer))
			}
			b.WriteByte('\n')
			return
		}
		if t == reflect.TypeFor[bucketfile.Rejected]() {
			r := v.Interface().(bucketfile.Rejected)
			fmt.Fprintf(b, "%s = %s: %s\n", path, r.Origin.Pos, r.Message)
			return
		}
		for i := range t.NumField() {
			if name := t.Field(i).Name; name != "Fields" && name != "Origin" {
				dump(b, strings.TrimPrefix(path+"."+name, "."), v.Field(i))
			}
		}
	case reflect.String:
		if v.String() != "" {
			fmt.Fprintf(b, "%s = %q\n", path, v.String())
		}
	}
}

func TestParsePair(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		p, err := bucketfile.ParsePair(text, 2)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%s %s", p.Prefill.Value, p.Decode.Value)
			if p.ID != nil {
				got += " " + p.ID.Value
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f("a=b", "a b")
	f("a=b=c", "a b c")
	f("a", "a pair is")
	f("a=", "a pair is")
	f("=b", "a pair is")
	f("a=b=", "a pair is")
	f("a=b=c=d", "a pair is")
}

// TestFields: every scalar and list of scalars of a file is listed once.
func TestFields(t *testing.T) {
	x, _ := bucketfile.Read(t.Context(), "b", []byte(`{"buckets": [{"id": "a", "worker_ids": ["http://u:p@a", "b"], "rank": null}], "x": [], "api_key": "k"}`), bucketfile.Options{})
	var b strings.Builder
	for _, f := range x.Fields {
		fmt.Fprintf(&b, "%s %s %s\n", f.Pos, f.Pointer, f.Raw)
	}
	want := `b:1:21 /buckets/0/id "a"
b:1:40 /buckets/0/worker_ids ["http://***@a", "b"]
b:1:71 /buckets/0/rank null
b:1:84 /x []
b:1:99 /api_key ***
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// TestAdd: the command line and the decisions file may state the same pair, but
// not differently.
func TestAdd(t *testing.T) {
	x, findings := bucketfile.ReadDecisions(t.Context(), "d.yaml", []byte("version: 1\npairs:\n  - {prefill: a, decode: b, id: x}\n  - {prefill: c, decode: d, rank: 1}\n"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	var pairs []bucketfile.Pair
	for i, text := range []string{"a=b", "c=d=y", "e=f"} {
		p, err := bucketfile.ParsePair(text, i+1)
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, p)
	}
	if l := x.Add(pairs); len(l) > 0 || len(x.Pairs) != 3 || x.Pairs[1].ID.Value != "y" || x.Pairs[1].Rank == nil {
		t.Errorf("got %v and %+v", l, x.Pairs)
	}
	p, _ := bucketfile.ParsePair("a=b=z", 4)
	if l := x.Add([]bucketfile.Pair{p}); !strings.Contains(l.String(), `the name "z" here and "x" elsewhere`) {
		t.Errorf("got %v", l)
	}
}
