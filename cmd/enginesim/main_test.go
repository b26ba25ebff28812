package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running starts the command, returns the engines of its first line, and stops
// it at the end of the test.
func running(t *testing.T, args ...string) []address {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"enginesim"}, args...), in, &stderr); in.Close() }()
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != exitFine {
			t.Errorf("exit code %d: %s", c, stderr.String())
		}
	})
	var ready struct{ Engines []address }
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // ends with the command
	return ready.Engines
}

func fetch(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr, Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestOneEngine(t *testing.T) {
	e := running(t, "--id", "P9", "--role", "prefill", "--model", "qwen", "--fault", `{"kind":"status","status":429}`)
	if len(e) != 1 || e[0].ID != "P9" || e[0].Role != "prefill" || e[0].BootstrapPort == 0 {
		t.Fatalf("%+v", e)
	}
	if status, info := fetch(t, "GET", e[0].URL+"/server_info", ""); status != 200 || !strings.Contains(info, `"qwen"`) {
		t.Errorf("%d %s", status, info)
	}
	if status, _ := fetch(t, "POST", e[0].URL+"/generate", `{}`); status != 429 {
		t.Errorf("status %d", status)
	}
}

func TestFleet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.json")
	fleet := `[{"id":"A"},{"id":"B","role":"decode","model":"other","inter_token":"1ms","max_running":3,"seed":7}]`
	if err := os.WriteFile(path, []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	e := running(t, "--fleet", path, "--model", "common", "--kv-tokens", "1234")
	if len(e) != 2 || e[0].ID != "A" || e[0].Role != "plain" || e[1].Role != "decode" {
		t.Fatalf("%+v", e)
	}
	_, a := fetch(t, "GET", e[0].URL+"/server_info", "")
	_, b := fetch(t, "GET", e[1].URL+"/server_info", "")
	if !strings.Contains(a, `"common"`) || !strings.Contains(a, `"max_total_num_tokens":1234`) {
		t.Error(a)
	}
	for _, want := range []string{`"other"`, `"max_total_num_tokens":1234`, `"max_running_requests":3`, `"random_seed":7`} {
		if !strings.Contains(b, want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		f, err := os.CreateTemp(dir, "fleet")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	f := func(code int, want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a command that does start ends at once
		got := run(ctx, append([]string{"enginesim"}, args...), &stdout, &stderr)
		if got != code || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit code %d, %s", args, got, stderr.String())
		}
	}
	f(exitUsage, "nonsense", "--nonsense")
	f(exitUsage, "unexpected argument", "extra")
	f(exitUsage, "explode", "--fault", `{"kind":"explode"}`)
	f(exitUsage, "no such file", "--fleet", filepath.Join(dir, "missing"))
	f(exitUsage, "no engines", "--fleet", file(`[]`))
	f(exitUsage, "used twice", "--fleet", file(`[{"id":"A"},{"id":"A"}]`))
	f(exitUsage, "speed", "--fleet", file(`[{"id":"A","speed":1}]`))
	f(exitUsage, "_ in place of -", "--fleet", file(`[{"id":"A","block-size":1}]`))
	f(exitUsage, "text after", "--fleet", file(`[{"id":"A"}] x`))
	f(exitUsage, "soon", "--fleet", file(`[{"id":"A","inter_token":"soon"}]`))
	f(exitUsage, "exclude", "--id", "x", "--fleet", file(`[{"id":"A"}]`))
	f(exitUsage, "role", "--role", "both")
	f(exitUsage, "negative", "--kv-tokens", "-1")
	taken := running(t)
	f(exitJob, "in use", "--listen", strings.TrimPrefix(taken[0].URL, "http://"))
	f(exitFine, "")
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"enginesim", "--help"}, &stdout, &stderr); code != exitFine {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	for _, want := range []string{"--bootstrap-listen", "--fleet", "inter_token"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %s in help: %s", want, stdout.String())
		}
	}
}
