package report

import (
	"sort"
	"unicode/utf8"

	"shunt/compiler/diag"
)

// region is the place of a finding as programs count: lines and columns from 1,
// columns in UTF-16 code units, the end exclusive. Zero is unknown; without the
// text of a line its columns are.
type region struct {
	line, column, endLine, endColumn int
}

// region returns the place of a finding. A finding without an end has one
// character, or none at the end of a line.
func (e *excerpts) region(f *diag.Finding) region {
	if !f.Pos.Known() {
		return region{}
	}
	out := region{line: f.Pos.Line, endLine: f.Pos.Line}
	column := e.column(f.Pos)
	if column == 0 {
		return out
	}
	out.column = column
	if f.End.Line > f.Pos.Line {
		if end := e.column(f.End); end > 0 {
			out.endLine, out.endColumn = f.End.Line, end
			return out
		}
	}
	x := e.look(f.Pos)
	to := f.Pos.Column - 1
	if f.End.Line == f.Pos.Line && f.End.Column > f.Pos.Column {
		to = min(f.End.Column-1, len(x.raw))
	} else if to < len(x.raw) {
		_, size := utf8.DecodeRuneInString(x.raw[to:])
		to += size
	}
	out.endColumn = x.unitsBefore(to) + 1
	return out
}

// column turns the column of a place, which counts bytes, into one of UTF-16
// code units; 0 is unknown.
func (e *excerpts) column(p diag.Pos) int {
	x := e.look(p)
	if !x.ok || p.Column < 1 || p.Column > len(x.raw)+1 {
		return 0
	}
	return x.unitsBefore(p.Column-1) + 1
}

// step is a place in a line: bytes and UTF-16 code units before it.
type step struct{ bytes, units int }

// count fills in steps of a line.
func (x *excerpt) count() {
	at := step{}
	for at.bytes < len(x.raw) {
		x.steps = append(x.steps, at)
		to := min(at.bytes+unitStep, len(x.raw))
		for to < len(x.raw) && !utf8.RuneStart(x.raw[to]) {
			to++
		}
		at = step{to, at.units + units(x.raw[at.bytes:to])}
	}
}

// unitsBefore is the number of UTF-16 code units in the first bytes of a line.
func (x *excerpt) unitsBefore(bytes int) int {
	i := sort.Search(len(x.steps), func(i int) bool { return x.steps[i].bytes > bytes }) - 1
	if i < 0 {
		return units(x.raw[:bytes])
	}
	return x.steps[i].units + units(x.raw[x.steps[i].bytes:bytes])
}

// units is the length of a text in UTF-16 code units.
func units(text string) int {
	n := 0
	for _, c := range text {
		n++
		if c > 0xffff {
			n++
		}
	}
	return n
}
