package routing

import (
	"context"
	"errors"
	"sort"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
)

// Run is an inclusive range of indexes into Resolver.Buckets.
type Run [2]int

// Breakpoint holds for input lengths from From up to the next breakpoint.
type Breakpoint struct {
	From int64
	Runs []Run // ascending, disjoint: the buckets whose input range fits
}

// Resolver is a model's buckets in try order, with the table that finds those
// fitting an input length. The compiler orders and tabulates; the resolver
// sorts nothing.
type Resolver struct {
	Model       string
	Buckets     []*Bucket
	Breakpoints []Breakpoint // ascending, the first From is 0
	// SLO says what latency targets of requests do to the try order.
	SLO SLO
	// DispatchTimestamps says that some policy counts recent dispatches, so
	// leases on this model's engines take timestamped slots.
	DispatchTimestamps bool
}

// Ready reports whether some bucket has a healthy engine for every stage that it
// needs.
func (r *Resolver) Ready() bool {
	for _, b := range r.Buckets {
		if b.Groups.ready() {
			return true
		}
	}
	return false
}

// Check returns an InvalidConfiguration for the first group whose policy cannot
// serve its stage. It is for those who build a resolver.
func (r *Resolver) Check() error {
	for _, b := range r.Buckets {
		for _, g := range b.Groups.all() {
			err := policy.Supports(g.Policy, g.Stage)
			if e, ok := errors.AsType[*policy.Error](err); ok {
				return &policy.Error{Kind: e.Kind, Stage: e.Stage, Detail: "bucket " + b.ID + ": " + e.Detail}
			}
		}
	}
	return nil
}

// Request is the prepared facts of one request on their way through buckets. A
// Request may be used again after Route returned.
type Request struct {
	policy.Request
	// Targets are the latency goals of the request.
	Targets Targets
	// InputSource and InputReason go into the decision.
	InputSource, InputReason string
	// Decision, if set, is filled with what was considered and why.
	Decision *Decision

	// Refused is set by Route: the limit of each rejection in the buckets that were
	// given up, whether or not a later one served. Its memory is used again.
	Refused []policy.Limit

	prefills, decodes []*fleet.Engine // scratch of label matching
}

// Matches is an ordered walk over the buckets that fit a length. With latency
// targets it passes over them once for each penalty, so nothing is sorted.
type Matches struct {
	buckets []*Bucket
	all     []Run // of the whole pass
	runs    []Run // what is left of this one
	next    int
	need    int64

	slo            SLO
	targets        Targets
	penalty, worst uint8
}

// Resolve is ResolveFor without latency targets.
func (r *Resolver) Resolve(input, peak int64) (Matches, error) {
	return r.ResolveFor(input, peak, Targets{})
}

// ResolveFor finds the buckets that accept an input length and expected peak, in
// try order; a peak of 0 is unknown. It looks at no engine, so a bucket without
// engines is returned too. A peak below the input is an InvalidSignal, and so is
// a target without sense that the model does not ignore.
func (r *Resolver) ResolveFor(input, peak int64, targets Targets) (Matches, error) {
	need := input
	if peak != 0 {
		if peak < input {
			return Matches{}, &policy.Error{Kind: policy.InvalidSignal, Detail: "expected peak is below the input length"}
		}
		need = peak
	}
	targets, err := r.SLO.targets(targets)
	if err != nil {
		return Matches{}, err
	}
	i := sort.Search(len(r.Breakpoints), func(i int) bool { return r.Breakpoints[i].From > input }) - 1
	if i < 0 {
		return Matches{}, nil
	}
	m := Matches{
		buckets: r.Buckets, all: r.Breakpoints[i].Runs, need: need,
		slo: r.SLO, targets: targets, worst: targets.worst(),
	}
	m.rewind()
	return m, nil
}

// rewind starts a pass.
func (m *Matches) rewind() {
	if m.runs = m.all; len(m.runs) > 0 {
		m.next = m.runs[0][0]
	}
}

// Next returns the next bucket, nil after the last.
func (m *Matches) Next() *Bucket {
	for {
		for len(m.runs) > 0 {
			b := m.step()
			if b.Context.admits(m.need) && (m.worst == 0 || m.slo.penalty(m.targets, b.Estimates) == m.penalty) {
				return b
			}
		}
		if m.penalty == m.worst {
			return nil
		}
		m.penalty++
		m.rewind()
	}
}

// step moves over one bucket of the pass.
func (m *Matches) step() *Bucket {
	b := m.buckets[m.next]
	if m.next++; m.next > m.runs[0][1] {
		if m.runs = m.runs[1:]; len(m.runs) > 0 {
			m.next = m.runs[0][0]
		}
	}
	return b
}

// Route tries the fitting buckets in order and returns the first complete
// selection. A bucket without candidates or with a rejection sends the request
// on, and all its engines are picked again from the next; other failures end
// the pass at once. When no bucket is left, a rejection met anywhere makes the
// failure NoAdmissibleEngine with all of them; otherwise it is NoCandidates of
// the last missing stage.
func (r *Resolver) Route(ctx context.Context, req *Request) (Selection, error) {
	s, err := r.route(ctx, req)
	req.Decision.finish(r, req, &s, err)
	return s, err
}

func (r *Resolver) route(ctx context.Context, req *Request) (Selection, error) {
	req.Refused = req.Refused[:0]
	matches, err := r.ResolveFor(req.Input, req.Peak, req.Targets)
	if err != nil {
		return Selection{}, err
	}
	var failure *policy.Error
	for b := matches.Next(); b != nil; b = matches.Next() {
		if err := ctx.Err(); err != nil {
			return Selection{}, err
		}
		s, err := b.Pick(ctx, req)
		if err == nil {
			return s, nil
		}
		e, ok := errors.AsType[*policy.Error](err)
		if !ok || e.Kind.Final() {
			return Selection{}, err
		}
		for _, r := range e.Rejected {
			req.Refused = append(req.Refused, r.Limit)
		}
		failure = after(failure, e)
	}
	if failure == nil {
		failure = &policy.Error{Kind: policy.NoMatchingBucket}
	}
	return Selection{}, failure
}

// after adds a bucket's failure to those before it.
func after(sum, e *policy.Error) *policy.Error {
	if sum == nil {
		sum = &policy.Error{}
	}
	rejection := e.Kind != policy.NoCandidates
	switch {
	case rejection:
		sum.Kind = policy.NoAdmissibleEngine
		sum.Stage, sum.Detail = e.Stage, ""
		sum.Rejected = append(sum.Rejected, e.Rejected...)
	case sum.Kind != policy.NoAdmissibleEngine:
		sum.Kind, sum.Stage, sum.Detail = policy.NoCandidates, e.Stage, e.Detail
	}
	return sum
}
