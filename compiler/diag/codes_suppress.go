package diag

// Codes of suppressions, of what users say about findings.
const (
	NoReason        Code = "SH0801"
	UnknownCode     Code = "SH0802"
	SuppressedError Code = "SH0803"
	UnusedComment   Code = "SH0804"
	BadDirective    Code = "SH0805"
	UnusedIgnore    Code = "SH0806"
	StaleBaseline   Code = "SH0807"
	BadBaseline     Code = "SH0808"
)

// suppressCodes are findings about suppressions, SH08xx. No comment suppresses
// them.
var suppressCodes = []Entry{
	{
		Code: NoReason, Severity: Warning, Title: "suppression without a reason",
		Explanation: "A comment wants to suppress a finding and does not say why. It suppresses nothing: whoever reads the configuration later has to be able to judge whether the reason still holds.",
		Hint:        "Write the reason behind the code, as in # shunt:ignore SH0301 requests of that length are refused upstream.",
	},
	{
		Code: UnknownCode, Severity: Warning, Title: "suppression of a code that does not exist",
		Explanation: "A comment names a code that no finding has. It suppresses nothing, and what it was meant to suppress is reported.",
		Hint:        "Correct the code; shunt rules lists all of them.",
	},
	{
		Code: SuppressedError, Severity: Warning, Title: "suppression of what cannot be suppressed",
		Explanation: "A comment or baseline names a finding that is an error, or one about suppressions. Warnings and notes may be accepted; an error says that no right plan can be made, which no reason changes.",
		Hint:        "Correct the mistake and remove the suppression.",
	},
	{
		Code: UnusedComment, Severity: Warning, Title: "suppression of nothing",
		Explanation: "A comment suppresses a finding that its line does not have, perhaps not any more. Left where it is, it would hide the next finding of that code. It is reported only when the configuration has no errors, since those keep some rules from running.",
		Hint:        "Remove the comment, or move it to the line of the finding or directly above.",
	},
	{
		Code: BadDirective, Severity: Warning, Title: "comment that says nothing to the tool",
		Explanation: "A comment starts with shunt: and goes on with something that means nothing, so that it does not do what it looks like.",
		Hint:        "Write shunt:ignore CODE reason, with several codes separated by commas.",
	},
	{
		Code: UnusedIgnore, Severity: Note, Title: "--ignore of nothing",
		Explanation: "An --ignore option matches no finding of this run. It is reported only when there are no errors, since those keep some rules from running.",
		Hint:        "Remove the option, or correct its code or path.",
	},
	{
		Code: StaleBaseline, Severity: Note, Title: "baseline entry without a finding",
		Explanation: "The baseline accepts a finding that a file of this run does not have any more. Left in the list, it would accept the same finding when it comes back.",
		Hint:        "Write the baseline again with --write-baseline.",
	},
	{
		Code: BadBaseline, Severity: Error, Title: "file that is no baseline",
		Explanation: "The file of --baseline is not one that --write-baseline writes: it is no JSON, of another format, or has a field that a baseline does not have. Nothing of it is used, for a part of it would accept less or more than was meant.",
		Hint:        "Write the baseline again with --write-baseline.",
	},
}
