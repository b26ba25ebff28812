package bucketfile

import (
	"shunt/compiler/diag"
)

// Format is which of the formats a file has.
type Format string

// The formats. FormatAuto, the zero value, goes by the content.
const (
	FormatAuto Format = ""
	// FormatLegacy has specs of one stage.
	FormatLegacy Format = "legacy"
	// FormatReorg has buckets with groups of a mode, and settings of the model.
	FormatReorg Format = "reorg"
	// FormatNew has buckets with the groups in them.
	FormatNew Format = "new"
)

// Origin is a field that a value comes from: a place in a file with its JSON
// pointer, or an argument of the command line with the flag as its file.
type Origin struct {
	Pointer string
	Pos     diag.Pos
}

// Value is a value with the fields it comes from, at least one. An optional value
// is a pointer, nil when it is absent.
type Value[T any] struct {
	Value   T
	Origins []Origin
}

// Field is a scalar or a list of scalars of a file, so that each of them can be
// accounted for. Raw is its text, shortened and without secrets.
type Field struct {
	Pointer string
	Pos     diag.Pos
	Raw     string
}

// Stage of a legacy spec.
type Stage string

// The stages.
const (
	Prefill Stage = "prefill"
	Decode  Stage = "decode"
)

// File is a bucket file. Specs are those of a legacy file, Buckets those of the
// others.
type File struct {
	Name    string
	Format  Format
	Specs   []Spec
	Buckets []Bucket
	// TTFTSLO and TPSSLO are disabled, slo_first or best_effort.
	TTFTSLO, TPSSLO *Value[string]
	// Session and Indexer are only in FormatReorg, nil when absent.
	Session *Session
	Indexer *Indexer
	// Fields are all fields in the order of the file.
	Fields []Field
}

// Spec is a bucket of one stage of a legacy file. Values that were refused are
// nil.
type Spec struct {
	Origin    Origin
	ID        *Value[string]
	Stage     Stage
	Rank      *Value[uint64]
	WorkerIDs *Value[[]string]
	// MinTokens and MaxTokens bound the input of a prefill spec and the expected
	// peak of a decode spec, both inclusive.
	MinTokens, MaxTokens *Value[uint64]
	MaxContextTokens     *Value[uint64]
	// TTFTMillis and MaxPendingPrefillTokens are of prefill specs,
	// TokensPerSecond of decode specs.
	TTFTMillis              *Value[uint64]
	MaxPendingPrefillTokens *Value[uint64]
	TokensPerSecond         *Value[float64]
	// Policy is in files of some later versions.
	Policy *Value[string]
}

// Bucket is a complete bucket: exactly one of Plain and the pair of Prefill and
// Decode is there.
type Bucket struct {
	Origin           Origin
	ID               *Value[string]
	Rank             *Value[uint64]
	MinInputTokens   *Value[uint64]
	MaxInputTokens   *Value[uint64]
	MaxContextTokens *Value[uint64]
	TTFTMillis       *Value[uint64]
	TokensPerSecond  *Value[float64]
	Plain            *Group
	Prefill, Decode  *Group
	// Rejected are fields that have no equivalent, with the reason.
	Rejected []Rejected
}

// Group is a group of engines.
type Group struct {
	Origin Origin
	// WorkerIDs are nil for all engines of the role.
	WorkerIDs *Value[[]string]
	// WorkerServices are namespace/service names, only in FormatNew.
	WorkerServices *Value[[]string]
	Policy         *Value[string]
	// Caps are limits of admission, in the order of the file.
	Caps []Cap
	// Affinity is nil when absent, only in FormatNew.
	Affinity *Affinity
}

// Cap is a limit of admission. Share is set for those that are a share of what an
// engine has, max_running_usage and max_kv_usage, and Limit for all others.
type Cap struct {
	Name  string
	Limit *Value[uint64]
	Share *Value[float64]
}

// Affinity is how a group of FormatNew weighs affinity against load.
type Affinity struct {
	Origin     Origin
	Mode       *Value[string]
	BalancedBy *Value[string]
	LoadFactor *Value[float64]
	LoadGap    *Value[uint64]
}

// Session is the section session of FormatReorg.
type Session struct {
	Header               *Value[string]
	IdleSecs             *Value[uint64]
	EvictionIntervalSecs *Value[uint64]
}

// Indexer is the section kv_indexer of FormatReorg.
type Indexer struct {
	URL              *Value[string]
	QueryTimeoutMs   *Value[uint64]
	QueryMaxInflight *Value[uint64]
}

// Rejected is a field that is not carried.
type Rejected struct {
	Origin  Origin
	Message string
	Hint    string
}

// Options of Read.
type Options struct {
	// Format is FormatAuto when empty.
	Format Format
}
