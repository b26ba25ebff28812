package prepare_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"shunt/runtime/prepare"
)

func TestFacts(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		var r prepare.Request
		if err := r.Parse([]byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
			return
		}
		in, peak, err := r.Lengths()
		got := fmt.Sprintf("%s %d %d", r.Model, in, peak)
		if err != nil {
			got = r.Model + " overflow"
		}
		for _, b := range []struct {
			name string
			set  bool
		}{{"stream", r.Stream}, {"own", r.OwnID}, {"several", r.Several}} {
			if b.set {
				got += " " + b.name
			}
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
		}
	}
	f(`{"model":"m"}`, "m 3 0")
	f(`{"model":"m","messages":[{"role":"user","content":"0123456789"}]}`, "m 16 0")
	f(` {"model" : "m" , "stream":true}`+"\n", "m 8 0 stream")
	f(`{"mod\u0065l":"\u006d","stre\u0061m":true}`, "m 10 0 stream")
	f(`{"model":"m","stream":null,"max_tokens":null}`, "m 11 0")
	f(`{"model":"m","max_tokens":5}`, "m 7 12")
	f(`{"model":"m","max_tokens":0}`, "m 7 7")
	f(`{"model":"m","max_tokens":5,"max_completion_tokens":7}`, "m 13 20")
	f(`{"model":"m","max_completion_tokens":null,"max_tokens":5}`, "m 14 19")
	f(fmt.Sprintf(`{"model":"m","max_tokens":%d}`, math.MaxInt64-11), fmt.Sprintf("m 11 %d", math.MaxInt64))
	f(fmt.Sprintf(`{"model":"m","max_tokens":%d}`, math.MaxInt64-10), "m overflow")
	f(fmt.Sprintf(`{"model":"m","max_tokens":%d}`, uint64(math.MaxUint64)), "m overflow")
	f(`{"model":"m","rid":"x"}`, "m 5 0 own")
	f(`{"model":"m","rid":null}`, "m 6 0")
	f(`{"model":"m","rid":["x"]}`, "m 6 0 own")
	f(`{"model":"m","n":1}`, "m 4 0")
	f(`{"model":"m","n":null}`, "m 5 0")
	f(`{"model":"m","n":2}`, "m 4 0 several")
	f(`{"model":"m","n":"1"}`, "m 5 0 several")
	f(`{"model":"m","n":1e999}`, "m 5 0 several")
	f(`{"model":"m","n":2,"n":1}`, "m 6 0 several")
	f(`{"model":"m","temperature":1,"temperature":2}`, "m 11 0")
	f(`{"model":"m","Stream":"no","MODEL":7}`, "m 9 0")
	f(`{"model":"m","x":`+strings.Repeat("[", 126)+strings.Repeat("]", 126)+`}`, "m 67 0")
	f(`{"model":"m","x":"`+strings.Repeat("[", 500)+`"}`, "m 130 0")
}

func TestRefusedBodies(t *testing.T) {
	f := func(body string, want error) {
		t.Helper()
		var r prepare.Request
		if err := r.Parse([]byte(body)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", body, err, want)
		}
	}
	for _, body := range []string{
		``, ` `, `null`, `[]`, `"x"`, `42`, `{`, `{"model":"m"`, `{"model":"m"}}`, `{"model":"m"} x`, `{"model":"m",}`,
		`{"model":"m"}{"model":"m"}`, `{'model':'m'}`, `{"model":"m" "a":1}`, "{\"model\":\"m\xff\"}",
		`{"model":"\ud800"}`, `{"model":"m","x":tru}`, `{"model":"m","x":01}`, "\ufeff{\"model\":\"m\"}",
		`{"model":7}`, `{"model":["m"]}`, `{"model":"m","stream":"yes"}`, `{"model":"m","stream":1}`,
		`{"model":"m","max_tokens":-1}`, `{"model":"m","max_tokens":1.5}`, `{"model":"m","max_tokens":1e3}`,
		`{"model":"m","max_tokens":"5"}`, `{"model":"m","max_tokens":18446744073709551616}`,
		`{"model":"m","max_completion_tokens":true}`,
		`{"model":"m","model":"m"}`, `{"model":"m","model":null}`, `{"model":"m","stream":null,"stream":true}`,
		`{"model":"m","max_tokens":1,"max_tokens":1}`, `{"model":"m","mod\u0065l":"other"}`,
		`{"model":"m","x":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`,
		`{"model":"m","x":` + strings.Repeat(`{"\\\"[":`, 128) + "1" + strings.Repeat("}", 128) + `}`,
	} {
		f(body, prepare.ErrBody)
	}
	f(`{}`, prepare.ErrNoModel)
	f(`{"model":null}`, prepare.ErrNoModel)
	f(`{"messages":[]}`, prepare.ErrNoModel)
}

func TestOutgoing(t *testing.T) {
	pair := &prepare.Bootstrap{Host: "h", Port: 8998, Room: 7}
	f := func(body string, add prepare.Fields, want string) {
		t.Helper()
		for _, slack := range []int{0, prepare.Slack} {
			var r prepare.Request
			in := append(make([]byte, 0, len(body)+slack), body...)
			if err := r.Parse(in); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if got := string(r.Outgoing(add)); got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
			}
		}
	}
	f(` { "model":"m" } `, prepare.Fields{}, ` { "model":"m" } `)
	f(`{"model":"m"} `, prepare.Fields{RID: "ab"}, `{"model":"m","rid":"ab"}`)
	f(`{"model":"m"}`, prepare.Fields{RID: "ab", Bootstrap: pair},
		`{"model":"m","rid":"ab","bootstrap_host":"h","bootstrap_port":8998,"bootstrap_room":7}`)
	f(`{"model":"m"}`, prepare.Fields{Bootstrap: &prepare.Bootstrap{Host: "h", Room: math.MaxInt64}},
		`{"model":"m","bootstrap_host":"h","bootstrap_port":null,"bootstrap_room":9223372036854775807}`)
	f(`{"bootstrap_room":1,"bootstrap_host":"x" , "model":"m"}`, prepare.Fields{}, `{"model":"m"}`)
	f(`{"model":"m" ,"bootstrap_room" : [1,2] }`, prepare.Fields{RID: "a"}, `{"model":"m" ,"rid":"a"}`)
	f(`{"routed_dp_rank":1,"model":"m","a":1,"data_parallel_rank":2,"b":2,"rid":null}`, prepare.Fields{RID: "a"},
		`{"model":"m","a":1,"b":2,"rid":"a"}`)
	f(`{"disagg_prefill_dp_rank":0,"bootstrap_pair_key":"","model":"m","bootstrap_h\u006fst":"x"}`, prepare.Fields{}, `{"model":"m"}`)
	f(`{"model":"m","x":{"bootstrap_room":1}}`, prepare.Fields{}, `{"model":"m","x":{"bootstrap_room":1}}`)
}

func TestUnchangedBodyIsNotCopied(t *testing.T) {
	body := append(make([]byte, 0, 1024), `{"model":"m"}`...)
	var r prepare.Request
	if err := r.Parse(body); err != nil {
		t.Fatal(err)
	}
	if got := r.Outgoing(prepare.Fields{}); &got[0] != &body[0] {
		t.Error("nothing to change, and yet copied")
	}
	if got := r.Outgoing(prepare.Fields{RID: "a"}); &got[0] != &body[0] {
		t.Error("copied although the capacity suffices")
	}
}

func TestEngineHeader(t *testing.T) {
	in := http.Header{}
	for _, name := range []string{"authorization", "x-request-id", "x-correlation-id", "traceparent", "tracestate",
		"x-request-id-span", "x-sgl-routing-key", "x-sgl-decode-url", "x-request-id2", "x-sg-foo", "foo-x-sgl-bar", "x-sgl",
		"cookie", "host", "connection", "transfer-encoding", "content-length", "content-type", "accept", "user-agent",
		"x-data-parallel-rank", "accept-encoding", "expect", "te", "upgrade", "idempotency-key", "x-router-error-code"} {
		in.Set(name, "v")
	}
	got := prepare.EngineHeader(in, true)
	names := slices.Sorted(maps.Keys(got))
	want := []string{"Accept", "Authorization", "Content-Type", "Traceparent", "Tracestate", "User-Agent",
		"X-Correlation-Id", "X-Request-Id", "X-Request-Id-Span", "X-Sgl-Routing-Key"}
	if !slices.Equal(names, want) {
		t.Errorf("got  %s\nwant %s", names, want)
	}
	if got.Get("Accept") != "text/event-stream" || got.Get("Content-Type") != "application/json" || got.Get("User-Agent") != "" {
		t.Errorf("wrong values: %v", got)
	}
	if got := prepare.EngineHeader(in, false); got.Get("Accept") != "" {
		t.Error("the client's accept header passed")
	}
}

func TestKey(t *testing.T) {
	h := http.Header{"X-Session": {"a b", "c"}, "X-Bad": {"\u00e9"}, "X-Empty": {""}}
	for name, want := range map[string]string{"x-session": "a b", "x-bad": "", "x-empty": "", "x-none": "", "": ""} {
		if got := prepare.Key(h, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// decode reads a top-level object into name and value, the last copy winning as
// it does in engines. Values are compared as they mean.
func decode(t *testing.T, body []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return m
}

func seeds(f *testing.F) {
	for _, s := range []string{
		`{"model":"m"}`, `{"bootstrap_room":1,"model":"m","rid":null}`, ` {"a":[1,{"b":"\"]"}] , "model":"m","bootstrap_host":null } `,
		`{"model":"m","stream":true,"max_tokens":5,"n":2,"rid":"x"}`, `{"m\u006fdel":"m","bootstrap_p\u006frt":8}`, `[]`, `{`,
	} {
		f.Add([]byte(s))
	}
}

func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var r prepare.Request
		err := r.Parse(slices.Clone(body))
		if err != nil {
			if !errors.Is(err, prepare.ErrBody) && !errors.Is(err, prepare.ErrNoModel) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Fatal("accepted what is no JSON")
		}
		in, peak, err := r.Lengths()
		if err == nil && (in < 1 || peak != 0 && peak < in) {
			t.Fatalf("input %d, peak %d", in, peak)
		}
		if m := decode(t, body); m["model"] != r.Model {
			t.Fatalf("model %q, engines read %v", r.Model, m["model"])
		}
	})
}

func FuzzSplice(f *testing.F) {
	seeds(f)
	owned := []string{"bootstrap_host", "bootstrap_port", "bootstrap_room", "bootstrap_pair_key",
		"routed_dp_rank", "data_parallel_rank", "disagg_prefill_dp_rank"}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, slack := range []int{0, prepare.Slack} {
			var r prepare.Request
			in := append(make([]byte, 0, len(body)+slack), body...)
			if r.Parse(in) != nil {
				return
			}
			want := decode(t, body)
			for _, name := range owned {
				delete(want, name)
			}
			want["bootstrap_host"], want["bootstrap_port"], want["bootstrap_room"] = "[::1]", nil, json.Number("9")
			add := prepare.Fields{Bootstrap: &prepare.Bootstrap{Host: "[::1]", Room: 9}}
			if !r.OwnID {
				add.RID = "0123456789abcdef0123456789abcdef"
				want["rid"] = add.RID
			}
			got := decode(t, r.Outgoing(add))
			if want["rid"] == nil { // an own id may be followed by a null, which is cut
				delete(want, "rid")
				delete(got, "rid")
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%q:\ngot  %v\nwant %v", body, got, want)
			}
		}
	})
}

func chat(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"messages":[`)
	for i := 0; b.Len() < size-120; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"role":"user","content":"` + strings.Repeat("All work and no play. ", 20) + `\n"}`)
	}
	b.WriteString(`],"model":"m","stream":true,"max_tokens":256}`)
	return append(make([]byte, 0, b.Len()+prepare.Slack), b.Bytes()...)
}

func benchmark(b *testing.B, body []byte) {
	var r prepare.Request
	add := prepare.Fields{RID: strings.Repeat("a", 32)}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Parse(body); err != nil {
			b.Fatal(err)
		}
		r.Outgoing(add)
		body[len(body)-1] = '}'
	}
}

func BenchmarkParseAndSplice(b *testing.B) {
	for _, size := range []int{4 << 10, 32 << 10, 32 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) { benchmark(b, chat(size)) })
	}
	for name, unit := range map[string]string{"brackets": "[],", "quotes": `"",`, "escapes": `"\\\"",`} {
		n := (32 << 20) / len(unit)
		body := []byte(`{"model":"m","x":[` + strings.Repeat(unit, n) + `0]}`)
		b.Run("hostile/"+name, func(b *testing.B) { benchmark(b, slices.Grow(body, prepare.Slack)) })
	}
}
