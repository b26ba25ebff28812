package diag

// Codes of the rules between the parts of a configuration.
const (
	DuplicateModel  Code = "SH0201"
	DuplicateBucket Code = "SH0202"
	DuplicateEngine Code = "SH0203"
	DuplicateURL    Code = "SH0204"
	OneKind         Code = "SH0205"
	UnknownEngine   Code = "SH0206"
	WrongRole       Code = "SH0207"
	RepeatedEntry   Code = "SH0208"
	LimitOrder      Code = "SH0209"
	MixedEngines    Code = "SH0210"
	NoCatchAll      Code = "SH0211"
	StrayBootstrap  Code = "SH0212"
	PolicyStage     Code = "SH0213"
	TuningConflict  Code = "SH0214"
	ExposedAdmin    Code = "SH0215"
	AddressClash    Code = "SH0216"
	TimeoutOrder    Code = "SH0217"
	UnusedDefault   Code = "SH0218"
	BadURL          Code = "SH0219"
	BadName         Code = "SH0220"
	BadAddress      Code = "SH0221"
	TooManyRuns     Code = "SH0222"
	OneService      Code = "SH0223"
	Unread          Code = "SH0224"
	SamplingDomain  Code = "SH0225"
	BadEndpoint     Code = "SH0226"
	BadTokenizer    Code = "SH0227"
	EngineKind      Code = "SH0230"
	EventPort       Code = "SH0231"
)

// ruleCodes are the rules between the parts of a configuration, SH02xx.
var ruleCodes = []Entry{
	{
		Code: DuplicateModel, Severity: Error, Title: "repeated model id",
		Explanation: "Two models have the same id. A request names a model by its id, so one of the two could never be reached.",
		Hint:        "Rename or merge the models.",
	},
	{
		Code: DuplicateBucket, Severity: Error, Title: "repeated bucket id",
		Explanation: "Two buckets of one model have the same id. Bindings, metrics and decision traces name a bucket by its id.",
		Hint:        "Rename one of the buckets.",
	},
	{
		Code: DuplicateEngine, Severity: Error, Title: "repeated engine id",
		Explanation: "Two engines of one model have the same id. Groups refer to engines by id, so the reference would be ambiguous.",
		Hint:        "Rename one of the engines.",
	},
	{
		Code: DuplicateURL, Severity: Error, Title: "repeated engine URL",
		Explanation: "Two engines have the same URL once case, default port and trailing slash are set aside. They would be one process with two sets of counters and limits, so neither limit would hold.",
		Hint:        "Correct the URL, or remove one of the engines.",
	},
	{
		Code: OneKind, Severity: Error, Title: "bucket that is not exactly one of plain and pd",
		Explanation: "The groups of a bucket are either one plain group or a prefill and a decode group. Both together would leave open which one serves a request.",
		Hint:        "Keep one of the two, and make a second bucket if both are meant.",
	},
	{
		Code: UnknownEngine, Severity: Error, Title: "unknown engine id",
		Explanation: "worker_ids names an engine that the model does not have.",
		Hint:        "Correct the id, or add the engine to the model's discovery.",
	},
	{
		Code: WrongRole, Severity: Error, Title: "engine of another role",
		Explanation: "worker_ids names an engine whose role is not the stage of the group. The group would never use it.",
		Hint:        "Name an engine of the group's stage, or correct the engine's role.",
	},
	{
		Code: RepeatedEntry, Severity: Error, Title: "repeated entry",
		Explanation: "A list of names has the same name twice. Mostly another name was meant.",
		Hint:        "Remove or correct one of the two.",
	},
	{
		Code: LimitOrder, Severity: Error, Title: "bounds out of order",
		Explanation: "The lower bound of a bucket is above its upper bound or above its context capacity, so no request ever fits.",
		Hint:        "Lower limits.min, or raise limits.max or max_context_tokens.",
	},
	{
		Code: MixedEngines, Severity: Error, Title: "plain and PD engines in one model",
		Explanation: "A model has plain engines beside prefill or decode engines. One model is served either by whole engines or by pairs.",
		Hint:        "Give the two kinds two model ids, or correct the roles.",
	},
	{
		Code: NoCatchAll, Severity: Error, Title: "undecidable catch-all bucket",
		Explanation: "A model without buckets gets one bucket with all its engines, plain or PD by their roles. Without engines, or with only one stage of PD, there is no such bucket.",
		Hint:        "Add the missing engines, or list buckets.",
	},
	{
		Code: StrayBootstrap, Severity: Error, Title: "bootstrap port on an engine that is not a prefill engine",
		Explanation: "The bootstrap port is where a prefill engine meets the decode engine of its pair. On another engine it would be ignored, and nothing is ignored.",
		Hint:        "Remove the port, or correct the role.",
	},
	{
		Code: PolicyStage, Severity: Error, Title: "policy that its stage does not support",
		Explanation: "cache_aware compares the prompt with cached prefixes, which only plain and prefill engines use; on a decode group it has nothing to compare.",
		Hint:        "Use power_of_two or load_based on decode groups.",
	},
	{
		Code: TuningConflict, Severity: Error, Title: "tuning values that contradict each other",
		Explanation: "Two tuning fields of one policy exclude each other: a saturation floor needs a queue limit that is not below it, and the fewest candidates may not be more than the most.",
		Hint:        "Change one of the two values.",
	},
	{
		Code: ExposedAdmin, Severity: Error, Title: "admin listener reachable from other hosts",
		Explanation: "The admin listener changes and shows the routing without asking who calls. Until it can demand a token it listens on loopback only.",
		Hint:        "Use a loopback address such as 127.0.0.1:30001, or off.",
	},
	{
		Code: AddressClash, Severity: Error, Title: "two listeners on one address",
		Explanation: "server.listen and server.admin need the same port of the same address, so the second listener could not start.",
		Hint:        "Give them different ports.",
	},
	{
		Code: TimeoutOrder, Severity: Error, Title: "timeouts out of order",
		Explanation: "A timeout of one step is longer than the timeout that contains it, so it could never fire and the shorter one would end requests that the longer one was meant to allow.",
		Hint:        "Raise the outer timeout or lower the inner one.",
	},
	{
		Code: UnusedDefault, Severity: Error, Title: "default policy that no group uses",
		Explanation: "defaults holds a policy, but every group it would apply to has its own. Its tuning and limits would hold nowhere, although they read as if they did.",
		Hint:        "Remove the default, or remove the policy of a group that should use it.",
	},
	{
		Code: BadURL, Severity: Error, Title: "URL that is not the base of an engine",
		Explanation: "The URL of an engine is a scheme, a host and a port. The router appends the paths, and credentials never stand in a configuration.",
		Hint:        "Write it like http://10.0.0.1:30000.",
	},
	{
		Code: BadName, Severity: Error, Title: "name with characters that do not print",
		Explanation: "Ids and labels appear in logs, metrics and response headers. Control characters and invisible ones could forge those.",
		Hint:        "Use printing characters only.",
	},
	{
		Code: BadAddress, Severity: Error, Title: "address that cannot be listened on",
		Explanation: "A listen address is a host, which may be empty, and a port up to 65535.",
		Hint:        "Write it like 127.0.0.1:30000.",
	},
	{
		Code: TooManyRuns, Severity: Error, Title: "buckets that overlap too irregularly",
		Explanation: "The table that finds the candidate buckets of an input length would have millions of entries, because thousands of buckets overlap without order. Disjoint or nested buckets need about two entries each.",
		Hint:        "Use fewer buckets, or ranges that are disjoint or nested.",
	},
	{
		Code: OneService, Severity: Error, Title: "not exactly one of two services",
		Explanation: "state.prefix is either an index in each router or a remote one, bindings are kept either in memory or in Redis, and prompts are tokenized either by the router or by the engines. Both together, or a section with neither, would leave open which one is meant.",
		Hint:        "Keep one of the two.",
	},
	{
		Code: Unread, Severity: Error, Title: "setting that nothing reads",
		Explanation: "The setting belongs to a policy or mode that the configuration does not use, so it would hold nowhere, although it reads as if it did. Nothing is ignored silently.",
		Hint:        "Remove the setting, or use the policy or mode that reads it.",
	},
	{
		Code: SamplingDomain, Severity: Error, Title: "sampling parameter that engines refuse",
		Explanation: "Engines accept each sampling parameter within bounds: temperature 0 to 2, top_p above 0 up to 1, top_k a whole number from 1 or -1, min_p 0 to 1, repetition_penalty above 0 up to 2, frequency_penalty and presence_penalty -2 to 2, n a whole number from 1 to 128. A band has its ends there, its lower end is not above its upper one, and it needs conflict: reject, because it only checks.",
		Hint:        "Correct the value or the band.",
	},
	{
		Code: BadEndpoint, Severity: Error, Title: "endpoint that cannot be called",
		Explanation: "The endpoint of a remote index is a scheme, a host and a port. The protocol has the paths, and credentials never stand in a configuration.",
		Hint:        "Write it like http://10.0.0.9:50051.",
	},
	{
		Code: BadTokenizer, Severity: Error, Title: "tokenizer that cannot be used",
		Explanation: "The tokenizer is on this machine, and the router could not start with it: a file is missing or broken, or of a kind whose ids it cannot reproduce exactly. A tokenizer that is not on this machine is not judged.",
		Hint:        "Name the folder of a model whose tokenizer.json is byte-level BPE, or remove tokenizer.",
	},
	{
		Code: EngineKind, Severity: Error, Title: "something that these engines cannot do",
		Explanation: "A model whose engines run vLLM has plain engines only, since pairs meet by a protocol of SGLang; it does not forward token ids, which vLLM does not take; and its prefixes can be found only if the engines hash with sha256_cbor, because the other algorithms depend on Python, and if their block size is written down, because vLLM does not tell it.",
		Hint:        "Start vLLM with --prefix-caching-hash-algo sha256_cbor and write hash and block_size, or use another policy.",
	},
	{
		Code: EventPort, Severity: Error, Title: "two sockets of events on one port",
		Explanation: "The event and replay sockets of two engines or ranks have the same host and port, or a port is beyond 65535. What one engine publishes would be taken for what another one holds. Rank r of an engine is at port + r.",
		Hint:        "Correct host, port, replay_port or ranks of one of the engines.",
	},
}

// Codes of the static analysis.
const (
	LengthGap      Code = "SH0301"
	PeakGap        Code = "SH0302"
	ShadowedBucket Code = "SH0303"
	EmptyGroup     Code = "SH0304"
	NoMembers      Code = "SH0305"
	IdleEngine     Code = "SH0306"
	NoPair         Code = "SH0307"
	ZeroLimit      Code = "SH0308"
	NoDecodeGroup  Code = "SH0310"
	NoTokens       Code = "SH0311"
	DefaultIndex   Code = "SH0312"
	NoEstimates    Code = "SH0313"
	StalePolls     Code = "SH0314"
	NoTemplate     Code = "SH0315"
	UnknownLabel   Code = "SH0316"
)

// analysisCodes are the warnings of the static analysis, SH03xx.
var analysisCodes = []Entry{
	{
		Code: LengthGap, Severity: Warning, Title: "input lengths that no bucket covers",
		Explanation: "Between the shortest and the longest input that the buckets of a model take, there are lengths that none of them takes. Such a request is answered with status 400.",
		Hint:        "Extend a bucket over the gap, if it is not meant.",
	},
	{
		Code: PeakGap, Severity: Warning, Title: "outputs that no bucket covers",
		Explanation: "Some input lengths are covered only by buckets with a small context capacity, although the model has a bucket with a larger one. A short request with a long output fits no bucket and is answered with status 400.",
		Hint:        "Lower limits.min of the bucket with the larger context, so that it takes short inputs too.",
	},
	{
		Code: ShadowedBucket, Severity: Warning, Title: "bucket that is never used",
		Explanation: "An earlier bucket takes every request that this bucket takes, has all of its engines, and has no admission limits. It comes first always, and when it has no engine left, this one has none either.",
		Hint:        "Remove the bucket, change its range or rank, or give the earlier bucket admission limits.",
	},
	{
		Code: EmptyGroup, Severity: Warning, Title: "group without engines",
		Explanation: "No engine of the model has the role and the labels of the group, so its bucket never serves a request.",
		Hint:        "Correct the labels, the membership or the roles of the engines.",
	},
	{
		Code: NoMembers, Severity: Warning, Title: "empty worker_ids",
		Explanation: "An empty list of engines is no engine at all; every engine of the role is written by leaving the field out.",
		Hint:        "Remove worker_ids if every engine is meant.",
	},
	{
		Code: IdleEngine, Severity: Warning, Title: "engine in no group",
		Explanation: "No group of the model has the engine, so it never receives a request.",
		Hint:        "Add it to a group, or remove it.",
	},
	{
		Code: NoPair, Severity: Warning, Title: "engines that cannot pair",
		Explanation: "match_labels demands equal labels on the prefill and the decode engine of a pair, and no engines of the two groups have them, so the bucket never serves a request.",
		Hint:        "Correct the labels of the engines or match_labels.",
	},
	{
		Code: ZeroLimit, Severity: Warning, Title: "admission limit of zero",
		Explanation: "An engine is admitted while its metric is below the limit. Nothing is below zero, so the group admits nothing whenever the metric is known.",
		Hint:        "Remove the limit to leave the metric unchecked.",
	},
	{
		Code: NoDecodeGroup, Severity: Warning, Title: "decode policy without a decode group",
		Explanation: "defaults.decode_policy is set, but the model has no PD bucket.",
		Hint:        "Remove decode_policy, or add a PD bucket.",
	},
	{
		Code: NoTokens, Severity: Warning, Title: "cache_aware without a tokenizer",
		Explanation: "Cached prefixes are found by the token ids of the prompt. Without a tokenizer there are none, and the policy picks by load, as on every miss.",
		Hint:        "Add a tokenizer to the model, or use power_of_two.",
	},
	{
		Code: DefaultIndex, Severity: Note, Title: "cache_aware with the default prefix index",
		Explanation: "The configuration names no source of cached prefixes. Each router then follows the cache events of the engines itself and keeps an index of the default size in memory.",
		Hint:        "Write state.prefix, so that the choice and the size are visible.",
	},
	{
		Code: NoEstimates, Severity: Warning, Title: "order by estimates that no bucket has",
		Explanation: "ttft_slo and tps_slo order buckets by whether their estimate meets the target of a request. Without an estimate on any bucket the mode changes nothing.",
		Hint:        "Add ttft_ms or tokens_per_second to the buckets, or disable the mode.",
	},
	{
		Code: StalePolls, Severity: Warning, Title: "load that is stale before it is polled again",
		Explanation: "A load report counts for state.load.freshness. When engines are polled less often than that, their load is unknown in between: limits on it admit, and policies compare by what the router counts itself.",
		Hint:        "Shorten poll_interval to half of freshness or less.",
	},
	{
		Code: NoTemplate, Severity: Warning, Title: "tokenizer without a usable chat template",
		Explanation: "The ids of a prompt follow from the tokenizer and the chat template together. Without a template that can be rendered exactly, the router estimates lengths and finds no cached prefixes, rather than using ids that may be wrong.",
		Hint:        "Put the model's tokenizer_config.json or chat_template.jinja beside its tokenizer.json.",
	},
	{
		Code: UnknownLabel, Severity: Warning, Title: "label to match that no engine has",
		Explanation: "match_labels names a label that no engine of the model carries. An absent label equals an absent label, so every prefill engine pairs with every decode engine as if the name were not there.",
		Hint:        "Correct the name, or give the engines the label.",
	},
}

// Codes of plan files. The loader in schema/plan has the same ones.
const (
	PlanSyntax       Code = "SH0501"
	PlanFormat       Code = "SH0502"
	PlanField        Code = "SH0503"
	PlanRepeated     Code = "SH0504"
	PlanType         Code = "SH0505"
	PlanNotCanonical Code = "SH0506"
	PlanDigest       Code = "SH0507"
	PlanValue        Code = "SH0508"
	PlanReference    Code = "SH0509"
)

// planCodes are what the plan loader says, SH05xx.
var planCodes = []Entry{
	{
		Code: PlanSyntax, Severity: Error, Title: "plan is not one JSON document",
		Explanation: "The file is no JSON, is cut off, or has something behind the document.",
		Hint:        "Compile the plan again and copy it as it is.",
	},
	{
		Code: PlanFormat, Severity: Error, Title: "plan of another format",
		Explanation: "The format field names another format or version. A loader that does not know a version entirely would serve something other than what was compiled.",
		Hint:        "Use the compiler and the runtime of one release.",
	},
	{
		Code: PlanField, Severity: Error, Title: "unknown field in a plan",
		Explanation: "The plan has a field that its format does not have, or one in another case. Ignoring it could drop a limit.",
		Hint:        "Compile the plan again instead of editing it.",
	},
	{
		Code: PlanRepeated, Severity: Error, Title: "repeated key in a plan",
		Explanation: "An object of the plan has one key twice, and readers disagree about which one counts.",
		Hint:        "Compile the plan again instead of editing it.",
	},
	{
		Code: PlanType, Severity: Error, Title: "value of another type in a plan",
		Explanation: "A value is null or of another type than its field. Null in particular could turn no engines into all engines.",
		Hint:        "Compile the plan again instead of editing it.",
	},
	{
		Code: PlanNotCanonical, Severity: Error, Title: "plan not in its canonical bytes",
		Explanation: "A plan has exactly one byte form. The values can be read, but the order, white space, spelling or line endings are not those of the compiler.",
		Hint:        "Check that no formatter or line ending conversion touches the file.",
	},
	{
		Code: PlanDigest, Severity: Error, Title: "digest of another body",
		Explanation: "The digest is the SHA-256 of the compact body. Here it belongs to another body, so the plan was edited after it was compiled or checked.",
		Hint:        "Compile the plan again instead of editing it.",
	},
	{
		Code: PlanValue, Severity: Error, Title: "value that a plan may not have",
		Explanation: "A value is out of range, out of order, or does not follow from the values it is derived from. The compiler does not write such a plan.",
		Hint:        "Compile the plan again instead of editing it.",
	},
	{
		Code: PlanReference, Severity: Error, Title: "reference to nothing in a plan",
		Explanation: "The plan names an engine that it does not have, or one of another role.",
		Hint:        "Compile the plan again instead of editing it.",
	},
}
