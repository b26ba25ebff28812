package diag

import (
	"cmp"
	"slices"
	"strings"
)

// List is the findings of one run. The nil list is empty and ready to use.
type List []Finding

// Add appends f and returns it, so that the caller can still set its hint, its
// end or its related places. The pointer is valid until the next Add.
func (l *List) Add(f Finding) *Finding {
	*l = append(*l, f)
	return &(*l)[len(*l)-1]
}

// Mask hides what messages, hints and paths quote of secrets. Every list that
// leaves the program goes through it.
func (l List) Mask() {
	for i := range l {
		f := &l[i]
		f.Message, f.Hint, f.Path = MaskText(f.Message), MaskText(f.Hint), maskPath(f.Path)
		for j := range f.Related {
			f.Related[j].Message = MaskText(f.Related[j].Message)
		}
	}
}

// Sort orders l by file, line, column, code, then text, in place. The order
// does not depend on the order in which the findings were found.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Finding) int {
		return cmp.Or(
			strings.Compare(a.Pos.File, b.Pos.File),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
			strings.Compare(string(a.Code), string(b.Code)),
			strings.Compare(a.Path, b.Path),
			strings.Compare(a.Message, b.Message),
		)
	})
}

// Count returns the number of findings of exactly that severity that are not
// suppressed.
func (l List) Count(s Severity) int {
	n := 0
	for i := range l {
		if l[i].Severity == s && l[i].Suppressed == nil {
			n++
		}
	}
	return n
}

// Suppressed returns the number of findings that are suppressed.
func (l List) Suppressed() int {
	n := 0
	for i := range l {
		if l[i].Suppressed != nil {
			n++
		}
	}
	return n
}

// HasErrors reports whether l holds a finding of severity Error.
func (l List) HasErrors() bool { return l.Count(Error) > 0 }

// Worst returns the worst severity in l of what is not suppressed, and false
// when there is nothing.
func (l List) Worst() (worst Severity, ok bool) {
	worst = Note
	for i := range l {
		if l[i].Suppressed == nil {
			worst, ok = min(worst, l[i].Severity), true
		}
	}
	return worst, ok
}

// Failed reports whether l holds an error of the family SH00xx: the tool could
// not do its job, and the other findings may be incomplete.
func (l List) Failed() bool {
	return slices.ContainsFunc(l, func(f Finding) bool {
		return f.Severity == Error && f.Code.Failure()
	})
}

// String returns one line for each finding.
func (l List) String() string {
	var b strings.Builder
	for i := range l {
		b.WriteString(l[i].String())
		b.WriteByte('\n')
	}
	return b.String()
}
