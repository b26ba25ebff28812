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
	BucketStage        Code = "SH0660"
	BucketName         Code = "SH0661"
	BucketRank         Code = "SH0662"
	BucketEngines      Code = "SH0663"
	BucketRange        Code = "SH0664"
	BucketNumber       Code = "SH0665"
	NoBuckets          Code = "SH0666"
	BucketShape        Code = "SH0667"
	BucketDoubt        Code = "SH0668"
	UnknownSpec        Code = "SH0670"
	IncompatiblePair   Code = "SH0671"
	BadDecision        Code = "SH0672"
	UselessDecision    Code = "SH0673"
	ClashingDecisions  Code = "SH0674"
	NarrowPair         Code = "SH0675"
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
	{
		Code: BucketStage, Severity: Error, Title: "field or policy of the other stage",
		Explanation: "The field or policy is for the other stage: input lengths, time to first token and pending prefill belong to prefill, expected peaks and tokens per second to decode, and cached prefixes are of no use to decode. The older router refuses it and does not start.",
		Hint:        "Move it to a bucket of the right stage or remove it.",
	},
	{
		Code: BucketName, Severity: Error, Title: "bucket without a name of its own",
		Explanation: "A bucket of the file has an empty id or one that another bucket has. Ids are unique over all buckets of a file, of both stages.",
		Hint:        "Give each bucket a name of its own.",
	},
	{
		Code: BucketRank, Severity: Error, Title: "rank used twice in a stage",
		Explanation: "Two buckets of one stage of a legacy file have the same rank, so their order would depend on chance. The older router refuses it.",
		Hint:        "Give each bucket of a stage a rank of its own.",
	},
	{
		Code: BucketEngines, Severity: Error, Title: "engines of a bucket",
		Explanation: "The list of engines of a bucket is empty, has a blank name or the same engine twice, names a service wrongly, or, in a legacy file, has an engine that another bucket of the stage has.",
		Hint:        "Correct the list.",
	},
	{
		Code: BucketRange, Severity: Error, Title: "inverted range of a bucket",
		Explanation: "The lower bound of a bucket is above its upper bound. No request fits, so the bucket would never be used.",
		Hint:        "Exchange the bounds or correct one of them.",
	},
	{
		Code: BucketNumber, Severity: Error, Title: "number that must be positive",
		Explanation: "The file has 0 or another number outside of its domain where the older router needs a positive one or a share.",
		Hint:        "Correct the number, or remove the field to have no bound.",
	},
	{
		Code: NoBuckets, Severity: Error, Title: "no bucket, or none for prefill",
		Explanation: "The bucket file has no bucket at all, or only decode buckets. The older router needs at least one bucket that takes the input of requests.",
		Hint:        "Add a bucket, or migrate without the file.",
	},
	{
		Code: BucketShape, Severity: Error, Title: "fields of a bucket that do not go together",
		Explanation: "A complete bucket is either plain or has a prefill and a decode group, a group has engines by name or by service, and some settings need another one. The combination in the file has no meaning.",
		Hint:        "Keep what is meant and remove the rest.",
	},
	{
		Code: BucketDoubt, Severity: Warning, Title: "bucket that nobody means",
		Explanation: "The older router starts with the file, but a bucket of it can never take a request, an order has nothing to go by, or two names of engines differ in a way that is easily overlooked.",
		Hint:        "Review the bucket before it is carried over.",
	},
	{
		Code: UnknownSpec, Severity: Error, Title: "decision about a bucket that is not there",
		Explanation: "A decision names a bucket that the bucket file does not have, or one of the wrong stage. Nothing can be made of it.",
		Hint:        "Use an id of the bucket file.",
	},
	{
		Code: IncompatiblePair, Severity: Error, Title: "pair that no request fits",
		Explanation: "The prefill and the decode bucket of a pair exclude each other: every request that is long enough for the one is too long for the other. As one bucket they would never be used.",
		Hint:        "Pair other buckets, or correct the bounds in the bucket file.",
	},
	{
		Code: BadDecision, Severity: Error, Title: "decision that cannot be read",
		Explanation: "An answer in the decisions file is not one of those that the question has, is still the placeholder of the template, or contradicts the file it is about.",
		Hint:        "Write one of the answers that the message names.",
	},
	{
		Code: UselessDecision, Severity: Error, Title: "decision that answers nothing",
		Explanation: "A decision answers a question that does not arise from this invocation and its files. It is refused and not ignored, because its author expects it to have an effect.",
		Hint:        "Remove it, or check that it belongs to these files.",
	},
	{
		Code: ClashingDecisions, Severity: Error, Title: "decisions that contradict each other",
		Explanation: "The same question is answered twice, in the decisions file or there and on the command line, or two answers lead to buckets of the same name.",
		Hint:        "Keep one of the answers.",
	},
	{
		Code: NarrowPair, Severity: Warning, Title: "pair that takes fewer requests than its parts",
		Explanation: "The prefill and the decode bucket of a pair have different bounds. The bucket that is made of them takes only requests that fit both, so some lengths that one of them took before now go to another bucket or to none.",
		Hint:        "Check that another bucket takes those lengths.",
	},
}
