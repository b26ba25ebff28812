package plan

import "fmt"

// The codes of a refused plan. They are part of the project's table of finding
// codes and never change meaning.
const (
	CodeSyntax       = "SH0501" // not one JSON document
	CodeFormat       = "SH0502" // another format or version
	CodeField        = "SH0503" // a field this format does not have
	CodeRepeated     = "SH0504" // the same key twice in one object
	CodeType         = "SH0505" // null, or a value of another type
	CodeNotCanonical = "SH0506" // the right values in other bytes
	CodeDigest       = "SH0507" // the digest is not that of the body
	CodeValue        = "SH0508" // a value that the format forbids
	CodeReference    = "SH0509" // a name that refers to nothing, or to the wrong thing

	CodeKey           = "SH0901" // a key file that is none, or of another kind
	CodeUnsigned      = "SH0902" // no signature where one is demanded
	CodeSignatureForm = "SH0903" // a signature file that is none
	CodeSignature     = "SH0904" // the signature of another plan, or by another key
)

// Error says why a plan is refused. Either Line and Column (1-based, in bytes)
// or Pointer may be missing; both are for a document that is empty, and for keys
// and signatures.
type Error struct {
	Code         string
	Pointer      string
	Line, Column int
	// Message is one clause without a full stop.
	Message string
	// Hint says what would be right; it may be empty.
	Hint string
}

// Error gives the place, the message and the code on one line.
func (e *Error) Error() string {
	place := ""
	if e.Line > 0 {
		place = fmt.Sprintf("%d:%d: ", e.Line, e.Column)
	}
	if e.Pointer != "" {
		place += e.Pointer + ": "
	}
	text := place + e.Message + " [" + e.Code + "]"
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}
