package diag

// Codes of the static analysis of settings that are allowed and rarely meant.
const (
	OneTokenOverlap  Code = "SH0317"
	CutRange         Code = "SH0318"
	NoOutputRoom     Code = "SH0319"
	OrderByID        Code = "SH0320"
	RankOverruled    Code = "SH0321"
	LimitBypassed    Code = "SH0322"
	OversizedBound   Code = "SH0323"
	SoftGate         Code = "SH0324"
	OneRequestLimit  Code = "SH0325"
	DecodePending    Code = "SH0326"
	NeverHits        Code = "SH0327"
	SwitchedOff      Code = "SH0328"
	PartialEstimates Code = "SH0329"
	EqualEstimates   Code = "SH0330"
	LongSweep        Code = "SH0331"
	ShortIdle        Code = "SH0332"
	SlowLookup       Code = "SH0333"
	LostHeader       Code = "SH0334"
	CredentialHeader Code = "SH0335"
	NoKeyHeader      Code = "SH0336"
	SharedHeader     Code = "SH0337"
	DefaultHeader    Code = "SH0338"
	UnpairedEngine   Code = "SH0339"
	SimilarLabel     Code = "SH0340"
	PartialBootstrap Code = "SH0341"
	MixedSchemes     Code = "SH0342"
	MixedLoopback    Code = "SH0343"
	UnspecifiedHost  Code = "SH0344"
	OwnAddress       Code = "SH0345"
	CaseOnly         Code = "SH0346"
	SpaceInName      Code = "SH0347"
	LongDrain        Code = "SH0348"
	QuickBreaker     Code = "SH0349"
	ShortCoolDown    Code = "SH0350"
	SmallBody        Code = "SH0351"
	ExposedDecision  Code = "SH0352"
	EmptySection     Code = "SH0353"
	ZeroRange        Code = "SH0354"
	LostLimits       Code = "SH0355"
	BusyPolls        Code = "SH0356"
	OldLoad          Code = "SH0357"
	MissingPort      Code = "SH0358"
	BootstrapClash   Code = "SH0359"
	SilentEngine     Code = "SH0360"
	NoDrainDelay     Code = "SH0361"
)

// lintCodes continue analysisCodes, SH0317 to SH0399.
var lintCodes = []Entry{
	{
		Code: OneTokenOverlap, Severity: Warning, Title: "neighbouring buckets that share one length",
		Explanation: "Both bounds of a range are inclusive. One bucket ends and the next one begins at the same length, so requests of exactly this length fit both, and no others do. It is mostly a range that was meant to end one token earlier.",
		Hint:        "End the first range one token earlier, or begin the second one later.",
	},
	{
		Code: CutRange, Severity: Warning, Title: "input range that the context capacity cuts off",
		Explanation: "limits.max is above max_context_tokens. The context holds input and output together, so an input above it never fits, whatever limits.max says, and the upper part of the range is not served by this bucket.",
		Hint:        "Lower limits.max to max_context_tokens or less, or raise max_context_tokens.",
	},
	{
		Code: NoOutputRoom, Severity: Warning, Title: "bucket without room for an output",
		Explanation: "limits.min is equal to max_context_tokens. The context holds input and output together, so the shortest input of the bucket fills it already, and every request that says how many tokens it wants is refused.",
		Hint:        "Raise max_context_tokens, or lower limits.min.",
	},
	{
		Code: OrderByID, Severity: Warning, Title: "order of buckets that only their ids decide",
		Explanation: "Buckets are tried by capacity, then by rank, then by id. These have the same capacity and the same rank, so renaming one of them would silently change which one serves first and which one is the fallback.",
		Hint:        "Give the buckets different ranks; the lower one is tried first.",
	},
	{
		Code: RankOverruled, Severity: Warning, Title: "rank that the capacity overrules",
		Explanation: "Buckets are tried by capacity first, and rank only decides between buckets of equal capacity. Here the ranks say the opposite of the order in which requests that fit both buckets try them. Routers that order by rank alone would try them the other way round.",
		Hint:        "Swap the ranks, or change the ranges so that the capacities give the order that is meant.",
	},
	{
		Code: LimitBypassed, Severity: Warning, Title: "admission limits that a later bucket does not repeat",
		Explanation: "When a bucket refuses a request because an engine has reached a limit, the request goes on to the next bucket that it fits. That bucket has the same engine and no limits, so the engine gets the request all the same, and the limits of the first bucket protect nothing.",
		Hint:        "Repeat the limits in the later bucket, write them in defaults, or keep the engine out of it.",
	},
	{
		Code: OversizedBound, Severity: Note, Title: "more choices than the group has engines",
		Explanation: "The policy is told to compare more engines than any of its groups has. It compares all of them, so the number says nothing, and for power_of_two the policy is load_based with random ties.",
		Hint:        "Lower the number, or use load_based if all engines are to be compared.",
	},
	{
		Code: SoftGate, Severity: Warning, Title: "queue gate behind the queue limit",
		Explanation: "worker_queue_limit makes cache_aware avoid an engine with a queue of that length, and max_waiting_requests refuses an engine with a queue of that length. The gate is not below the limit, so an engine is refused before it is ever avoided.",
		Hint:        "Set worker_queue_limit below max_waiting_requests.",
	},
	{
		Code: OneRequestLimit, Severity: Warning, Title: "token limit that one request can fill",
		Explanation: "An engine is admitted while its used tokens are below max_kv_tokens. The limit is below the context capacity of the bucket, so one long request takes the engine over it, and the group refuses the engine until that request ends.",
		Hint:        "Raise max_kv_tokens to several times the context capacity, or remove it.",
	},
	{
		Code: DecodePending, Severity: Warning, Title: "prefill limit on a decode group",
		Explanation: "max_pending_prefill_tokens counts uncached tokens that wait for prefill. A decode engine prefills nothing, so its metric stays at zero or is not reported, and a metric that is not reported is not checked: the limit never refuses.",
		Hint:        "Move the limit to the prefill group, or limit max_running_requests or max_kv_tokens here.",
	},
	{
		Code: NeverHits, Severity: Warning, Title: "cache_aware that cannot find a match",
		Explanation: "A match counts from min_matched_tokens on. No input of the bucket is that long, so every lookup is a miss, and the policy always picks by load.",
		Hint:        "Lower min_matched_tokens below the inputs of the bucket, or use power_of_two there.",
	},
	{
		Code: SwitchedOff, Severity: Warning, Title: "settings that a switch turns off",
		Explanation: "A field says off or disabled, and the fields that only matter when it is on are set nevertheless. They read as if they held, and they do not.",
		Hint:        "Turn the switch on, or remove the settings that it turns off.",
	},
	{
		Code: PartialEstimates, Severity: Warning, Title: "bucket without the estimate that others have",
		Explanation: "The model orders buckets by whether their estimate meets the target of a request. A bucket without an estimate never meets one, so it is treated as too slow for every request that has a target.",
		Hint:        "Give each bucket of the model an estimate.",
	},
	{
		Code: EqualEstimates, Severity: Warning, Title: "order by estimates that are all equal",
		Explanation: "The model orders buckets by whether their estimate meets the target of a request. All estimates are equal, so for every target either all buckets meet it or none does, and the order never changes.",
		Hint:        "Correct the estimates, or disable the mode.",
	},
	{
		Code: LongSweep, Severity: Warning, Title: "bindings that outlive their idle time",
		Explanation: "Bindings in memory that have been idle for too long are removed once in state.affinity.sweep and hold until then. The sweep is rarer than the idle time is long, so most bindings live far longer than idle says.",
		Hint:        "Set sweep to a fraction of idle.",
	},
	{
		Code: ShortIdle, Severity: Warning, Title: "bindings that expire while a request runs",
		Explanation: "A binding counts as used when a request is routed. A request may run for longer than state.affinity.idle, so when the client has its answer and sends the next turn, the binding may be gone and the conversation moves to another engine without its cache.",
		Hint:        "Set idle above request_timeout, and well above the pause between two turns.",
	},
	{
		Code: SlowLookup, Severity: Warning, Title: "long wait for the remote prefix index",
		Explanation: "Every request of a cache_aware group asks the remote index before it is routed. While the index is silent, each one waits for query_timeout first, which at a second or more costs more than the prefill that a match saves.",
		Hint:        "Set query_timeout to some tens of milliseconds.",
	},
	{
		Code: LostHeader, Severity: Warning, Title: "affinity header that does not arrive",
		Explanation: "Proxies and load balancers remove hop-by-hop headers, and common ones drop header names with an underscore. Requests then have no key and are spread by load, as if affinity were not configured.",
		Hint:        "Use a header of your own with letters and dashes, such as x-session-id.",
	},
	{
		Code: CredentialHeader, Severity: Warning, Title: "credential as affinity key",
		Explanation: "The header carries a credential. All requests of one credential would go to one engine, a new credential would lose every binding, and the credential would be kept as a key wherever bindings are kept.",
		Hint:        "Let clients send a session id in a header of its own, such as x-session-id.",
	},
	{
		Code: NoKeyHeader, Severity: Warning, Title: "header that identifies no session",
		Explanation: "The header is different for every request, so that no binding is ever found again, or it is the same for all requests of a client library, so that all of them go to one engine.",
		Hint:        "Let clients send a session id in a header of its own, such as x-session-id.",
	},
	{
		Code: SharedHeader, Severity: Warning, Title: "one header for session key and routing key",
		Explanation: "Session bindings and routing-key bindings of the model read the same header. Two policies that are to follow two different things follow the same one.",
		Hint:        "Give the two keys two headers.",
	},
	{
		Code: DefaultHeader, Severity: Note, Title: "affinity with the default header",
		Explanation: "A policy of the model binds by a key, and the configuration does not say which header carries it, so the default header of the router is read. Clients that send another one are spread by load.",
		Hint:        "Write affinity.session_id_header or affinity.routing_key_header, so that clients can look it up.",
	},
	{
		Code: UnpairedEngine, Severity: Warning, Title: "engine without a partner",
		Explanation: "match_labels demands equal labels on the prefill and the decode engine of a pair. In none of its groups does this engine have a partner with its labels, so it never serves a request, while the others do.",
		Hint:        "Correct the labels of the engine, or add a partner.",
	},
	{
		Code: SimilarLabel, Severity: Warning, Title: "label that is nearly one that groups select by",
		Explanation: "Nothing reads this label of the engine, but groups or match_labels read one whose name is almost the same and that the engine does not carry. Mostly the name is misspelt, and the engine stays out of the groups that it was meant for.",
		Hint:        "Correct the name of the label.",
	},
	{
		Code: PartialBootstrap, Severity: Warning, Title: "prefill engine without the port that others have",
		Explanation: "Some prefill engines of the model have a bootstrap port and this one has none. Its pairs are sent no port and must know it by themselves, which is rarely true for one engine alone; transfers of its cache then hang until they time out.",
		Hint:        "Add bootstrap_port to the engine.",
	},
	{
		Code: MixedSchemes, Severity: Warning, Title: "plain HTTP beside HTTPS",
		Explanation: "Some engines of the model are reached by https and this one by http, so part of the prompts cross the network unencrypted.",
		Hint:        "Use https for all engines of the model.",
	},
	{
		Code: MixedLoopback, Severity: Warning, Title: "loopback engine beside engines on other hosts",
		Explanation: "The engine is on the loopback address of the router's host while others of the model are on other hosts. On every other router host it is another process or none, and a decode engine elsewhere cannot fetch a cache from it.",
		Hint:        "Write the address under which all hosts reach the engine.",
	},
	{
		Code: UnspecifiedHost, Severity: Warning, Title: "engine at an address that is none",
		Explanation: "0.0.0.0 and [::] mean every address of a host to a listener. As a destination they mean nothing; some systems connect to themselves. Mostly the address was copied from the engine's own --host.",
		Hint:        "Write the host name or address of the engine.",
	},
	{
		Code: OwnAddress, Severity: Warning, Title: "engine at the address of the router",
		Explanation: "The URL of the engine is where the router itself listens, so the router would forward requests to itself until they time out. Engines and routers have the same default port, which is how this comes about.",
		Hint:        "Correct the URL, or give the router another port.",
	},
	{
		Code: CaseOnly, Severity: Warning, Title: "names that differ in case only",
		Explanation: "Two models, or two engines or buckets of one model, have names that differ in upper and lower case only. Names are compared exactly, so requests and groups that use the other spelling get the other one.",
		Hint:        "Rename one of the two.",
	},
	{
		Code: SpaceInName, Severity: Warning, Title: "name with a space at its end",
		Explanation: "A name begins or ends with a space. Names are compared exactly, so a client or a group that writes it without the space means another one.",
		Hint:        "Remove the space.",
	},
	{
		Code: LongDrain, Severity: Warning, Title: "drain that is longer than any request",
		Explanation: "No request lives longer than stale_timeout, so after that time of draining none is left, and the rest of drain_timeout is never used.",
		Hint:        "Lower drain_timeout to stale_timeout or less.",
	},
	{
		Code: QuickBreaker, Severity: Warning, Title: "breaker that opens at the first failure",
		Explanation: "With a threshold of 1 one failed request takes an engine out for cool_down. A lost connection to each engine in the same minute takes the whole group out.",
		Hint:        "Use a threshold of 3 or more.",
	},
	{
		Code: ShortCoolDown, Severity: Warning, Title: "cool-down shorter than the connection timeout",
		Explanation: "After cool_down one request probes the engine. A host that does not answer keeps it for connect_timeout, and the next probe follows sooner than that, so a dead host costs a request at almost any time.",
		Hint:        "Set cool_down to several times connect_timeout.",
	},
	{
		Code: SmallBody, Severity: Warning, Title: "body limit below the context",
		Explanation: "Prompts have two bytes a token or more. A prompt that fills the largest bucket is larger than server.max_body and is answered with status 413 before it is routed.",
		Hint:        "Raise max_body, or lower the capacity of the bucket.",
	},
	{
		Code: ExposedDecision, Severity: Warning, Title: "decisions shown to other hosts",
		Explanation: "server.expose_decision puts names of engines and reasons into responses, and server.listen serves other hosts. Whoever may send a request learns how the fleet is built.",
		Hint:        "Remove expose_decision, or listen on loopback only.",
	},
	{
		Code: EmptySection, Severity: Warning, Title: "empty section that restricts nothing",
		Explanation: "The section is there and has nothing in it, so it restricts nothing: an empty limits takes inputs of any length, an empty admission refuses nothing, empty labels select every engine, and an empty match_labels pairs all. Mostly a template had no values.",
		Hint:        "Fill in the section or remove it.",
	},
	{
		Code: ZeroRange, Severity: Warning, Title: "range that only empty inputs fit",
		Explanation: "limits.max is 0, so the bucket takes inputs of no token at all, which do not exist. Zero is not unlimited; that is written by leaving the bound out.",
		Hint:        "Remove limits.max, or write the longest input.",
	},
	{
		Code: LostLimits, Severity: Warning, Title: "limits of a default that the group replaces",
		Explanation: "The policy of a group replaces the default of the model as a whole, admission included. The default has limits and this policy has none, so the group has none, although the configuration reads as if the limits held for the model.",
		Hint:        "Repeat the limits in the policy of the group.",
	},
	{
		Code: BusyPolls, Severity: Warning, Title: "engines that are polled all the time",
		Explanation: "Each engine that does not publish its load is asked once in poll_interval, by each router. Below a tenth of a second that costs the engines more than fresher figures are worth.",
		Hint:        "Use a second or so.",
	},
	{
		Code: OldLoad, Severity: Warning, Title: "load that counts long after it was reported",
		Explanation: "A load report counts for state.load.freshness. For more than a minute a report says nothing about an engine: it may have finished or taken hundreds of requests since, and policies and limits go by the old figures.",
		Hint:        "Use a few poll intervals, such as 5s.",
	},
	{
		Code: MissingPort, Severity: Warning, Title: "engine without a port beside others with one",
		Explanation: "The URL has no port, so it leads to port 80 or 443, while most engines of the model have a port. Mostly it was forgotten.",
		Hint:        "Write the port of the engine.",
	},
	{
		Code: BootstrapClash, Severity: Warning, Title: "one bootstrap port for two processes of a host",
		Explanation: "Two prefill engines on one host have the same bootstrap port, or one has the port that an engine of the host serves requests on. Only one process can listen there, and pairs of the other one fetch a wrong cache or none.",
		Hint:        "Give each prefill engine of a host a bootstrap port of its own.",
	},
	{
		Code: SilentEngine, Severity: Warning, Title: "engine whose state is never known",
		Explanation: "vLLM tells the router nothing by itself. An engine without kv_events never counts as holding a prefix, and vLLM reports neither cache tokens nor pending prefill, so admission limits on those always pass.",
		Hint:        "Write kv_events of the engine as it was started, or remove the limit.",
	},
	{
		Code: NoDrainDelay, Severity: Note, Title: "drain that refuses requests at once",
		Explanation: "With a drain_delay of 0s the router refuses requests from the moment it is told to stop. Load balancers see its readiness fail some seconds later and send it requests until then, which fail at each restart.",
		Hint:        "Set drain_delay to what load balancers need to notice, such as 5s.",
	},
}
