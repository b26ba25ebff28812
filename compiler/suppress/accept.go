package suppress

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"shunt/compiler/diag"
)

// Ignore is a wish of the command line not to count the findings of a code.
type Ignore struct {
	Code diag.Code
	// Path is a pattern of file names; empty is every file. * and ? stand for
	// characters other than a slash, ** for any, and a pattern without a slash
	// is for the last part of a name.
	Path string
}

// String returns the ignore as an option has it.
func (g Ignore) String() string {
	if g.Path == "" {
		return string(g.Code)
	}
	return string(g.Code) + "=" + g.Path
}

// ParseIgnore reads CODE or CODE=PATTERN.
func ParseIgnore(text string) (Ignore, error) {
	word, pattern, limited := strings.Cut(text, "=")
	g := Ignore{Code: diag.Code(word), Path: pattern}
	e, ok := diag.Lookup(g.Code)
	switch {
	case !ok:
		return Ignore{}, fmt.Errorf("no finding has the code %q; shunt rules lists them", word)
	case e.Severity == diag.Error:
		return Ignore{}, fmt.Errorf("%s, %s, is an error and cannot be ignored", g.Code, e.Title)
	case limited && pattern == "":
		return Ignore{}, fmt.Errorf("%q names no file", text)
	case !doublestar.ValidatePattern(pattern):
		return Ignore{}, fmt.Errorf("%q is no pattern of file names", pattern)
	}
	return g, nil
}

// matches reports whether a finding is one to ignore.
func (g Ignore) matches(f *diag.Finding, id diag.Identity) bool {
	if f.Code != g.Code || !f.CanSuppress() {
		return false
	}
	name := id.File
	if g.Path == "" {
		return true
	}
	if !strings.Contains(g.Path, "/") {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(path.Clean(g.Path), name)
}

// Acceptance is what a run accepts besides comments. The zero value accepts
// nothing.
type Acceptance struct {
	Ignores []Ignore
	// Baseline may be nil.
	Baseline *Baseline
	// Files are the inputs of the run. Entries of the baseline for other files
	// are left alone.
	Files []string
	// Identity says what a finding is known by.
	Identity func(*diag.Finding) diag.Identity
}

// Apply returns the findings with those suppressed that the run accepts, and
// with what is wrong with the acceptance, sorted.
func (a *Acceptance) Apply(findings diag.List) diag.List {
	out := slices.Clone(findings)
	complete := !out.HasErrors()
	ids := make([]diag.Identity, len(out))
	for i := range out {
		ids[i] = a.Identity(&out[i])
	}
	if a.Baseline != nil {
		problems := a.Baseline.apply(out, ids, a.Files, complete)
		out = append(out, problems...)
		for i := range problems {
			ids = append(ids, a.Identity(&problems[i]))
		}
	}
	var unused diag.List
	for _, g := range a.Ignores {
		if !g.apply(out, ids) && complete {
			unused.Add(diag.New(diag.UnusedIgnore, diag.Pos{}, "", fmt.Sprintf("--ignore %s matches no finding", g)))
		}
	}
	out = append(out, unused...)
	out.Sort()
	return out
}

func (g Ignore) apply(findings diag.List, ids []diag.Identity) (used bool) {
	for i := range findings {
		f := &findings[i]
		if !g.matches(f, ids[i]) {
			continue
		}
		used = true
		if f.Suppressed == nil {
			f.Suppressed = &diag.Suppression{By: diag.ByOption, Reason: "--ignore " + g.String()}
		}
	}
	return used
}
