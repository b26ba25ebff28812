package diag

// Codes of inputs that could not be read or evaluated.
const (
	Unreadable      Code = "SH0001"
	TooLarge        Code = "SH0002"
	EvaluationLimit Code = "SH0003"
	Internal        Code = "SH0004"
	TooDeep         Code = "SH0005"
	UnknownFileType Code = "SH0006"
	Interrupted     Code = "SH0007"
)

// inputCodes are the failures of the tool itself, SH00xx. They end with exit
// status 3, and the other findings of the run may be incomplete.
var inputCodes = []Entry{
	{
		Code: Unreadable, Severity: Error, Title: "input cannot be read",
		Explanation: "A named input does not exist, is a directory, may not be read, or failed while it was read. Nothing is known about its content, so the run says nothing about the configuration.",
		Hint:        "Check the path and its permissions; use - to read standard input.",
	},
	{
		Code: TooLarge, Severity: Error, Title: "input too large",
		Explanation: "The inputs are larger than the compiler reads. The bound protects it against a file that was named by mistake and against hostile input; a configuration of ten thousand buckets is about 5 MiB.",
		Hint:        "Check that the right file was named, or raise the limit for this run.",
	},
	{
		Code: EvaluationLimit, Severity: Error, Title: "evaluation exceeded its limits",
		Explanation: "A CUE program runs in a child process with bounded memory, processor time and elapsed time, because a few lines of CUE can run for ever. The child was stopped before it had a result, so the configuration was not judged.",
		Hint:        "Write the configuration as data, simplify the program, or raise --eval-timeout.",
	},
	{
		Code: Internal, Severity: Error, Title: "internal error",
		Explanation: "The compiler met a state that it does not expect. This is a bug in the compiler and not a mistake in the configuration; the run gives no verdict.",
		Hint:        "Report it together with the input.",
	},
	{
		Code: TooDeep, Severity: Error, Title: "input nested too deeply or with too many values",
		Explanation: "The nesting depth or the number of values of an input is beyond any real configuration. The evaluation cost of such inputs grows faster than their size, so they are refused before they are evaluated.",
		Hint:        "Check that the right file was named.",
	},
	{
		Code: UnknownFileType, Severity: Error, Title: "unknown file type",
		Explanation: "The syntax of an input follows from the extension of its name: .yaml and .yml, .json, or .cue. Other names are refused, because guessing a syntax from the content would make the meaning of a file depend on its first bytes.",
		Hint:        "Rename the file, or give standard input a name with an extension.",
	},
	{
		Code: Interrupted, Severity: Error, Title: "run interrupted",
		Explanation: "The run was cancelled before it was finished, by a signal or by a time limit of the caller. The configuration was not judged.",
		Hint:        "Run it again.",
	},
}
