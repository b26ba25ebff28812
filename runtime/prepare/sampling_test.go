package prepare_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"shunt/runtime/prepare"
)

func exact(name string, value float64) prepare.Rule {
	p, _ := prepare.ParamOf(name)
	return prepare.Rule{Param: p, Value: value}
}

func band(name string, low, high float64) prepare.Rule {
	p, _ := prepare.ParamOf(name)
	return prepare.Rule{Param: p, Band: true, Min: low, Max: high}
}

func TestSampling(t *testing.T) {
	f := func(allow bool, body, want string, rules ...prepare.Rule) {
		t.Helper()
		for _, slack := range []int{0, prepare.Slack} {
			var r prepare.Request
			if err := r.Parse(append(make([]byte, 0, len(body)+slack), body...)); err != nil {
				t.Errorf("%s: %v", body, err)
				return
			}
			var said []string
			for _, v := range r.Sample(&prepare.Sampling{Allow: allow, Rules: rules}) {
				said = append(said, v.Error())
			}
			got := strings.Join(said, "; ")
			if got == "" {
				got = string(r.Outgoing(prepare.Fields{}))
			}
			if got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
			}
		}
	}
	warm, top := exact("temperature", 0.7), band("top_p", 0.5, 1)
	f(false, `{"model":"m"}`, `{"model":"m","temperature":0.7}`, warm, top)
	f(false, `{"model":"m","temperature":null}`, `{"model":"m","temperature":null,"temperature":0.7}`, warm)
	f(false, `{"model":"m","temperature":0.7}`, `{"model":"m","temperature":0.7}`, warm)
	f(false, `{"model":"m","temperature":"0.70"}`, `{"model":"m","temperature":"0.70"}`, warm)
	f(false, `{"model":"m","temperature":1,"temperature":0.7}`, `{"model":"m","temperature":1,"temperature":0.7}`, warm)
	f(false, `{"model":"m","temperature":0.7,"temperature":null}`, `{"model":"m","temperature":0.7,"temperature":null,"temperature":0.7}`, warm)
	f(false, `{"model":"m","temperature":0.8}`, "sampling parameter temperature must be 0.7, got 0.8", warm)
	f(true, `{"model":"m","temperature":0.8}`, `{"model":"m","temperature":0.8}`, warm)
	f(true, `{"model":"m"}`, `{"model":"m","temperature":0.7}`, warm)
	f(false, `{"model":"m","top_p":0.5}`, `{"model":"m","top_p":0.5}`, top)
	f(false, `{"model":"m","top_p":0.4,"temperature":[1]}`,
		"sampling parameter temperature must be 0.7, got [1]; sampling parameter top_p must be from 0.5 to 1, got 0.4", warm, top)
	f(false, `{"model":"m","n":true}`, `{"model":"m","n":true}`, exact("n", 1))
	f(false, `{"model":"m","n":false}`, "sampling parameter n must be 1, got false", exact("n", 1))
	f(false, `{"model":"m","top_k":" 1_0 "}`, `{"model":"m","top_k":" 1_0 "}`, exact("top_k", 10))
	f(false, `{"model":"m","top_k":"1__0"}`, `sampling parameter top_k must be 10, got "1__0"`, exact("top_k", 10))
	f(false, `{"model":"m","top_k":"0xA"}`, `sampling parameter top_k must be 10, got "0xA"`, exact("top_k", 10))
	f(false, `{"model":"m","top_k":"nan"}`, `sampling parameter top_k must be 10, got "nan"`, exact("top_k", 10))
	f(false, `{"model":"m","top_k":1e400}`, "sampling parameter top_k must be 10, got 1e400", exact("top_k", 10))
	f(true, `{"model":"m","top_k":1e400}`, `{"model":"m","top_k":1e400}`, exact("top_k", 10))
	f(false, `{"model":"m","top_k":"`+strings.Repeat("1", 65)+`"}`,
		`sampling parameter top_k must be 10, got "`+strings.Repeat("1", 63)+"...", exact("top_k", 10))
	f(false, `{"model":"m","bootstrap_room":1}`, `{"model":"m","n":4}`, exact("n", 4))
}

// TestSeveralByDefault: more than one completion by the model's choice counts as
// asked for, since the router must not name such a request.
func TestSeveralByDefault(t *testing.T) {
	var r prepare.Request
	if err := r.Parse([]byte(`{"model":"m"}`)); err != nil {
		t.Fatal(err)
	}
	if r.Sample(&prepare.Sampling{Rules: []prepare.Rule{exact("n", 2)}}); !r.Several {
		t.Error("not several")
	}
}

func TestInputIDs(t *testing.T) {
	const body = `{"model":"m","input_ids":null}`
	for _, slack := range []int{0, prepare.Slack} {
		var r prepare.Request
		if err := r.Parse(append(make([]byte, 0, len(body)+slack), body...)); err != nil {
			t.Fatal(err)
		}
		r.Sample(&prepare.Sampling{Rules: []prepare.Rule{exact("temperature", 1)}})
		out := r.Outgoing(prepare.Fields{RID: "x", InputIDs: []uint32{0, 1, 4294967295}})
		if want := `{"model":"m","input_ids":null,"temperature":1,"rid":"x","input_ids":[0,1,4294967295]}`; string(out) != want {
			t.Errorf("got %s, want %s", out, want)
		}
	}
}

func TestCacheFacts(t *testing.T) {
	f := func(body, salt, lora string) {
		t.Helper()
		var r prepare.Request
		if err := r.Parse([]byte(body)); err != nil || r.CacheSalt != salt || r.LoRA != lora {
			t.Errorf("%s: salt %q, adapter %q, %v", body, r.CacheSalt, r.LoRA, err)
		}
	}
	f(`{"model":"m"}`, "", "")
	f(`{"model":"m","cache_salt":"tenant\u0020a","lora_path":"l"}`, "tenant a", "l")
	f(`{"model":"m","cache_salt":null,"lora_path":null}`, "", "")
	f(`{"model":"m","cache_salt":7,"lora_path":["a","b"]}`, "7", `["a","b"]`)
	f(`{"model":"m","cache_salt":"a","cache_salt":"b"}`, "b", "")
}

func TestTargets(t *testing.T) {
	f := func(name, value, want string) {
		t.Helper()
		h := http.Header{name: {value}}
		got := ""
		if ms, ok, err := prepare.TTFT(h); ok || err != nil {
			got = fmt.Sprintf("ttft %d %v", ms, err)
		}
		if rate, ok, err := prepare.TPS(h); ok || err != nil {
			got = fmt.Sprintf("tps %v %v", rate, err)
		}
		if got != want {
			t.Errorf("%s: %q: got %q, want %q", name, value, got, want)
		}
	}
	f("X-Other", "1", "")
	f(prepare.TTFTHeader, "250", "ttft 250 <nil>")
	for _, bad := range []string{"", "0", "-1", "1.5", "1e3", "99999999999999999999", " 1"} {
		f(prepare.TTFTHeader, bad, "ttft 0 TTFT SLO header must be a positive integer")
	}
	f(prepare.TTFTHeader, "１", "ttft 0 TTFT SLO header must be ASCII")
	f(prepare.TPSHeader, "0.5", "tps 0.5 <nil>")
	for _, bad := range []string{"", "0", "-1", "NaN", "inf", "1e400", "x"} {
		if _, ok, err := prepare.TPS(http.Header{prepare.TPSHeader: {bad}}); ok || err == nil || err.Error() != "TPS SLO header must be a finite positive number" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	f(prepare.TPSHeader, "é", "tps 0 TPS SLO header must be ASCII")
}

// FuzzSample: whatever a client sends, what engines read stays the client's except
// for what the rules add, and a rejected request is never changed.
func FuzzSample(f *testing.F) {
	f.Add([]byte(`{"model":"m","temperature":"1_0","top_p":null}`))
	f.Add([]byte(`{"model":"m","n":1e400}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var r prepare.Request
		if r.Parse(append([]byte(nil), body...)) != nil {
			return
		}
		rules := &prepare.Sampling{Rules: []prepare.Rule{exact("temperature", 0.7), band("top_p", 0, 1), exact("n", 1)}}
		violations := r.Sample(rules)
		out := r.Outgoing(prepare.Fields{})
		if !json.Valid(out) {
			t.Fatalf("%s became %s", body, out)
		}
		if len(violations) > 0 {
			return
		}
		if got := decode(t, out); got["temperature"] == nil || got["n"] == nil {
			t.Fatalf("%s became %s", body, out)
		}
	})
}
