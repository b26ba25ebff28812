package enginetest

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Role says which part of a request an engine computes.
type Role string

// The roles an engine can have. The zero Role is read as Plain.
const (
	Plain   Role = "plain"   // computes the prompt and the answer
	Prefill Role = "prefill" // computes the prompt and hands the cache over
	Decode  Role = "decode"  // receives the cache and computes the answer
)

// Defaults that the zero Options stand for.
const (
	DefaultModel            = "sim"
	DefaultMaxRunning       = 256
	DefaultMaxQueued        = 4096
	DefaultKVTokens         = 1 << 20
	DefaultContextTokens    = 131072
	DefaultBootstrapTimeout = 30 * time.Second
	DefaultRecordLimit      = 1024
	DefaultReplayBatches    = 10_000
	DefaultHighWater        = 100_000
	DefaultLoadInterval     = 100 * time.Millisecond

	// defaultBootstrapPort is what an engine assumes when a request carries
	// a null bootstrap_port, as SGLang does.
	defaultBootstrapPort = 8998
)

// Options describe one engine. The zero value is a plain engine on a free
// loopback port that answers as fast as it can.
type Options struct {
	// ID names the engine in logs, in /server_info and in recorded requests.
	// Empty means "engine".
	ID string
	// Role is Plain when empty.
	Role Role
	// Model is the name that /v1/models and /server_info report. Requests may
	// name another one: like SGLang the engine does not check it. Empty means
	// DefaultModel.
	Model string

	// Listen is the host:port of the HTTP endpoint. Empty means a free port of
	// 127.0.0.1.
	Listen string
	// BootstrapListen is the host:port of a prefill engine's bootstrap server.
	// Empty means a free port of 127.0.0.1. It must be empty for other roles.
	BootstrapListen string

	// Seed selects the generated text. Engines with equal seeds give equal
	// answers to equal prompts.
	Seed uint64
	// PrefillTokensPerSecond is how fast prompts are computed, one after the
	// other. Zero means at once.
	PrefillTokensPerSecond int
	// InterToken is the time between two generated tokens of one request. Zero
	// means no pause.
	InterToken time.Duration
	// OutputTokens is where an answer ends by itself (finish_reason "stop") if
	// the request does not end it earlier. Zero means 8 to 39, by the prompt.
	OutputTokens int

	// MaxRunning is how many requests generate at the same time; others wait.
	// Zero means DefaultMaxRunning.
	MaxRunning int
	// MaxQueued is how many requests may wait; more are refused with 503. Zero
	// means DefaultMaxQueued, a negative value means that none may wait.
	MaxQueued int
	// KVTokens is the size of the cache in tokens: the prompt and the largest
	// possible answer of all running requests fit in it. Zero means
	// DefaultKVTokens.
	KVTokens int
	// ContextTokens is the longest prompt plus answer of one request; a longer
	// one is refused with 400. Zero means DefaultContextTokens.
	ContextTokens int
	// BootstrapTimeout is how long a prefill or decode engine waits for its
	// counterpart. Zero means DefaultBootstrapTimeout.
	BootstrapTimeout time.Duration

	// BlockSize is the number of tokens in a block of the prefix cache, which plain
	// and prefill engines have: a prompt takes only the time of what is not
	// cached. Zero means no such cache.
	BlockSize int
	// CacheTokens is the size of the prefix cache. Zero means KVTokens.
	CacheTokens int
	// Ranks is the number of data-parallel ranks, each with an equal share of the
	// prefix cache and sockets of its own. Zero means one.
	Ranks int
	// Events publishes what enters and leaves the prefix cache, Replay answers
	// questions for what was missed, and PublishLoads publishes load reports; the
	// latter two need Events. /server_info tells the sockets.
	Events, Replay, PublishLoads bool
	// EventPort, ReplayPort and LoadPort are those of the first rank; the others
	// follow. Zero means free ones.
	EventPort, ReplayPort, LoadPort int
	// ReplayBatches is how many batches can be asked for again. Zero means
	// DefaultReplayBatches.
	ReplayBatches int
	// HighWater is how many batches may wait for a slow subscriber before it
	// loses some. Zero means DefaultHighWater.
	HighWater int
	// LoadInterval is the time between two looks at the load. A report that did
	// not change is repeated after a second. Zero means DefaultLoadInterval.
	LoadInterval time.Duration
	// VLLM makes the engine pose as vLLM: it hashes blocks with sha256_cbor and
	// publishes events of that form, reports its load in /metrics, and has none of
	// SGLang's reporting endpoints. Needs the role Plain, and publishes no loads.
	VLLM bool
	// HashSeed is the text that vLLM hashes for the parent of first blocks. Empty
	// means what it hashes without PYTHONHASHSEED.
	HashSeed string
	// Tokenize returns the token ids of a chat request that brings none, or nil.
	// Without it, four bytes of text are a token.
	Tokenize func(body []byte) []uint32

	// EarlyHead makes streamed answers send their head as soon as the request
	// was found valid instead of together with the first token. Later failures
	// are then error events, as in older engines.
	EarlyHead bool

	// RecordLimit is how many received requests are kept, the latest ones. Zero
	// means DefaultRecordLimit, a negative value keeps none.
	RecordLimit int

	// Log receives one debug line per request. Nil means no log.
	Log *slog.Logger
}

// complete returns o with defaults filled in, or says what is wrong with it.
func (o Options) complete() (Options, error) {
	setDefault(&o.ID, "engine")
	setDefault(&o.Role, Plain)
	setDefault(&o.Model, DefaultModel)
	setDefault(&o.Listen, "127.0.0.1:0")
	setDefault(&o.MaxRunning, DefaultMaxRunning)
	setDefault(&o.MaxQueued, DefaultMaxQueued)
	setDefault(&o.KVTokens, DefaultKVTokens)
	setDefault(&o.ContextTokens, DefaultContextTokens)
	setDefault(&o.BootstrapTimeout, DefaultBootstrapTimeout)
	setDefault(&o.RecordLimit, DefaultRecordLimit)
	setDefault(&o.CacheTokens, o.KVTokens)
	setDefault(&o.Ranks, 1)
	setDefault(&o.ReplayBatches, DefaultReplayBatches)
	setDefault(&o.HighWater, DefaultHighWater)
	setDefault(&o.LoadInterval, DefaultLoadInterval)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	switch o.Role {
	case Prefill:
		setDefault(&o.BootstrapListen, "127.0.0.1:0")
	case Plain, Decode:
		if o.BootstrapListen != "" {
			return o, fmt.Errorf("enginetest: only a prefill engine has a bootstrap server, not a %s one", o.Role)
		}
	default:
		return o, fmt.Errorf("enginetest: role %q: want plain, prefill or decode", o.Role)
	}
	return o, o.validate()
}

// validate checks the ranges that defaults do not settle.
func (o Options) validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"PrefillTokensPerSecond", int64(o.PrefillTokensPerSecond)},
		{"InterToken", int64(o.InterToken)},
		{"OutputTokens", int64(o.OutputTokens)},
		{"MaxRunning", int64(o.MaxRunning)},
		{"KVTokens", int64(o.KVTokens)},
		{"ContextTokens", int64(o.ContextTokens)},
		{"BootstrapTimeout", int64(o.BootstrapTimeout)},
		{"BlockSize", int64(o.BlockSize)},
		{"CacheTokens", int64(o.CacheTokens)},
		{"Ranks", int64(o.Ranks)},
		{"EventPort", int64(o.EventPort)},
		{"ReplayPort", int64(o.ReplayPort)},
		{"LoadPort", int64(o.LoadPort)},
		{"ReplayBatches", int64(o.ReplayBatches)},
		{"HighWater", int64(o.HighWater)},
		{"LoadInterval", int64(o.LoadInterval)},
	} {
		if f.value < 0 {
			return fmt.Errorf("enginetest: %s is negative", f.name)
		}
	}
	switch {
	case o.Events && o.BlockSize == 0:
		return errors.New("enginetest: Events without BlockSize: there is no cache to tell of")
	case (o.Replay || o.PublishLoads) && !o.Events:
		return errors.New("enginetest: Replay and PublishLoads need Events")
	case o.VLLM && (o.Role != Plain || o.PublishLoads):
		return errors.New("enginetest: VLLM needs the role plain, and does not publish loads")
	case o.HashSeed != "" && !o.VLLM:
		return errors.New("enginetest: HashSeed without VLLM")
	}
	for _, addr := range []string{o.Listen, o.BootstrapListen} {
		if addr == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return errors.Join(errors.New("enginetest: listen address"), err)
		}
	}
	return nil
}

// setDefault replaces a zero value.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}
