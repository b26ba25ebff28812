package diag

// Codes of what the migration reads: invocations, bucket files and decisions.
const (
	NoInvocation       Code = "SH0650"
	ManyInvocations    Code = "SH0651"
	UnknownContainer   Code = "SH0652"
	DefaultTaken       Code = "SH0653"
	BrokenContinuation Code = "SH0654"
	ShellTrap          Code = "SH0655"
	AroundInvocation   Code = "SH0656"
	NotAnInvocation    Code = "SH0657"
	OutsideValues      Code = "SH0658"
)

// migrateInputCodes are the mistakes in what the migration reads, SH0650 to
// SH0699.
var migrateInputCodes = []Entry{
	{
		Code: NoInvocation, Severity: Error, Title: "no command of a router",
		Explanation: "The migration reads the arguments of a legacy router from the command that starts it. The input was read as a whole, and no command, container, service or unit in it starts a program with the name of a router or has options that only a router has.",
		Hint:        "Check that the right file was named, name the container or service, or give the arguments alone.",
	},
	{
		Code: ManyInvocations, Severity: Error, Title: "several commands of routers",
		Explanation: "Several containers, services or commands of the input start a router. A configuration describes one router, and taking the first would silently leave out the others.",
		Hint:        "Name one of those that the message lists, and migrate the others in runs of their own.",
	},
	{
		Code: UnknownContainer, Severity: Error, Title: "no command of that name",
		Explanation: "A container, service or command was asked for by name, and the input has none of that name.",
		Hint:        "Use one of the names that the hint lists.",
	},
	{
		Code: DefaultTaken, Severity: Note, Title: "default of a variable taken",
		Explanation: "The input gives a default for a variable, as in ${NAME:-value}, and does not set the variable itself. The default is used, but the environment of the running router may have another value.",
		Hint:        "Check what the variable has where the router runs.",
	},
	{
		Code: BrokenContinuation, Severity: Error, Title: "broken line continuation",
		Explanation: "A command over several lines needs a backslash as the very last character of each line but the last. A missing backslash, a blank behind it or a comment between the lines ends the command, and the shell then runs the rest as a command of its own: the router never got those arguments.",
		Hint:        "Repair the continuation, or remove the arguments that the router does not get.",
	},
	{
		Code: ShellTrap, Severity: Warning, Title: "unquoted text that the shell changes",
		Explanation: "The word contains characters that the shell acts on because they are not quoted: braces, wildcards, a tilde. What the router gets depends on the shell and on the files next to it. The text was taken as it is written.",
		Hint:        "Put the value into single quotes.",
	},
	{
		Code: AroundInvocation, Severity: Note, Title: "part of the command that is not carried",
		Explanation: "Around the router the input does something else: it redirects its output, runs it in the background or under a condition, connects it with other commands. That is not configuration of the router, so the migration leaves it to whoever starts the new one.",
		Hint:        "Keep it where the new router is started, if it is still needed.",
	},
	{
		Code: NotAnInvocation, Severity: Error, Title: "input is no invocation",
		Explanation: "The input is something else than the kind of file that was asked for or that its name stands for: a template that is not rendered yet, a manifest without containers, a configuration file, a mixture of arguments and commands.",
		Hint:        "Name the file that starts the router, or say with --kind what it is.",
	},
	{
		Code: OutsideValues, Severity: Note, Title: "values from outside of the input",
		Explanation: "The command gets environment variables from a file, a Secret or a ConfigMap that is not part of the input. Variables that come from there stay open.",
		Hint:        "Check whether the router's environment matters; its arguments are read from this input.",
	},
}
