package legacy

// Change is one deliberate change of the design that configurations are migrated
// to, by the name that the report of a migration has for it. A Router with some
// of them picks as the older router would with just those: what a difference
// between the two is due to is the smallest set of changes that makes it vanish.
type Change string

// The changes that bear on picks.
const (
	// PowerOfTwoAdmission: a refused engine of power_of_two is not replaced by
	// the other one of the sample.
	PowerOfTwoAdmission Change = "power-of-two admission"
	// OnePick: a refused engine of another policy is not replaced by another one
	// of the bucket.
	OnePick Change = "primary and backup proposals"
	// CapacityExhaustion: engines at the in-flight limit are not left out before
	// the pick, and when all buckets refuse no second pass ignores the bounds.
	CapacityExhaustion Change = "capacity exhaustion"
	// EngineCapacity: what an engine reports as its own capacity is no bound.
	EngineCapacity Change = "engine capacity"
	// PendingBudget: the tokens of the request do not count, and the budget itself
	// refuses.
	PendingBudget Change = "pending budget"
	// RoundRobinCursor: each bucket has a cursor.
	RoundRobinCursor Change = "round-robin cursor"
	// SessionAffinity: a refused engine of a session is not replaced.
	SessionAffinity Change = "session affinity"
	// OmittedMode: the load of its engine moves no session.
	OmittedMode Change = "omitted --affinity-mode"
	// AffinityScope: a routing key is bound within a bucket.
	AffinityScope Change = "affinity scope"
	// CandidateBase: holders are counted, and queues looked at, in the bucket.
	CandidateBase Change = "candidate base"
	// BucketOrder: buckets are tried by capacity, then by the rank of the pair.
	BucketOrder Change = "bucket order"
	// ContextCheck: both stages are held to the context of the bucket by the peak
	// if it is known, and by the input if not.
	ContextCheck Change = "context capacity"
	// PairedStages: both engines come from one bucket.
	PairedStages Change = "paired stages"
	// PolicyAttachment: specs that the decisions leave out have no bucket.
	PolicyAttachment Change = "policy attachment"
)
