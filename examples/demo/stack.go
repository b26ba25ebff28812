package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// stopLimit is how long a process may take to end after an interrupt.
const stopLimit = 5 * time.Second

// process is one command of the stack.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string        // file of its standard error
	done chan struct{} // closed when it has ended
	err  error         // how; read only after done
}

// engine is what a simulated engine says about itself.
type engine struct {
	ID            string `json:"id"`
	Role          string `json:"role"`
	URL           string `json:"url"`
	BootstrapPort int    `json:"bootstrap_port"`
}

// setup is what a demonstration runs.
type setup struct {
	// example is the configuration, relative to the root.
	example string
	engines []engineArgs
	// adapt changes the text of the example before it is compiled; nil is no
	// change.
	adapt func(text string) (string, error)
}

// engineArgs are the id and role of an engine, and what else its command is told.
type engineArgs struct {
	id, role string
	args     []string
}

// stack is everything that runs: engines and the router.
type stack struct {
	setup
	out io.Writer
	dir string // for files of this run
	bin string

	started    []engine
	config     string // the example, with the addresses of this run
	plan       string
	url, admin string

	mu        sync.Mutex
	processes []*process
	stopping  bool
	failed    chan *process // one that ended too early
}

// start brings the stack up, once the commands are there.
func (s *stack) start(ctx context.Context) error {
	s.failed = make(chan *process, 1)
	if err := s.step(ctx, fmt.Sprintf("Start %d simulated engines", len(s.engines)), s.startEngines); err != nil {
		return err
	}
	if err := s.step(ctx, "Write the example with their addresses, check and compile it", s.compile); err != nil {
		return err
	}
	return s.step(ctx, "Serve the plan", s.serve)
}

// step does one thing under a heading and tells how long it took.
func (s *stack) step(ctx context.Context, title string, do func(context.Context) error) error {
	began := time.Now()
	fmt.Fprintf(s.out, "== %s\n", title)
	if err := do(ctx); err != nil {
		return cause(ctx, err)
	}
	fmt.Fprintf(s.out, "   %.1f s\n", time.Since(began).Seconds())
	return nil
}

// cause prefers the reason why ctx ended over what that broke.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// build makes the three commands, unless they were given.
func (s *stack) build(ctx context.Context) error {
	if s.bin == "" {
		s.bin = filepath.Join(s.dir, "bin")
		// A trailing separator makes go build create the folder.
		to := s.bin + string(filepath.Separator)
		if err := s.tool(ctx, "go", "build", "-trimpath", "-o", to, "./cmd/shunt", "./cmd/shuntd", "./cmd/enginesim"); err != nil {
			return err
		}
	}
	abs, err := filepath.Abs(s.bin)
	s.bin = abs
	return err
}

// path returns one of the commands.
func (s *stack) path(name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(s.bin, name)
}

// tool shows and runs a command that ends by itself, and shows what it says.
func (s *stack) tool(ctx context.Context, name string, args ...string) error {
	text, err := s.output(ctx, name, args...)
	s.print(text)
	return err
}

// output shows and runs a command that ends by itself, and returns what it says.
func (s *stack) output(ctx context.Context, name string, args ...string) (string, error) {
	fmt.Fprintf(s.out, "   $ %s %s\n", filepath.Base(name), s.short(strings.Join(args, " ")))
	text, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return string(text), err
}

// print shows what a command said.
func (s *stack) print(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(s.out, "     %s", s.short(line))
	}
}

// short leaves the folder of this run out of a text.
func (s *stack) short(text string) string {
	return strings.ReplaceAll(text, s.dir+string(filepath.Separator), "")
}

// launch starts a process that runs until the stack stops. Its standard output
// is returned, its standard error goes to a file.
func (s *stack) launch(name, command string, args ...string) (*process, io.Reader, error) {
	p := &process{name: name, log: filepath.Join(s.dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close() // the process has its own copy
	p.cmd = exec.Command(s.path(command), args...)
	p.cmd.Stderr = log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, nil, errors.New("the stack is stopping")
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, err
	}
	s.processes = append(s.processes, p)
	lines := bufio.NewReader(stdout)
	first := make(chan string, 1)
	go func() {
		line, _ := lines.ReadString('\n')
		first <- line
		_, _ = io.Copy(io.Discard, lines) // until the process ends
		p.err = p.cmd.Wait()
		if p.err == nil {
			p.err = errors.New("exit status 0")
		}
		close(p.done)
		s.report(p)
	}()
	return p, &lazyLine{first: first}, nil
}

// lazyLine reads the first line of a process once it is there.
type lazyLine struct {
	first <-chan string
	text  io.Reader
}

func (l *lazyLine) Read(b []byte) (int, error) {
	if l.text == nil {
		l.text = strings.NewReader(<-l.first)
	}
	return l.text.Read(b)
}

// report makes the end of a process known unless it was asked to end.
func (s *stack) report(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	select {
	case s.failed <- p:
	default: // one is enough
	}
}

// startEngines starts the engines, each a process, and waits until all accept
// requests.
func (s *stack) startEngines(context.Context) error {
	type started struct {
		p   *process
		out io.Reader
	}
	var all []started
	for _, e := range s.engines {
		p, out, err := s.launch(e.id, "enginesim", append([]string{"--id", e.id, "--role", e.role, "--model", model}, e.args...)...)
		if err != nil {
			return err
		}
		all = append(all, started{p, out})
	}
	for _, a := range all {
		var ready struct {
			Engines []engine `json:"engines"`
		}
		if err := json.NewDecoder(a.out).Decode(&ready); err != nil || len(ready.Engines) != 1 {
			return fmt.Errorf("engine %s did not start", a.p.name)
		}
		e := ready.Engines[0]
		s.started = append(s.started, e)
		bootstrap := ""
		if e.BootstrapPort != 0 {
			bootstrap = fmt.Sprintf(", bootstrap port %d", e.BootstrapPort)
		}
		fmt.Fprintf(s.out, "   %s %-8s %s%s\n", e.ID, e.Role, e.URL, bootstrap)
	}
	return nil
}

// compile turns the example into a plan for the engines of this run.
func (s *stack) compile(ctx context.Context) error {
	raw, err := os.ReadFile(s.example)
	if err != nil {
		return err
	}
	text := string(raw)
	if s.adapt != nil {
		if text, err = s.adapt(text); err != nil {
			return fmt.Errorf("%s: %w", s.example, err)
		}
	}
	s.config, s.plan = filepath.Join(s.dir, "routing.yaml"), filepath.Join(s.dir, "plan.json")
	adapted, err := readdress(text, s.started)
	if err != nil {
		return fmt.Errorf("%s: %w", s.example, err)
	}
	if err := os.WriteFile(s.config, []byte(adapted), 0o600); err != nil {
		return err
	}
	if err := s.tool(ctx, s.path("shunt"), "check", s.config); err != nil {
		return err
	}
	said, err := s.output(ctx, s.path("shunt"), "compile", "-o", s.plan, s.config)
	if lines := slices.Collect(strings.Lines(said)); err == nil && len(lines) > 0 {
		said = lines[len(lines)-1] // the rest is what check said
	}
	s.print(said)
	return err
}

// serve starts the router on free ports and waits until it is ready.
func (s *stack) serve(ctx context.Context) error {
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	admin, err := freeAddress()
	if err != nil {
		return err
	}
	s.url, s.admin = "http://"+listen, "http://"+admin
	fmt.Fprintf(s.out, "   $ shuntd --plan plan.json --listen %s --admin %s\n", listen, admin)
	p, _, err := s.launch("shuntd", "shuntd", "--plan", s.plan, "--listen", listen, "--admin", admin)
	if err != nil {
		return err
	}
	for {
		if ready(ctx, s.url+"/readyz") {
			fmt.Fprintf(s.out, "   ready at %s\n", s.url)
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("shuntd ended: %w", p.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func ready(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// freeAddress returns a loopback address that nobody listens on at the moment.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// stop ends all processes, the router first, and waits for them.
func (s *stack) stop() {
	s.mu.Lock()
	s.stopping = true
	processes := s.processes
	s.mu.Unlock()
	for i := len(processes) - 1; i >= 0; i-- {
		p := processes[i]
		if p.cmd.Process.Signal(os.Interrupt) != nil {
			_ = p.cmd.Process.Kill() // ended already, or cannot be interrupted
		}
	}
	late := time.After(stopLimit)
	for _, p := range processes {
		select {
		case <-p.done:
			continue
		case <-late:
			late = time.After(0) // for the next ones too
		}
		fmt.Fprintf(s.out, "   %s does not stop and is killed\n", p.name)
		_ = p.cmd.Process.Kill() // it may have ended in between
		<-p.done
	}
}

// showLogs prints the end of what the processes wrote, after a failure.
func (s *stack) showLogs() {
	for _, p := range s.processes {
		text, err := os.ReadFile(p.log)
		if err != nil || len(text) == 0 {
			continue
		}
		const most = 2000
		if len(text) > most {
			text = text[len(text)-most:]
		}
		fmt.Fprintf(s.out, "-- log of %s\n%s\n", p.name, text)
	}
}
