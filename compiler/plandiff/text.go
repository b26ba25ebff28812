package plandiff

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// section is what one model, or the process, has of a difference.
type section struct {
	// model is empty for the process.
	model   string
	routes  []Route
	changes []Change
}

// sections groups a difference by model, in its order; the process comes last.
func (d *Diff) sections() []section {
	var out []section
	at := make(map[string]int)
	of := func(model string) *section {
		i, ok := at[model]
		if !ok {
			i = len(out)
			at[model] = i
			out = append(out, section{model: model})
		}
		return &out[i]
	}
	for _, r := range d.Routes {
		s := of(r.Model)
		s.routes = append(s.routes, r)
	}
	var process section
	for _, c := range d.Changes {
		s := &process
		if c.Model != "" {
			s = of(c.Model)
		}
		s.changes = append(s.changes, c)
	}
	if len(process.changes) > 0 {
		out = append(out, process)
	}
	return out
}

func (s *section) title() string {
	if s.model == "" {
		return "process"
	}
	return "model " + clean(s.model)
}

// shownTargets bounds the routes of certain latency targets that a section has.
const shownTargets = 8

// lines are the differences of a section, the worst class first.
func (s *section) lines() []line {
	var out []line
	for _, class := range [...]Class{Breaking, Behaviour, Cosmetic} {
		targets := 0
		for i := range s.routes {
			r := &s.routes[i]
			if r.Class != class {
				continue
			}
			if r.TTFT != nil || r.TPS != nil {
				if targets++; targets > shownTargets {
					continue
				}
			}
			out = append(out, line{class, clean(r.String())})
		}
		if targets > shownTargets {
			out = append(out, line{class, fmt.Sprintf("more ranges of latency targets: %d, see --format json", targets-shownTargets)})
		}
		for i := range s.changes {
			if s.changes[i].Class == class {
				out = append(out, line{class, clean(s.changes[i].String())})
			}
		}
	}
	return out
}

type line struct {
	class Class
	text  string
}

// WriteText writes the difference for people.
func (d *Diff) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "old %s  %s\nnew %s  %s\n", d.Old.Digest, clean(d.Old.Name), d.New.Digest, clean(d.New.Name))
	fmt.Fprintf(&b, "%s\n", d.summary())
	for _, s := range d.sections() {
		fmt.Fprintf(&b, "\n%s\n", s.title())
		for _, l := range s.lines() {
			fmt.Fprintf(&b, "  %-9s  %s\n", l.class, l.text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d *Diff) summary() string {
	if d.Same {
		return "no difference"
	}
	return fmt.Sprintf("%d breaking, %d behaviour, %d cosmetic", d.Count.Breaking, d.Count.Behaviour, d.Count.Cosmetic)
}

// String is the route in one clause.
func (r *Route) String() string {
	where := fmt.Sprintf("input %s, peak %s", r.Input, r.Peak)
	if t := r.Targets(); t != "" {
		where += ", " + t
	}
	if r.TargetsVary {
		where += ", without latency targets"
	}
	where += ": "
	switch r.Effect {
	case Unroutable:
		return where + "no bucket any more, was " + r.Old.String()
	case Unserved:
		return where + "no bucket with engines any more, was " + r.Old.String() + ", is " + r.New.String()
	case Routable:
		return where + r.New.String() + ", was no bucket"
	}
	if r.Varies {
		where = strings.TrimSuffix(where, ": ") + ", by the lowest peak: "
	}
	return where + r.New.String() + ", was " + r.Old.String()
}

func (r Range) String() string {
	switch {
	case r.To == nil:
		return fmt.Sprintf("%d and longer", r.From)
	case *r.To == r.From:
		return fmt.Sprint(r.From)
	}
	return fmt.Sprintf("%d to %d", r.From, *r.To)
}

func (p Peak) String() string {
	switch {
	case p.Unknown && p.To == nil:
		return "any"
	case p.Unknown:
		return fmt.Sprintf("unknown or up to %d", *p.To)
	}
	return Range{*p.From, p.To}.String()
}

func (b Buckets) String() string {
	if b.Total == 0 {
		return "none"
	}
	return named(b.IDs, b.Total, " then ")
}

// named joins names and says how many more there are.
func named(names []string, total int, sep string) string {
	const most = 8
	s := strings.Join(names[:min(len(names), most)], sep)
	if left := total - min(len(names), most); left > 0 {
		s += fmt.Sprintf(" and %d more", left)
	}
	return s
}

// String is the change in one clause.
func (c *Change) String() string {
	s := c.what()
	if c.Note != "" {
		s += "; " + c.Note
	}
	return s
}

func (c *Change) what() string {
	engines := named(c.Engines, len(c.Engines), ", ")
	noun := "engine "
	if len(c.Engines) > 1 {
		noun = "engines "
	}
	switch c.Kind {
	case ModelAdded:
		return "the model is new"
	case ModelRemoved:
		return "the model is gone"
	case BucketAdded:
		return c.places() + " is new"
	case BucketRemoved:
		return c.places() + " is gone"
	case BucketStopped:
		return c.places() + " serves nothing any more"
	case BucketStarted:
		return c.places() + " can serve now"
	case BucketRenamed:
		return fmt.Sprintf("bucket %s is now called %s", unquoted(c.Old), unquoted(c.New))
	case EngineRenamed:
		return fmt.Sprintf("engine %s is now called %s", unquoted(c.Old), unquoted(c.New))
	case EngineAdded:
		return noun + engines + " added" + c.movement()
	case EngineRemoved:
		return noun + engines + " removed" + c.movement()
	case EngineMoved:
		return noun + engines + c.movement()
	case EngineChanged:
		return fmt.Sprintf("engine %s, %s: %s", engines, c.Field, c.values())
	}
	if len(c.Places) == 0 {
		return fmt.Sprintf("%s: %s", c.Field, c.values())
	}
	return fmt.Sprintf("%s, %s: %s", c.places(), c.Field, c.values())
}

func (c *Change) places() string {
	noun := "bucket "
	if len(c.Places) > 1 {
		noun = "buckets "
	}
	return noun + named(c.Places, len(c.Places), ", ")
}

func (c *Change) movement() string {
	s := ""
	if len(c.From) > 0 {
		s += ", left " + named(c.From, len(c.From), ", ")
	}
	if len(c.To) > 0 {
		s += ", joined " + named(c.To, len(c.To), ", ")
	}
	if c.Kind == EngineMoved {
		s = strings.TrimPrefix(s, ",")
	}
	return s
}

func (c *Change) values() string {
	return value(c.Old, c.OldDefault) + " -> " + value(c.New, c.NewDefault)
}

// maxValue bounds the text of a value.
const maxValue = 120

func value(text []byte, byDefault bool) string {
	if text == nil {
		return "none"
	}
	s := string(text)
	if len(s) > maxValue {
		s = strings.ToValidUTF8(s[:maxValue], "") + "..."
	}
	if byDefault {
		s += " (default)"
	}
	return s
}

// unquoted is a JSON string without quotes; escapes stay.
func unquoted(text []byte) string { return strings.Trim(string(text), `"`) }

// clean replaces what a terminal could act on.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '\uFFFD'
	}, s)
}
