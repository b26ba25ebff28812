package argv_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/migrate/argv"
	"shunt/golden"
)

// TestRead compares invocations and findings of whole files. A first line of
// the comment that starts with "options:" names the container and the kind.
func TestRead(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, c *golden.Case) {
		for _, name := range c.Inputs {
			if strings.HasSuffix(name, ".options") {
				continue
			}
			inv, findings := argv.Read(name, c.Input(name), options(string(c.Input(name+".options"))))
			var b strings.Builder
			describe(&b, inv)
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

// options reads lines of NAME=VALUE: container, kind, and variables.
func options(text string) argv.Options {
	o := argv.Options{Vars: make(map[string]string)}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "container":
			o.Container = value
		case "kind":
			o.Kind = argv.Kind(value)
		default:
			o.Vars[name] = value
		}
	}
	return o
}

func describe(b *strings.Builder, inv argv.Invocation) {
	if inv.Kind == "" {
		return
	}
	fmt.Fprintf(b, "%s %q in %q\n", inv.Kind, inv.Program, inv.Container)
	for _, a := range inv.Args {
		fmt.Fprintf(b, "%s %q", a.Pos, a.Text)
		if len(a.Open) > 0 {
			fmt.Fprintf(b, " open %q", a.Open)
		}
		b.WriteByte('\n')
	}
	for _, e := range inv.Env {
		value := fmt.Sprintf("%q", e.Value)
		if e.Hidden {
			value = "hidden"
		}
		fmt.Fprintf(b, "env %s %s=%s\n", e.Pos, e.Name, value)
	}
	for _, path := range slices.Sorted(maps.Keys(inv.Files)) {
		f := inv.Files[path]
		if f.Host != "" {
			fmt.Fprintf(b, "file %s from the host's %s\n", path, f.Host)
			continue
		}
		text := string(f.Content())
		trimmed := strings.TrimLeft(text, " \n")
		before := text[:len(text)-len(trimmed)]
		fmt.Fprintf(b, "file %s in %s:%d:%d %q\n", path, f.Name, strings.Count(before, "\n")+1, len(before)-strings.LastIndexByte(before, '\n'), trimmed)
	}
}
