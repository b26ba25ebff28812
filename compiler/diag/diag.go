package diag

import "fmt"

// Severity ranks findings. The zero value is Error, so that a finding whose
// author forgot the severity is not overlooked.
type Severity uint8

// The severities, the worst first.
const (
	Error Severity = iota
	Warning
	Note
)

// String returns the lower-case word that all output formats use.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	case Note:
		return "note"
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// AtLeast reports whether s is as bad as threshold or worse.
func (s Severity) AtLeast(threshold Severity) bool { return s <= threshold }

// Code names one kind of finding, "SH" and four digits.
type Code string

// Failure reports whether the code says that the tool could not do its job, in
// contrast to a mistake in the configuration. The command line exits with 3
// for failures and with 1 for mistakes.
func (c Code) Failure() bool { return len(c) == 6 && c[:4] == "SH00" }

// Pos is a place in an input. Line and Column start at 1, Column counts bytes,
// and Offset is the byte offset in the file. Line 0 means that only the file
// is known, and an empty File that nothing is. An element of a command line has
// no line, and its column is its number from 1.
type Pos struct {
	File         string
	Line, Column int
	Offset       int
}

// Known reports whether p names a line.
func (p Pos) Known() bool { return p.Line > 0 }

// String returns file:line:column, as much of it as is known, and "-" for the
// zero position. An element of a command line is its number, as in argv 7.
func (p Pos) String() string {
	switch {
	case p.File == "" && p.Line == 0:
		return "-"
	case p.Line == 0 && p.Column > 0:
		return fmt.Sprintf("%s %d", p.File, p.Column)
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Related is a second place that belongs to a finding.
type Related struct {
	Pos     Pos
	Message string
}

// Finding is one mistake or warning. Message is one clause, lower case, without
// a full stop, with the user's text quoted. Hint says what to do; it may be
// empty. Path is the JSON pointer of the value in the unified configuration,
// empty for its root. End is exclusive and zero when only the start is known.
type Finding struct {
	Code     Code
	Severity Severity
	Pos      Pos
	End      Pos
	Path     string
	Message  string
	Hint     string
	Related  []Related
	// Secret is a place whose text may be a secret that should not have been
	// written there. Reports show neither it nor what follows on its line, up
	// to SecretEnd when that is known.
	Secret, SecretEnd Pos
	// Suppressed is why the finding does not count; nil when it does. Reports
	// show such a finding as suppressed and never as if it were not there.
	Suppressed *Suppression
}

// New returns a finding with the severity that the table of codes gives it.
// An unknown code is an error.
func New(code Code, pos Pos, path, message string) Finding {
	f := Finding{Code: code, Pos: pos, Path: path, Message: Shorten(message)}
	if e, ok := Lookup(code); ok {
		f.Severity = e.Severity
	}
	return f
}

// String returns the finding on one line, without its hint.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s [%s]", f.Pos, f.Severity, f.Message, f.Code)
}
