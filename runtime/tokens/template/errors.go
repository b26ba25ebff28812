package template

import "fmt"

// SyntaxError refuses a template when it is compiled.
type SyntaxError struct {
	// Line and Column count from 1, the column in bytes.
	Line, Column int
	Text         string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("template:%d:%d: %s", e.Line, e.Column, e.Text)
}

// Kind says why a rendering failed.
type Kind uint8

// The kinds of failure.
const (
	// Failed means that the template met a value it cannot use, where Python
	// would fail too.
	Failed Kind = iota + 1
	// Raised means that the template itself refused the conversation.
	Raised
	// Unsupported means that Python would go on and this package cannot.
	Unsupported
	// TooMuch means that a limit was reached.
	TooMuch
)

// RenderError is a rendering that failed.
type RenderError struct {
	Kind Kind
	// Line is where in the template, 0 if that is not known.
	Line int
	Text string
}

func (e *RenderError) Error() string { return fmt.Sprintf("template line %d: %s", e.Line, e.Text) }

// failed reports what Python would report too.
func failed(format string, args ...any) error {
	return &RenderError{Kind: Failed, Text: fmt.Sprintf(format, args...)}
}

// unsupported reports what Python could do and this package cannot, so that the
// caller falls back to an estimate instead of trusting a guess.
func unsupported(format string, args ...any) error {
	return &RenderError{Kind: Unsupported, Text: fmt.Sprintf(format, args...) + " is not supported"}
}

// at notes the line of an error that does not know it yet.
func at(line int, err error) error {
	if e, ok := err.(*RenderError); ok && e.Line == 0 {
		e.Line = line
	}
	return err
}
