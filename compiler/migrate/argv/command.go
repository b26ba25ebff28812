package argv

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"shunt/compiler/diag"
)

// maxArgs bounds the elements of one command line.
const maxArgs = 10_000

// candidate is a command line that may start the router.
type candidate struct {
	// names are what Options.Container takes, the shortest first. Another candidate
	// may have a short one too.
	names   []string
	pos     diag.Pos
	program string
	args    []*word
	env     []Env
	// sure says that the program has the name of a router, and likely that the
	// arguments look like its own.
	sure, likely bool
	// grace is Invocation.GraceSeconds.
	grace uint64
	// files are made on demand, for they may be large.
	files func() map[string]File
	// findings are those about this command, which nobody wants to read when
	// another is taken.
	findings diag.List
}

// routerName is the name of a router's program, image or module.
var routerName = regexp.MustCompile(`^(sgl|sglang)[-_]?router\b`)

// routerModule is the module of a router that Python runs.
var routerModule = regexp.MustCompile(`^(sgl|sglang)_router(\.|$)`)

// python is the interpreter, with its version.
var python = regexp.MustCompile(`^(python|pypy)[0-9.]*$`)

// assignment is what env takes for a variable.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// likelyFlags are options that only a router has.
func likelyFlags() []string {
	return []string{
		"--model-id", "--worker-urls", "--service-discovery", "--prefill-selector", "--decode-selector",
		"--bucket-config", "--chat-routing", "--reorg-config", "--kv-indexer-endpoint", "--decode-policy",
	}
}

// wrappers are the programs that run the command that follows their own
// arguments.
func wrappers() []string {
	return []string{
		"exec", "command", "env", "nohup", "setsid", "time", "sudo", "doas", "gosu", "su-exec", "setpriv", "runuser",
		"chpst", "timeout", "nice", "ionice", "taskset", "numactl", "chrt", "stdbuf", "unbuffer", "tini", "tini-static",
		"dumb-init", "catatonit", "s6-setuidgid", "catchsegv", "systemd-run", "srun", "docker", "podman", "nerdctl",
		"builtin", "ld.so", "prlimit", "strace", "ltrace", "perf", "heaptrack", "valgrind", "cargo",
	}
}

func shells() []string { return []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"} }

// bareOptions are options of container tools that take no value.
func bareOptions() []string {
	return []string{
		"--rm", "-d", "-i", "-t", "-it", "-ti", "-dit", "-itd", "-id", "-di", "-td", "-dt", "--init", "--detach", "--interactive", "--tty",
		"--privileged", "--read-only", "-P", "--publish-all", "-q", "--quiet", "--no-healthcheck", "--sig-proxy",
	}
}

func base(name string) string { return path.Base(strings.ReplaceAll(name, `\`, "/")) }

// image returns the name of an image without its registry and version.
func image(name string) string {
	name, _, _ = strings.Cut(base(name), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// command makes a candidate of the words of a command line: it removes what runs
// the router, and reports whether the rest may be one. A shell with -c is read
// by the caller.
func (r *reader) command(words []*word) (candidate, bool) {
	c := candidate{}
	if len(words) == 0 {
		return c, false
	}
	c.pos = words[0].at
	start, length := r.program(words)
	if start >= 0 {
		c.sure = true
		for _, w := range words[:start] {
			if s := string(w.buf); assignment.MatchString(s) {
				c.env = append(c.env, envOf(s, w.at))
			}
		}
		var names []string
		for _, w := range words[start : start+length] {
			names = append(names, string(w.buf))
		}
		c.program, c.pos = strings.Join(names, " "), words[start].at
		c.args = words[start+length:]
		if cargoSeparator(words[:start]) && len(c.args) > 0 && string(c.args[0].buf) == "--" {
			c.args = c.args[1:]
		}
		return c, true
	}
	c.program = string(words[0].buf)
	c.args = words[1:]
	c.likely = slices.ContainsFunc(words, isLikely)
	return c, c.likely
}

func isLikely(w *word) bool {
	name, _, _ := strings.Cut(string(w.buf), "=")
	return slices.Contains(likelyFlags(), name)
}

// cargoSeparator reports whether cargo runs the program, whose arguments follow
// a separator of cargo.
func cargoSeparator(words []*word) bool {
	return slices.ContainsFunc(words, func(w *word) bool { return base(string(w.buf)) == "cargo" })
}

// program returns the index of the router's program and how many words it has,
// and -1 when there is none: the first word, or one that a wrapper or Python
// runs.
func (r *reader) program(words []*word) (start, length int) {
	first := base(string(words[0].buf))
	switch {
	case routerName.MatchString(first):
		return 0, 1
	case python.MatchString(first):
		return pythonModule(words, 0)
	case !slices.Contains(wrappers(), first) && !assignment.MatchString(string(words[0].buf)):
		return -1, 0
	}
	container := slices.Contains([]string{"docker", "podman", "nerdctl"}, first)
	for i := 1; i < len(words); i++ {
		text := string(words[i].buf)
		before := string(words[i-1].buf)
		if container && strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && !slices.Contains(bareOptions(), before) {
			continue // the value of an option
		}
		if python.MatchString(base(text)) {
			if start, length = pythonModule(words, i); start >= 0 {
				return start, length
			}
		}
		if strings.HasPrefix(text, "-") || assignment.MatchString(text) {
			continue
		}
		if routerName.MatchString(image(text)) {
			if i+1 < len(words) && container && routerName.MatchString(base(string(words[i+1].buf))) {
				i++ // the image, and then the program
			}
			return i, 1
		}
	}
	return -1, 0
}

// pythonModule returns the words of an interpreter at an index that runs a module
// or a script of a router.
func pythonModule(words []*word, at int) (start, length int) {
	for i := at + 1; i < len(words); i++ {
		text := string(words[i].buf)
		switch {
		case text == "-m":
			if i+1 < len(words) && routerModule.MatchString(string(words[i+1].buf)) {
				return at, i + 2 - at
			}
			return -1, 0
		case strings.HasPrefix(text, "-"):
		case strings.Contains(text, "router") && strings.HasSuffix(text, ".py"):
			return at, i + 1 - at
		default:
			return -1, 0
		}
	}
	return -1, 0
}

// shellScript looks for a shell that runs a script given as an argument, and
// returns the script with the words that become its positional parameters.
func shellScript(words []*word) (script *word, params []*word, ok bool) {
	for i, w := range words {
		name := base(string(w.buf))
		if !slices.Contains(shells(), name) {
			if i == 0 && !slices.Contains(wrappers(), name) {
				return nil, nil, false
			}
			continue
		}
		for j := i + 1; j < len(words); j++ {
			option := string(words[j].buf)
			switch {
			case option == "-o" || option == "+o":
				j++
			case strings.HasPrefix(option, "--"):
			case strings.HasPrefix(option, "-") && strings.Contains(option, "c"):
				// The other options may stand behind it.
				for j++; j < len(words) && strings.HasPrefix(string(words[j].buf), "-"); j++ {
					if string(words[j].buf) == "-o" {
						j++
					}
				}
				if j < len(words) {
					return words[j], words[j+1:], true
				}
				return nil, nil, false
			case strings.HasPrefix(option, "-") || name == "busybox" && slices.Contains(shells(), option):
			default:
				return nil, nil, false
			}
		}
	}
	return nil, nil, false
}

// choose takes the only candidate, or the one that is asked for.
func (r *reader) choose(found []candidate) Invocation {
	all := found
	if r.options.Container == "" {
		found = best(found)
	}
	if len(found) == 0 {
		f := r.add(diag.NoInvocation, diag.Pos{File: r.name}, "no command in this input starts a router")
		f.Hint = "the command is known by its name, sgl-router, or by options such as --model-id; a file with only the arguments works too"
		return Invocation{}
	}
	if r.options.Container != "" {
		found = r.named(found)
		all = found
	}
	switch len(found) {
	case 0:
		return Invocation{}
	case 1:
		return r.take(found[0], nameOf(found[0], all))
	}
	f := r.add(diag.ManyInvocations, found[0].pos, fmt.Sprintf("%d commands in this input start a router: %s", len(found), names(found, all)))
	f.Hint = "name one with --container"
	for _, c := range found[1:min(len(found), maxListed)] {
		f.Related = append(f.Related, diag.Related{Pos: c.pos, Message: nameOf(c, all) + " is here"})
	}
	return Invocation{}
}

// maxListed bounds the candidates that a finding lists.
const maxListed = 20

// nameOf returns the shortest name of a candidate that no other has.
func nameOf(c candidate, all []candidate) string {
	if len(c.names) == 0 {
		return ""
	}
	for _, name := range c.names {
		n := 0
		for _, other := range all {
			if slices.Contains(other.names, name) {
				n++
			}
		}
		if n <= 1 {
			return name
		}
	}
	return c.names[len(c.names)-1]
}

// best returns the candidates that are surest to be a router. When only the
// context says so, it takes the only one there is.
func best(found []candidate) []candidate {
	for _, is := range []func(candidate) bool{
		func(c candidate) bool { return c.sure },
		func(c candidate) bool { return c.likely },
		func(candidate) bool { return len(found) == 1 },
	} {
		var out []candidate
		for _, c := range found {
			if is(c) {
				out = append(out, c)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// named returns the candidates with the name that was asked for.
func (r *reader) named(found []candidate) []candidate {
	var out []candidate
	for _, c := range found {
		if slices.Contains(c.names, r.options.Container) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		f := r.add(diag.UnknownContainer, diag.Pos{File: r.name}, fmt.Sprintf("no command in this input has the name %q", hideLong(r.options.Container)))
		f.Hint = "the names are " + names(found, found)
	}
	return out
}

// names lists the first candidates.
func names(found, all []candidate) string {
	var out []string
	for _, c := range found[:min(len(found), maxListed)] {
		out = append(out, nameOf(c, all))
	}
	if len(found) > maxListed {
		out = append(out, "...")
	}
	return strings.Join(out, ", ")
}

// take makes the invocation of the candidate.
func (r *reader) take(c candidate, name string) Invocation {
	r.findings = append(r.findings, c.findings...)
	inv := Invocation{Kind: r.kind, Program: c.program, Container: name, Env: c.env, GraceSeconds: c.grace}
	if r.options.Container != "" {
		inv.Container = r.options.Container
	}
	if c.files != nil {
		inv.Files = c.files()
	}
	if len(c.args) > maxArgs {
		r.add(diag.TooLarge, c.pos, fmt.Sprintf("the command has %d arguments, more than %d", len(c.args), maxArgs))
		return Invocation{}
	}
	said := make(map[string]bool)
	for _, w := range c.args {
		inv.Args = append(inv.Args, w.arg())
		for _, f := range w.notes {
			if text := f.String(); !said[text] {
				said[text] = true
				r.findings.Add(f)
			}
		}
		for _, name := range w.open {
			if given, ok := strings.CutPrefix(name, "("); ok {
				f := r.add(diag.AroundInvocation, w.at, fmt.Sprintf("the argument %q is given %s", hideLong(string(w.buf)), strings.TrimSuffix(given, ")")))
				f.Hint = "write the command as it runs, without the condition"
			}
		}
	}
	return inv
}

func hideLong(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	return diag.Mask(s)
}

// shownEnv are the variables that a router reads and whose values are no
// secrets.
func shownEnv() []string {
	return []string{
		"RUST_LOG", "RUST_BACKTRACE", "HF_HOME", "HF_HUB_OFFLINE", "HF_ENDPOINT", "TRANSFORMERS_OFFLINE",
		"SGLANG_ROUTER_DISABLE_INPUT_IDS_OFFLOAD", "SGLANG_ROUTER_STREAM_IDLE_TIMEOUT_SECS",
		"SGLANG_ROUTER_STREAM_SEND_STALL_SECS", "SGLANG_ROUTER_STREAM_TOTAL_TIMEOUT_SECS",
	}
}

// envOf returns the variable that NAME=VALUE sets.
func envOf(s string, at diag.Pos) Env {
	name, value, _ := strings.Cut(s, "=")
	return newEnv(name, value, true, at)
}

func newEnv(name, value string, known bool, at diag.Pos) Env {
	if !known || !slices.Contains(shownEnv(), name) {
		return Env{Name: name, Hidden: true, Pos: at}
	}
	return Env{Name: name, Value: diag.Mask(value), Pos: at}
}
