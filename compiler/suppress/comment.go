package suppress

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// Comments applies the comments of the inputs to the findings of their
// compilation: "shunt:ignore CODE reason" on the line of a finding, or above it
// on a line of its own. The list that it returns is sorted.
func Comments(findings diag.List, directives []source.Directive) diag.List {
	c := comments{
		findings: slices.Clone(findings), complete: !findings.HasErrors(),
		targets: make(map[target][]int),
	}
	for i := range c.findings {
		if f := &c.findings[i]; f.CanSuppress() {
			at := target{f.Pos.File, f.Pos.Line, f.Code}
			c.targets[at] = append(c.targets[at], i)
		}
	}
	for i := range directives {
		c.directive(&directives[i])
	}
	c.findings = append(c.findings, c.problems...)
	c.findings.Sort()
	return c.findings
}

// target is what a comment can suppress.
type target struct {
	file string
	line int
	code diag.Code
}

// comments is one application of comments.
type comments struct {
	findings, problems diag.List
	// complete says that every rule ran, so that a comment without a finding
	// has none.
	complete bool
	// targets has the indices of the findings of each target. One that was
	// suppressed keeps the first only, so that a thousand comments on one line
	// do not look at its thousand findings each.
	targets map[target][]int
}

func (c *comments) problem(code diag.Code, d *source.Directive, format string, args ...any) *diag.Finding {
	f := c.problems.Add(diag.New(code, d.Pos, "", fmt.Sprintf(format, args...)))
	f.End = d.End
	return f
}

func (c *comments) directive(d *source.Directive) {
	verb, rest := word(d.Text)
	if verb != "ignore" {
		c.problem(diag.BadDirective, d, "the comment shunt:%s means nothing", verb).Hint = "write shunt:ignore CODE reason"
		return
	}
	list, reason := word(rest)
	if list == "" {
		c.problem(diag.BadDirective, d, "shunt:ignore names no code").Hint = "write shunt:ignore CODE reason"
		return
	}
	for code := range strings.SplitSeq(strings.TrimSuffix(list, ","), ",") {
		c.suppress(d, code, reason)
	}
}

// word cuts the first word off a text.
func word(text string) (first, rest string) {
	i := strings.IndexFunc(text, unicode.IsSpace)
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimSpace(text[i:])
}

// suppress applies one code of a comment.
func (c *comments) suppress(d *source.Directive, word, reason string) {
	code := diag.Code(word)
	entry, ok := diag.Lookup(code)
	switch {
	case !ok:
		f := c.problem(diag.UnknownCode, d, "no finding has the code %q", word)
		if _, upper := diag.Lookup(diag.Code(strings.ToUpper(word))); upper {
			f.Hint = "codes are written in capital letters"
		}
		return
	case suppression(code):
		c.problem(diag.SuppressedError, d, "%s, %s, is about suppressions and cannot be suppressed by one", code, entry.Title)
		return
	case entry.Severity == diag.Error:
		c.problem(diag.SuppressedError, d, "%s, %s, is an error and cannot be suppressed", code, entry.Title)
		return
	case !strings.ContainsFunc(reason, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		c.problem(diag.NoReason, d, "the suppression of %s gives no reason", code)
		return
	}
	at := target{d.Pos.File, d.Line, code}
	found := c.targets[at]
	for _, i := range found {
		if f := &c.findings[i]; f.Suppressed == nil {
			f.Suppressed = &diag.Suppression{By: diag.ByComment, Reason: reason, Pos: d.Pos}
		}
	}
	if len(found) > 0 {
		c.targets[at] = found[:1]
	} else if c.complete {
		c.problem(diag.UnusedComment, d, "line %d has no finding %s, %s", d.Line, code, entry.Title)
	}
}

// suppression reports whether a code is about suppressions.
func suppression(code diag.Code) bool { return strings.HasPrefix(string(code), "SH08") }
