package diag

import "fmt"

// Means is how somebody said that a finding does not count.
type Means uint8

// The means of suppressing a finding.
const (
	// ByComment is a comment in the file of the finding.
	ByComment Means = iota
	// ByOption is an option of the command.
	ByOption
	// ByBaseline is an entry of a list of accepted findings.
	ByBaseline
)

// String returns the word that all output formats use.
func (m Means) String() string {
	switch m {
	case ByComment:
		return "comment"
	case ByOption:
		return "option"
	case ByBaseline:
		return "baseline"
	}
	return fmt.Sprintf("means(%d)", uint8(m))
}

// Suppression says that a finding does not count and why. Errors have none: what
// they are about cannot be right without a change.
type Suppression struct {
	By Means
	// Reason is what the user gave as one; only comments need to have it.
	Reason string
	// Pos is where the suppression is written; zero for an option.
	Pos Pos
}

// CanSuppress reports whether a finding may have a suppression: warnings and
// notes may, errors may not.
func (f *Finding) CanSuppress() bool { return f.Severity != Error }
