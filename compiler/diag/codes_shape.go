package diag

// Codes of the text of an input and of the shape of the configuration.
const (
	Syntax          Code = "SH0101"
	UnknownField    Code = "SH0102"
	MissingField    Code = "SH0103"
	WrongType       Code = "SH0104"
	UnknownValue    Code = "SH0105"
	OutOfRange      Code = "SH0106"
	BadSpelling     Code = "SH0107"
	RepeatedKey     Code = "SH0108"
	Conflict        Code = "SH0109"
	CodeNotAllowed  Code = "SH0110"
	ManyDocuments   Code = "SH0111"
	EmptyInput      Code = "SH0112"
	BadEncoding     Code = "SH0113"
	SurprisingValue Code = "SH0114"
	Evaluation      Code = "SH0115"
	NullValue       Code = "SH0116"
	ListLength      Code = "SH0117"
	OtherShape      Code = "SH0199"
)

// shapeCodes are syntax and shape, SH01xx.
var shapeCodes = []Entry{
	{
		Code: Syntax, Severity: Error, Title: "syntax error",
		Explanation: "The input is not well-formed YAML, JSON or CUE. Nothing behind the first syntax error of a file is looked at.",
		Hint:        "Correct the text at the reported place; the mistake may be just before it.",
	},
	{
		Code: UnknownField, Severity: Error, Title: "unknown field",
		Explanation: "The configuration has a field that the schema does not know at this place. Unknown fields are never ignored, because a misspelt limit that is silently dropped is a limit that does not hold.",
		Hint:        "Correct the name, move the field to where it belongs, or remove it.",
	},
	{
		Code: MissingField, Severity: Error, Title: "missing field",
		Explanation: "An object lacks a field that it must have. The finding is reported where the object starts.",
		Hint:        "Add the field.",
	},
	{
		Code: WrongType, Severity: Error, Title: "wrong type",
		Explanation: "A value has another type than its field, for instance a string where an integer is expected, or a single object where a list is expected. Types are not converted.",
		Hint:        "Write the value in the expected type; quotes make a string of it.",
	},
	{
		Code: UnknownValue, Severity: Error, Title: "unknown value",
		Explanation: "A field takes one of a fixed set of words and has another one.",
		Hint:        "Use one of the listed values.",
	},
	{
		Code: OutOfRange, Severity: Error, Title: "value out of range",
		Explanation: "A number lies outside the range that its field allows.",
		Hint:        "Use a value within the bounds in the message.",
	},
	{
		Code: BadSpelling, Severity: Error, Title: "value not in its required form",
		Explanation: "A string is not written in the one form that its field accepts, such as 300s for a duration or 32MiB for a size. There is one spelling for each, so that two configurations can be compared by reading them.",
		Hint:        "Write the value in the form that the message shows.",
	},
	{
		Code: RepeatedKey, Severity: Error, Title: "repeated key",
		Explanation: "A YAML or JSON object has the same key twice. Parsers disagree about which one counts, so neither does.",
		Hint:        "Remove or rename one of the two.",
	},
	{
		Code: Conflict, Severity: Error, Title: "conflicting values",
		Explanation: "Several inputs, or several places of one CUE input, give different values to the same field. Inputs are unified, no input overrides another, so the order of files on the command line has no meaning.",
		Hint:        "Keep the field in one place, or make the values equal.",
	},
	{
		Code: CodeNotAllowed, Severity: Error, Title: "CUE program not allowed",
		Explanation: "A CUE input holds more than data: an import, a reference, an expression, a comprehension, a definition or the like. Such an input is a program, which can run for ever or use all memory, so it is evaluated only on request and then in a limited child process.",
		Hint:        "Write plain values, or pass --allow-cue-code if you trust the file.",
	},
	{
		Code: ManyDocuments, Severity: Error, Title: "several YAML documents in one file",
		Explanation: "A YAML stream holds more than one document. A configuration is one document; reading only the first, or all as a list, would silently change what the file means.",
		Hint:        "Split the documents into files and pass them all; they are unified.",
	},
	{
		Code: EmptyInput, Severity: Error, Title: "empty configuration",
		Explanation: "An input holds nothing, or only comments. This is mostly a failed template or redirection.",
		Hint:        "Write at least version and models.",
	},
	{
		Code: BadEncoding, Severity: Error, Title: "input is not clean UTF-8 text",
		Explanation: "An input holds bytes that are not UTF-8, or control characters that no editor shows, such as NUL. Two readers could see two different configurations in it.",
		Hint:        "Save the file as UTF-8 and remove the control characters.",
	},
	{
		Code: SurprisingValue, Severity: Error, Title: "surprising number",
		Explanation: "YAML reads some spellings of numbers differently from what a reader sees, and differently in its versions: 012 is ten or twelve, 1_000 a number or a string, 0x10 sixteen. Counts are written as plain decimal integers.",
		Hint:        "Write a plain decimal number, or quote the value if it is a string.",
	},
	{
		Code: Evaluation, Severity: Error, Title: "CUE evaluation failed",
		Explanation: "A CUE program was evaluated and did not give a concrete configuration, or it asked for something that an evaluation may not do: to import a module from a registry, to read a file outside its folder, or to embed one.",
		Hint:        "Correct the program at the reported place.",
	},
	{
		Code: NullValue, Severity: Error, Title: "null value",
		Explanation: "A field has the value null. Absent, empty and zero mean different things in a configuration, and null could mean any of them.",
		Hint:        "Remove the field, or write the value that is meant; [] is an empty list.",
	},
	{
		Code: ListLength, Severity: Error, Title: "list too short or too long",
		Explanation: "A list has fewer or more elements than its field allows.",
		Hint:        "Add or remove elements.",
	},
	{
		Code: OtherShape, Severity: Error, Title: "value refused by the schema",
		Explanation: "The schema refuses a value for a reason that has no code of its own. The message is the schema's.",
		Hint:        "Compare the value with the description of its field.",
	},
}
