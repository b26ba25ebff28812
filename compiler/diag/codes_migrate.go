package diag

// Codes of the migration of a command line of an older router. Those of its
// input files start at SH0650.
const (
	LegacyUnknown      Code = "SH0601"
	LegacyOtherVersion Code = "SH0602"
	LegacySyntax       Code = "SH0603"
	LegacyValue        Code = "SH0604"
	LegacyMissing      Code = "SH0605"
	LegacyConflict     Code = "SH0606"
	LegacyDropped      Code = "SH0607"
	LegacyNoEquivalent Code = "SH0608"
	LegacyDecision     Code = "SH0609"
	LegacyOpen         Code = "SH0610"
	LegacyAdvice       Code = "SH0611"
	LegacyInvalid      Code = "SH0612"
)

// migrateCodes are what a migration finds, SH06xx.
var migrateCodes = []Entry{
	{
		Code: LegacyUnknown, Severity: Error, Title: "unknown argument",
		Explanation: "No version of the older router has an argument of that name. The router would not have started with it, so nobody can say what it was meant to do.",
		Hint:        "Correct the name or remove the argument.",
	},
	{
		Code: LegacyOtherVersion, Severity: Error, Title: "argument of another version",
		Explanation: "The argument belongs to an earlier, a later or a vendor's version of the older router. What it did there has no equivalent that could be written without asking.",
		Hint:        "Follow the message, or remove the argument.",
	},
	{
		Code: LegacySyntax, Severity: Error, Title: "malformed command line",
		Explanation: "The parser of the older router would have refused the command line: a value is missing, a switch has a value, an argument is repeated, or a word belongs to no argument.",
		Hint:        "Correct the command line; a value that begins with a minus is written with an equals sign.",
	},
	{
		Code: LegacyValue, Severity: Error, Title: "value outside its domain",
		Explanation: "The older router refuses the value at start-up. It compares words in their exact case and takes plain decimal numbers.",
		Hint:        "Write a value of the domain that the message names.",
	},
	{
		Code: LegacyMissing, Severity: Error, Title: "missing argument",
		Explanation: "The older router does not start without the argument, so this is not the whole command line.",
		Hint:        "Add the argument.",
	},
	{
		Code: LegacyConflict, Severity: Error, Title: "arguments that do not go together",
		Explanation: "The older router refuses the combination at start-up: an argument needs another one that is absent, excludes one that is present, or belongs to a policy that is not used.",
		Hint:        "Remove one of the arguments, or add the one that is needed.",
	},
	{
		Code: LegacyDropped, Severity: Error, Title: "dropped option",
		Explanation: "The option was dropped on purpose, and nothing does the same. It is refused and not ignored, because whoever set it relies on it.",
		Hint:        "Take the way out that the message names, and remove the option.",
	},
	{
		Code: LegacyNoEquivalent, Severity: Error, Title: "setting without an equivalent",
		Explanation: "The older router accepts the setting, but no configuration can say the same.",
		Hint:        "Take the way out that the message names.",
	},
	{
		Code: LegacyDecision, Severity: Error, Title: "decision needed",
		Explanation: "The command line does not say what the configuration must say, such as the role of an engine or which prefill and decode buckets form a pair. It is never guessed.",
		Hint:        "Answer the question in the decisions file; shunt migrate --write-decisions FILE writes a template.",
	},
	{
		Code: LegacyOpen, Severity: Error, Title: "value that is left open",
		Explanation: "The value contains a variable that the input does not define, so what the router would have seen is unknown.",
		Hint:        "Write the value in place of the variable.",
	},
	{
		Code: LegacyAdvice, Severity: Warning, Title: "risky setting",
		Explanation: "The setting is legal and is carried over, but it mostly does not do what its author wanted.",
		Hint:        "Review the setting.",
	},
	{
		Code: LegacyInvalid, Severity: Error, Title: "migrated configuration does not pass",
		Explanation: "The configuration that was made of the command line has a mistake, which the message quotes. It is not written.",
		Hint:        "Change the argument that the finding points at, or write the configuration by hand.",
	},
}
