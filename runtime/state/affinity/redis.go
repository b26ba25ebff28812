package affinity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"shunt/runtime/fleet"
)

// The defaults of a Redis store.
const (
	DefaultTimeout = 100 * time.Millisecond
	DefaultPrefix  = "shunt:affinity:"
)

const (
	// mostSent is how many candidates travel with a call. For larger groups the
	// router judges by itself what Redis answers, which takes a second call to
	// count the binding as used.
	mostSent = 512
	// mostTries bounds the calls of one Bind in such a group, while other
	// routers keep changing the binding.
	mostTries = 4
	// patience is how many calls in a row may fail before Redis counts as
	// down; then one call in every retryAfter tries again, and the others do
	// not wait for a timeout.
	patience   = 3
	retryAfter = time.Second
	// complain is the time between two log lines about errors that Redis itself
	// answers with.
	complain = time.Minute
)

// RedisOptions configure a Redis. URL is required.
type RedisOptions struct {
	// URL is redis://, rediss:// or unix://, with password and database. It is
	// a secret and appears in no error.
	URL string
	// Reject refuses requests while Redis does not answer. Otherwise they are
	// served without a binding.
	Reject bool
	// Idle is how long an unused binding lives; 0 is DefaultIdle. Redis counts
	// milliseconds.
	Idle time.Duration
	// Timeout bounds each call, connecting included; 0 is DefaultTimeout.
	Timeout time.Duration
	// Prefix starts every key; empty is DefaultPrefix.
	Prefix string
	// Connections bounds the pool; 0 is ten for each CPU.
	Connections int
	// Log receives one line when Redis goes down and one when it comes back, and
	// one a minute while Redis answers with errors; nil writes nothing.
	Log *slog.Logger
	// Now is the clock of retries; nil is time.Now.
	Now func() time.Time
}

// Redis is a store that several routers share. Its bindings expire by
// themselves, so there is nothing to sweep.
type Redis struct {
	client  *redis.Client
	reject  bool
	idleMS  int64
	timeout time.Duration
	prefix  string
	log     *slog.Logger
	now     func() time.Time
	look    *redis.Script
	touch   *redis.Script
	bind    *redis.Script

	failures atomic.Int64 // in a row
	retryAt  atomic.Int64 // nanoseconds; 0 while Redis counts as up
	refused  atomic.Int64 // when an error of Redis was logged last, nanoseconds

	hits, misses, assigned, replaced, kept, failed, skipped atomic.Uint64
}

var _ Store = (*Redis)(nil)

// NewRedis makes a store. It does not connect: a Redis that is down at the start
// is one that is down.
func NewRedis(o RedisOptions) (*Redis, error) {
	opts, err := redis.ParseURL(o.URL) // its error may quote the password
	if err != nil {
		return nil, errors.New("affinity: the Redis URL is not valid: redis://, rediss:// or unix://, with known parameters")
	}
	if o.Idle < 0 || o.Idle > 0 && o.Idle < time.Millisecond {
		return nil, fmt.Errorf("affinity: idle time %s is below a millisecond", o.Idle)
	}
	r := &Redis{
		reject: o.Reject, idleMS: o.Idle.Milliseconds(), timeout: o.Timeout, prefix: o.Prefix, log: o.Log, now: o.Now,
		look: redis.NewScript(lookScript), touch: redis.NewScript(touchScript), bind: redis.NewScript(bindScript),
	}
	if r.idleMS == 0 {
		r.idleMS = DefaultIdle.Milliseconds()
	}
	if r.timeout <= 0 {
		r.timeout = DefaultTimeout
	}
	if r.prefix == "" {
		r.prefix = DefaultPrefix
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	redis.SetLogger(silent{})
	r.client = redis.NewClient(bounded(opts, r.timeout, o.Connections))
	return r, nil
}

// bounded gives every wait of the client the same bound and switches off what
// would repeat calls or talk by itself.
func bounded(opts *redis.Options, timeout time.Duration, connections int) *redis.Options {
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = timeout, timeout, timeout, timeout
	opts.ContextTimeoutEnabled = true
	opts.MaxRetries, opts.DialerRetries = -1, 1
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if connections > 0 {
		opts.PoolSize = connections
	}
	return opts
}

// silent is the logger of the client library, which is one for the process and
// would write the server's address to standard error at every failed
// connection. The store logs and counts failures itself.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close gives the connections back.
func (r *Redis) Close() error { return r.client.Close() }

// lookScript answers with the bound id and counts the binding as used if the id
// is among the candidates that came along.
//
// KEYS[1] is the key. ARGV: idle milliseconds, candidate ids each between line
// feeds, or nothing.
const lookScript = `
local id = redis.call('GET', KEYS[1])
if id and string.find(ARGV[2], '\n' .. id .. '\n', 1, true) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return id`

// touchScript counts a binding as used if it is still that of ARGV[2].
const touchScript = `
if redis.call('GET', KEYS[1]) == ARGV[2] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 0`

// bindScript binds unless a live binding is there, and answers with the id that
// is bound in the end and one of the words below.
//
// KEYS[1] and the first two of ARGV are those of lookScript. ARGV[3] is the id
// to bind, ARGV[4] the id that may be replaced when no candidates came along.
const bindScript = `
local id = redis.call('GET', KEYS[1])
if id then
  if ARGV[2] == '' then
    if id ~= ARGV[4] then return {id, 'found'} end
  elseif string.find(ARGV[2], '\n' .. id .. '\n', 1, true) then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return {id, 'kept'}
  end
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[1])
return {ARGV[3], id and 'replaced' or 'assigned'}`

// The words of bindScript: found leaves the judgement to the caller, since no
// candidates came along.
const (
	wordFound    = "found"
	wordKept     = "kept"
	wordReplaced = "replaced"
	wordAssigned = "assigned"
)

// Bound implements Store, in one call for groups of up to 512 engines.
func (r *Redis) Bound(ctx context.Context, key Key, candidates []*fleet.Engine) (*fleet.Engine, error) {
	name, ids := r.prefix+key.String(), joined(candidates)
	reply, err := r.run(ctx, r.look, name, r.idleMS, ids)
	if err != nil {
		return nil, err
	}
	id, _ := reply.(string)
	e := find(candidates, id)
	if e == nil {
		r.misses.Add(1)
		return nil, nil
	}
	if ids == "" {
		if _, err := r.run(ctx, r.touch, name, r.idleMS, id); err != nil {
			return nil, err
		}
	}
	r.hits.Add(1)
	return e, nil
}

// Bind implements Store.
func (r *Redis) Bind(ctx context.Context, key Key, e *fleet.Engine, candidates []*fleet.Engine) (Binding, error) {
	name, ids := r.prefix+key.String(), joined(candidates)
	seen := ""
	for range mostTries {
		reply, err := r.run(ctx, r.bind, name, r.idleMS, ids, e.ID(), seen)
		if err != nil {
			return Binding{}, err
		}
		id, word := outcome(reply)
		live := find(candidates, id)
		switch {
		case word == wordAssigned:
			r.assigned.Add(1)
			return Binding{Engine: e}, nil
		case word == wordReplaced:
			r.replaced.Add(1)
			return Binding{Engine: e, Replaced: true}, nil
		case word == wordKept && live != nil:
			r.kept.Add(1)
			return Binding{Engine: live}, nil
		case word != wordFound:
			return Binding{}, r.fail(ctx, fmt.Errorf("unexpected reply %v", reply))
		case live != nil:
			return r.keep(ctx, name, live)
		}
		seen = id
	}
	return Binding{}, r.fail(ctx, errors.New("the binding kept changing"))
}

// keep ends a Bind that found a live binding by its own judgement.
func (r *Redis) keep(ctx context.Context, name string, live *fleet.Engine) (Binding, error) {
	if _, err := r.run(ctx, r.touch, name, r.idleMS, live.ID()); err != nil {
		return Binding{}, err
	}
	r.kept.Add(1)
	return Binding{Engine: live}, nil
}

// outcome reads the reply of bindScript.
func outcome(reply any) (id, word string) {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return "", ""
	}
	id, _ = parts[0].(string)
	word, _ = parts[1].(string)
	return id, word
}

// joined joins the ids of candidates, each between line feeds, which no id
// has. It is empty when there are too many to send.
func joined(candidates []*fleet.Engine) string {
	if len(candidates) > mostSent {
		return ""
	}
	n := 1
	for _, e := range candidates {
		n += len(e.ID()) + 1
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteByte('\n')
	for _, e := range candidates {
		b.WriteString(e.ID())
		b.WriteByte('\n')
	}
	return b.String()
}

// run calls a script within the timeout, unless Redis counts as down. A reply of
// nothing is nil.
func (r *Redis) run(ctx context.Context, s *redis.Script, key string, args ...any) (any, error) {
	if !r.worthTrying() {
		r.skipped.Add(1)
		return nil, &Unavailable{Reject: r.reject, Cause: errors.New("Redis is down")}
	}
	call, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	reply, err := s.Run(call, r.client, []string{key}, args...).Result()
	switch {
	case errors.Is(err, redis.Nil):
		reply = nil
	case err != nil:
		return nil, r.fail(ctx, err)
	}
	r.answered()
	return reply, nil
}

func (r *Redis) worthTrying() bool {
	at := r.retryAt.Load()
	if at == 0 {
		return true
	}
	now := r.now().UnixNano()
	return now >= at && r.retryAt.CompareAndSwap(at, now+int64(retryAfter))
}

// fail counts a failed call, unless the caller gave up.
func (r *Redis) fail(ctx context.Context, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.failed.Add(1)
	if e, ok := errors.AsType[redis.Error](cause); ok {
		r.refusal(e)
		if strings.Contains(e.Error(), "WRONGTYPE") {
			// Something else lies at this key. The others are none the worse for it.
			return &Unavailable{Reject: r.reject, Cause: cause}
		}
	}
	if r.failures.Add(1) >= patience && r.retryAt.CompareAndSwap(0, r.now().UnixNano()+int64(retryAfter)) {
		r.log.Warn("affinity store is down", "cause", cause, "reject", r.reject)
	}
	return &Unavailable{Reject: r.reject, Cause: cause}
}

// refusal logs that Redis is there and does not do what is asked, as a replica
// that takes no writes or a server out of memory. It may answer other calls, and
// so never count as down.
func (r *Redis) refusal(cause error) {
	now, last := r.now().UnixNano(), r.refused.Load()
	if (last == 0 || now-last >= int64(complain)) && r.refused.CompareAndSwap(last, now) {
		r.log.Warn("affinity store refuses", "cause", cause, "reject", r.reject)
	}
}

func (r *Redis) answered() {
	if r.failures.Load() == 0 {
		return
	}
	r.failures.Store(0)
	if r.retryAt.Swap(0) != 0 {
		r.log.Info("affinity store is back")
	}
}

// Down reports whether calls are being skipped.
func (r *Redis) Down() bool { return r.retryAt.Load() != 0 }

// Counts implements Store.
func (r *Redis) Counts() Counts {
	return Counts{
		Hits: r.hits.Load(), Misses: r.misses.Load(),
		Assigned: r.assigned.Load(), Replaced: r.replaced.Load(), Kept: r.kept.Load(),
		Failed: r.failed.Load(), Skipped: r.skipped.Load(),
	}
}
