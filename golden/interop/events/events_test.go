package events_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// want returns a setting of run.sh, and skips the test without it.
func want(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" || v == "-" {
		t.Skip("run.sh sets " + name)
	}
	return v
}

func TestHashes(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(want(t, "SHUNT_EVENTS_OUT"), "hashes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Scheme, Salt, Seed string
		BlockSize          int `json:"block_size"`
		Bigram             bool
		Tokens             []uint32
		Hashes             []int64
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for i, c := range cases {
		h := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: c.BlockSize, Bigram: c.Bigram, Seed: c.Seed}
		if c.Scheme == "vllm" {
			h.Scheme = prefix.VLLM
		}
		if got := h.Append(nil, prefix.Prompt{Tokens: c.Tokens, Salt: c.Salt}); !slices.Equal(got, c.Hashes) {
			t.Fatalf("case %d, %s, %d tokens, blocks of %d, bigram %v, salt %q: hashes differ", i, c.Scheme, len(c.Tokens), c.BlockSize, c.Bigram, c.Salt)
		}
		counts[c.Scheme]++
	}
	if counts["sglang"] < 1000 {
		t.Errorf("only %v", counts)
	}
	t.Logf("equal for %v prompts", counts)
}

// process is a running publish.py.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, engine, root string, port, ranks, life int, more ...string) *process {
	t.Helper()
	args := append([]string{"publish.py", engine, root, want(t, "SHUNT_EVENTS_OUT"),
		fmt.Sprint(port), fmt.Sprint(ranks), fmt.Sprint(life)}, more...)
	p := &process{t: t, cmd: exec.Command(want(t, "SHUNT_EVENTS_PYTHON"), args...)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 64<<20)
	t.Cleanup(p.kill)
	return p
}

// kill ends the process without a farewell.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// prompt is what the engine says it holds of a prompt, by rank.
type prompt struct {
	Tokens []uint32
	Salt   string
	Depths []int
}

func (p *process) do(command string) []prompt {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("%s: the publisher ended: %v", command, p.out.Err())
	}
	var answer struct{ Prompts []prompt }
	if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil {
		p.t.Fatal(err)
	}
	return answer.Prompts
}

// side is a feed of prefixes and one of load over one engine.
type side struct {
	t      *testing.T
	index  *prefix.Index
	space  *prefix.Namespace
	feed   *feed.Feed
	engine *fleet.Engine
	set    *metrics.Set
}

func follow(t *testing.T, scheme prefix.Scheme, port int) *side {
	t.Helper()
	s := &side{t: t, index: prefix.NewIndex(0), space: new(prefix.Namespace), set: metrics.NewSet()}
	f := new(fleet.Fleet)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	if err := f.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{{ID: "a", URL: url, Role: fleet.Plain}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	s.engine = f.Engines("m")[0]
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	s.feed = feed.New(feed.Options{Model: "m", Index: s.index, Namespace: s.space, Scheme: scheme, Seed: "0",
		Log: log, Metrics: s.set, Recheck: 200 * time.Millisecond})
	loads := load.NewFeed(load.Options{Model: "m", Table: new(load.Table), Log: log, Metrics: s.set, Recheck: time.Second})
	s.feed.SetEngines([]*fleet.Engine{s.engine})
	loads.SetEngines([]*fleet.Engine{s.engine})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- s.feed.Run(ctx) }()
	go func() { done <- loads.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		<-done
	})
	return s
}

// agrees waits until the index knows exactly what the engine says.
func (s *side) agrees(prompts []prompt) {
	s.t.Helper()
	var wrong string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if wrong = s.differs(prompts); wrong == "" {
			return
		}
	}
	var dump strings.Builder
	s.set.WritePrometheus(&dump)
	s.t.Fatalf("%s\n%s", wrong, &dump)
}

func (s *side) differs(prompts []prompt) string {
	h, known := s.space.Hashing()
	if !known {
		return "the block size is not known"
	}
	for i, p := range prompts {
		got := make([]int, len(p.Depths))
		for _, d := range s.index.Depths(h.Append(nil, prefix.Prompt{Tokens: p.Tokens, Salt: p.Salt})) {
			got[d.Rank] = d.Blocks
		}
		if !slices.Equal(got, p.Depths) {
			return fmt.Sprintf("prompt %d: depths by rank %v, the engine says %v", i, got, p.Depths)
		}
	}
	return ""
}

func (s *side) until(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			var dump strings.Builder
			s.set.WritePrometheus(&dump)
			s.t.Fatalf("never: %s; %+v\n%s", what, s.index.Stats(), &dump)
		}
	}
}

// freePorts finds n ports in a row.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		first := l.Addr().(*net.TCPAddr).Port
		held := []net.Listener{l}
		for i := 1; i < n; i++ {
			if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i)); err == nil {
				held = append(held, l)
			}
		}
		for _, l := range held {
			l.Close()
		}
		if len(held) == n {
			return first
		}
	}
	t.Fatal("no free ports in a row")
	return 0
}

func TestEvents(t *testing.T) {
	f := func(name, setting string, scheme prefix.Scheme) {
		t.Run(name, func(t *testing.T) {
			root := want(t, setting)
			port := freePorts(t, 8)
			p := start(t, name, root, port, 2, 1)
			// A part is published before anybody listens, and comes by replay.
			p.do("prompts 100")
			s := follow(t, scheme, port)
			s.agrees(p.do("prompts 300"))
			s.agrees(p.do("clear 1"))
			s.agrees(p.do("prompts 100"))
			if name == "sglang" {
				s.until("a native load report of both ranks", func() bool {
					p.do("load")
					l := s.engine.Load()
					return l != nil && l.Native && l.Running == 6 && l.MaxRunning == 128
				})
			}
			// Another process takes the place, with another history.
			p.kill()
			q := start(t, name, root, port, 2, 2)
			s.agrees(q.do("prompts 50"))
			for _, old := range p.last() {
				if d := s.differs([]prompt{old}); d != "" {
					t.Errorf("stale: %s", d)
				}
			}
		})
	}
	f("sglang", "SHUNT_EVENTS_SGLANG", prefix.SGLang)
	f("vllm", "SHUNT_EVENTS_ROOT_VLLM", prefix.VLLM)
}

// last is the final state of a killed process with nothing held.
func (p *process) last() []prompt {
	var answer struct{ Prompts []prompt }
	_ = json.Unmarshal(p.out.Bytes(), &answer)
	for i := range answer.Prompts {
		clear(answer.Prompts[i].Depths)
	}
	return answer.Prompts
}

// TestFlood publishes far more than the publisher's high-water mark lets through,
// so that messages are dropped, and more than its replay can bring back. Some
// knowledge may go, but in the end the index claims nothing that the engine does
// not hold, and knows what is published from then on. A dropped message shows
// with the next one, so the test goes on publishing.
func TestFlood(t *testing.T) {
	root := want(t, "SHUNT_EVENTS_SGLANG")
	port := freePorts(t, 8)
	p := start(t, "sglang", root, port, 1, 3, "10")
	s := follow(t, prefix.SGLang, port)
	s.agrees(p.do("prompts 5"))
	before := len(p.do("flood 20000"))
	s.until("the index claims nothing but what the engine holds", func() bool {
		all := p.do("prompts 1")
		for range 20 {
			if !s.claimsTooMuch(all) && s.knowsLatest(all[before:]) {
				return true
			}
			time.Sleep(5 * time.Millisecond)
		}
		return false
	})
	var dump strings.Builder
	s.set.WritePrometheus(&dump)
	t.Logf("%+v\n%s", s.index.Stats(), &dump)
}

// claimsTooMuch looks for prompts held deeper than the engine says, and for
// blocks of the flood, all of which were removed.
func (s *side) claimsTooMuch(all []prompt) bool {
	h, _ := s.space.Hashing()
	for _, p := range all {
		for _, d := range s.index.Depths(h.Append(nil, prefix.Prompt{Tokens: p.Tokens, Salt: p.Salt})) {
			if d.Blocks > p.Depths[d.Rank] {
				return true
			}
		}
	}
	for i := range int64(20000) {
		if len(s.index.Depths([]int64{1_000_000 + i})) > 0 {
			return true
		}
	}
	return false
}

// knowsLatest demands that the last prompt that the engine stored is known.
func (s *side) knowsLatest(all []prompt) bool {
	for _, p := range slices.Backward(all) {
		if p.Depths[0] > 0 {
			return s.differs([]prompt{p}) == ""
		}
	}
	return false
}
