package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child with its output in a file.
type process struct {
	cmd *exec.Cmd
	log *os.File
}

// start starts a child in a process group of its own.
func start(ctx context.Context, env []string, name string, args ...string) (*process, error) {
	log, err := os.CreateTemp("", "bench-log")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, log}, nil
}

// stop ends the child and its children, and waits for it.
func (p *process) stop() {
	// The group may be gone already, and its exit status is that of a signal.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
	p.log.Close()
	os.Remove(p.log.Name())
}

func (p *process) output() string {
	data, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// ticks is the unit of times in /proc on every Linux that Go runs on.
const ticks = 10 * time.Millisecond

// cpu is the processor time of all processes in the group so far.
func (p *process) cpu() time.Duration {
	var sum time.Duration
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		_, after, ok := strings.Cut(string(data), ") ") // the name may hold spaces
		f := strings.Fields(after)
		if !ok || len(f) < 13 || f[2] != strconv.Itoa(p.cmd.Process.Pid) {
			continue
		}
		for _, n := range f[11:13] { // user and system
			v, err := strconv.ParseInt(n, 10, 64)
			if err == nil {
				sum += time.Duration(v) * ticks
			}
		}
	}
	return sum
}

// freeAddress is a loopback address that nobody listens on right now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close() // the address is what is wanted
	return l.Addr().String(), nil
}

// await waits until something accepts connections.
func await(ctx context.Context, addr string, p *process) error {
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("nothing listens on %s: %s", addr, p.output())
}
