package main

import (
	"os"
	"strings"
	"testing"
)

func engines() []engine {
	return []engine{
		{ID: "P1", Role: "prefill", URL: "http://127.0.0.1:1", BootstrapPort: 2},
		{ID: "D1", Role: "decode", URL: "http://127.0.0.1:3"},
	}
}

func TestReaddress(t *testing.T) {
	f := func(text, want, failure string) {
		t.Helper()
		got, err := readdress(text, engines())
		if failure == "" && (err != nil || got != want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if failure != "" && (err == nil || !strings.Contains(err.Error(), failure)) {
			t.Errorf("%q: error %v, want %q", text, err, failure)
		}
	}
	p, d := `- {id: P1, url: "http://x", bootstrap_port: 8998}`+"\n", `- {id: D1, url: "http://y"} # why`+"\n"
	f("a\n"+p+d, "a\n- {id: P1, url: \"http://127.0.0.1:1\", bootstrap_port: 2}\n- {id: D1, url: \"http://127.0.0.1:3\"} # why\n", "")
	f(p, "", "no engine D1")
	f(p+p+d, "", "line 2")
	f("- {id: P1, url: \"http://x\"}\n"+d, "", "line 1")
}

func TestReaddressFindsAllEnginesOfTheExample(t *testing.T) {
	text, err := os.ReadFile("../pd-two-buckets/routing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := readdress(string(text), engines())
	if err != nil || !strings.Contains(got, "http://127.0.0.1:3") || strings.Count(got, "\n") != strings.Count(string(text), "\n") {
		t.Errorf("%v: %s", err, got)
	}
}
