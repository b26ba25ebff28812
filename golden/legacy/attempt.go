package legacy

import (
	"cmp"
	"slices"
	"strings"
)

// attempt is the pick of one stage among the engines of one domain.
type attempt struct {
	*Router
	stage Stage
	q     Request
	d     Domain
	// moves are the cursors that moved before.
	moves []string
}

// pick lists the ways in which an attempt may end.
func (r *Router) pick(a *attempt) []choice {
	switch policy := a.policy(); policy {
	case "sticky", "session_aware":
		return a.affine()
	case "cache_aware":
		return a.cached()
	default:
		return a.simple(policy)
	}
}

func (a *attempt) policy() string {
	if a.stage == Decode {
		return "power_of_two"
	}
	return a.Policy
}

// simple picks by a policy without bindings and prefixes.
func (a *attempt) simple(policy string) (out []choice) {
	switch policy {
	case "power_of_two":
		return a.sampled(a.d.Engines)
	case "round_robin":
		return a.turn()
	case "load_based":
		for _, e := range a.Loads.LoadBased(a.d.Engines) {
			out = append(out, a.serve(e)...)
		}
	default: // random
		for _, e := range a.d.Engines {
			out = append(out, a.serve(e)...)
		}
	}
	return unique(out)
}

// turn takes the engine whose turn it is, by the cursor of the model.
func (a *attempt) turn() []choice {
	key := "model"
	if a.Changed[RoundRobinCursor] {
		key = "bucket " + a.d.ID
	}
	at := a.cursors[key]
	for _, moved := range a.moves {
		if moved == key {
			at++
		}
	}
	a.moves = append(slices.Clone(a.moves), key)
	return a.serve(a.d.Engines[at%len(a.d.Engines)])
}

// sampled draws two engines: the one under less pressure is proposed, and the
// other one is its backup.
func (a *attempt) sampled(engines []string) (out []choice) {
	if len(engines) == 1 {
		return a.propose(engines[0], nil)
	}
	for _, first := range engines {
		for _, second := range engines {
			switch {
			case first == second:
			case a.Loads.Less(a.stage, second, first):
				out = append(out, a.propose(second, []string{first})...)
			default:
				out = append(out, a.propose(first, []string{second})...)
			}
		}
	}
	return unique(out)
}

// serve proposes an engine with all others of the domain as backups.
func (a *attempt) serve(engine string) []choice {
	return a.propose(engine, slices.DeleteFunc(slices.Clone(a.d.Engines), func(e string) bool { return e == engine }))
}

// propose takes an engine, or a backup if it is refused by its bounds.
func (a *attempt) propose(engine string, backups []string) []choice {
	switch {
	case a.Loads.overloaded(engine, a.MaxInflight):
		return []choice{a.end("")}
	case a.admits(engine):
		return []choice{a.end(engine)}
	case a.replaces():
		return a.backup(backups)
	}
	return []choice{a.end("")}
}

// replaces reports whether a refused engine is replaced.
func (a *attempt) replaces() bool {
	switch a.policy() {
	case "power_of_two":
		return !a.Changed[PowerOfTwoAdmission]
	case "session_aware":
		return !a.Changed[OnePick] && !a.Changed[SessionAffinity]
	}
	return !a.Changed[OnePick]
}

// backup takes one of some engines that is not refused, by load.
func (a *attempt) backup(engines []string) (out []choice) {
	open := slices.DeleteFunc(slices.Clone(engines), func(e string) bool {
		return a.Loads.overloaded(e, a.MaxInflight) || !a.admits(e)
	})
	if len(open) == 0 {
		return []choice{a.end("")}
	}
	for _, e := range a.Loads.PowerOfTwo(a.stage, open) {
		out = append(out, a.end(e))
	}
	return out
}

func (a *attempt) end(engine string) choice {
	return choice{engine: engine, moves: a.moves}
}

// admits reports whether the bounds of an engine and the budget of its bucket
// take the request. Without a report that can tell, they do.
func (a *attempt) admits(engine string) bool { return a.admitsLeft(engine, a.tokens()) }

// tokens are what the request adds to an engine of the stage.
func (a *attempt) tokens() uint64 {
	if a.stage == Decode {
		return Peak(a.q.Input, a.q.Output)
	}
	return a.q.Input
}

// admitsLeft is admits for an engine that has some tokens left to compute.
func (a *attempt) admitsLeft(engine string, tokens uint64) bool {
	bounded := slices.Contains([]string{"power_of_two", "session_aware", "cache_aware"}, a.policy()) && !a.Changed[EngineCapacity]
	if bounded && !a.Loads.HasCapacity(engine, a.tokens(), nil) {
		return false
	}
	x := a.Loads[engine]
	switch {
	case a.d.MaxPending == nil || !x.Native:
		return true
	case a.Changed[PendingBudget]:
		return x.Pending < *a.d.MaxPending
	}
	return x.Pending+tokens <= *a.d.MaxPending
}

// affine reuses the engine that a key is bound to, and binds it otherwise.
func (a *attempt) affine() (out []choice) {
	key, fallback := a.key(), a.Fallback
	if a.Policy == "session_aware" {
		fallback = "power_of_two"
	}
	bound := cmp.Or(a.bound[key], a.Bound[a.q.Key])
	if key == "" || !slices.Contains(a.d.Engines, bound) {
		out = a.simple(fallback)
		for i := range out {
			out[i].binds = key
		}
		return out
	}
	if a.Policy == "session_aware" && a.Soft && !a.Changed[OmittedMode] {
		if out = a.escape(bound); out != nil {
			return out
		}
	}
	return a.serve(bound)
}

// escape lists the engines that a session leaves a loaded engine for, nil if it
// stays.
func (a *attempt) escape(bound string) (out []choice) {
	others := slices.DeleteFunc(slices.Clone(a.d.Engines), func(e string) bool {
		return e == bound || !a.admits(e) || a.Loads.overloaded(e, a.MaxInflight)
	})
	for _, e := range a.Loads.PowerOfTwo(a.stage, others) {
		if a.Loads.Material(bound, e, DefaultGuard()) {
			out = append(out, a.end(e))
		}
	}
	return out
}

// Guard is by how much the load of an engine must be above that of another to
// outweigh affinity: by more than MS of queue time where it is set and known,
// else by more than Tokens of queued work, and by a factor.
type Guard struct {
	Tokens uint64
	MS     *float64
	Factor float64
}

// DefaultGuard is the guard without any argument, which sessions have too.
func DefaultGuard() *Guard { return &Guard{Tokens: 1024, Factor: 1.5} }

// Material reports whether an engine is under so much more pressure than another
// that it outweighs affinity. Without both reports it is not.
func (l Loads) Material(engine, other string, g *Guard) bool {
	x, y := l[engine], l[other]
	if !x.Native || !y.Native {
		return false
	}
	if g.MS != nil && x.Rate > 0 && y.Rate > 0 {
		a, b := 1000*float64(x.Pending)/float64(x.Rate), 1000*float64(y.Pending)/float64(y.Rate)
		return a-b > *g.MS && a > b*g.Factor
	}
	return x.Pending > y.Pending && x.Pending-y.Pending > g.Tokens && float64(x.Pending) > float64(y.Pending)*g.Factor
}

// key is what the request's key is bound by, empty without one.
func (a *attempt) key() string {
	if a.q.Key == "" {
		return ""
	}
	if a.Policy == "session_aware" || a.Changed[AffinityScope] {
		return strings.Join([]string{a.d.ID, a.q.Key}, "/")
	}
	return a.q.Key
}
