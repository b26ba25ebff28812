package migrate

import (
	"cmp"
	"fmt"
	"slices"

	"shunt/compiler/diag"
)

// Outcome is what became of something that the older router was told.
type Outcome string

// The outcomes.
const (
	// Carried is in the configuration with the same meaning, or has no effect
	// there as it had none before.
	Carried Outcome = "carried"
	// Renamed is in the configuration with the same meaning under another name
	// or in another place.
	Renamed Outcome = "renamed"
	// Defaulted was not given, and the older router's default is retained.
	Defaulted Outcome = "defaulted"
	// Changed is in the configuration, and does not mean quite the same.
	Changed Outcome = "changed-meaning"
	// NeedsDecision is not in the configuration before a question is answered.
	NeedsDecision Outcome = "needs-decision"
	// Rejected is not in the configuration.
	Rejected Outcome = "rejected"
)

// Outcomes lists all of them, those to look at first before the others.
func Outcomes() []Outcome {
	return []Outcome{Rejected, NeedsDecision, Changed, Renamed, Carried, Defaulted}
}

// rank orders outcomes by how much they demand.
func (o Outcome) rank() int { return slices.Index(Outcomes(), o) }

// Row is a line of the table of deliberate changes in the design of the router,
// or another change that follows from that design.
type Row string

// The rows.
const (
	PowerOfTwoAdmission Row = "power-of-two admission"
	RoundRobinCursor    Row = "round-robin cursor"
	CapacityExhaustion  Row = "capacity exhaustion"
	OnePick             Row = "primary and backup proposals"
	SessionAffinity     Row = "session affinity"
	OmittedMode         Row = "omitted --affinity-mode"
	PressureTuning      Row = "pressure-guard tuning"
	PolicyAttachment    Row = "policy attachment"

	BucketOrder    Row = "bucket order"
	ContextCheck   Row = "context capacity"
	PendingBudget  Row = "pending budget"
	CandidateBase  Row = "candidate base"
	EngineCapacity Row = "engine capacity"
	AffinityScope  Row = "affinity scope"
	PairedStages   Row = "paired stages"
	Discovery      Row = "discovery"
	Tokenization   Row = "tokenization"
	Timeouts       Row = "timeouts"
	Shutdown       Row = "shutdown"
	Logging        Row = "logging"
	RoutingPath    Row = "routing path"
)

// Change is one way in which something does not mean the same any more.
type Change struct {
	Row  Row    `json:"row"`
	Text string `json:"text"`
}

// Line accounts for one argument with its values, one word of the command line,
// one field of a bucket file, one variable of the environment, or one default.
type Line struct {
	// Outcome is the worst that became of it.
	Outcome Outcome
	// Source is what was written, with secrets masked, and Pos where. A default
	// has the value that holds, and no place.
	Source string
	Pos    diag.Pos
	// Elements are the indexes of the elements of the command line.
	Elements []int
	// Field is the pointer of a field of a bucket file.
	Field string
	// Targets are the pointers of the values of the configuration that come
	// from it.
	Targets []string
	// Notes say what happened, and Changes what means something else.
	Notes   []string
	Changes []Change
	// Findings are what keeps it out of the configuration, and warnings.
	Findings diag.List

	// implicit marks what nobody wrote, and brief is a shorter Source, if there
	// is one, for comments.
	implicit bool
	brief    string
}

// raise makes the outcome at least as bad.
func (l *Line) raise(o Outcome) {
	if l.Outcome == "" || o.rank() < l.Outcome.rank() {
		l.Outcome = o
	}
}

func (l *Line) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(l.Notes, text) {
		l.Notes = append(l.Notes, text)
	}
}

// change records a change of meaning.
func (l *Line) change(row Row, format string, args ...any) {
	l.raise(Changed)
	c := Change{row, fmt.Sprintf(format, args...)}
	if !slices.Contains(l.Changes, c) {
		l.Changes = append(l.Changes, c)
	}
}

// changeIf records a change of meaning where it bites.
func (l *Line) changeIf(bites bool, row Row, text string) {
	if bites {
		l.change(row, "%s", text)
	}
}

// find records a finding about the line, once: an argument may say something
// about many groups.
func (l *Line) find(code diag.Code, message, hint string) {
	if slices.ContainsFunc(l.Findings, func(f diag.Finding) bool { return f.Code == code && f.Message == message && f.Hint == hint }) {
		return
	}
	l.Findings.Add(diag.New(code, l.Pos, "", message)).Hint = hint
}

// settle takes the outcome of the findings into account.
func (l *Line) settle() {
	for _, f := range l.Findings {
		switch {
		case f.Severity != diag.Error:
		case f.Code == diag.LegacyDecision || f.Code == diag.LegacyOpen:
			l.raise(NeedsDecision)
		default:
			l.raise(Rejected)
		}
	}
	if l.Outcome == "" {
		l.Outcome = Rejected
		l.find(diag.Internal, "the migration does not know what to do with "+l.Source, "report this")
	}
}

// Swap is a pair of buckets whose order is another one than before, for requests
// that fit both.
type Swap struct {
	// First is tried before Second; the older router tried Second first in that
	// stage.
	First  string `json:"first"`
	Second string `json:"second"`
	Stage  string `json:"stage"`
}

// Report accounts for everything that the older router was told.
type Report struct {
	// Program and Container are where the command line was found.
	Program, Container string
	// Lines are in the order of the command line, then of the bucket file, then
	// defaults.
	Lines []*Line
	// Swaps are at most maxSwaps; MoreSwaps counts the others.
	Swaps     []Swap
	MoreSwaps int
	// Findings are those that belong to no line, about the input as a whole or
	// about the configuration that was made.
	Findings diag.List
	// Written says that there is a configuration, and Partial that it has marks
	// where something is missing.
	Written, Partial bool

	// elements and fields are what has to be accounted for.
	elements int
	fields   []string
}

// Complete reports, as an error, whatever is not accounted for exactly once:
// elements of the command line and fields of the bucket file.
func (r *Report) Complete() error {
	elements := make([]int, r.elements)
	fields := make(map[string]int, len(r.fields))
	for _, name := range r.fields {
		fields[name] = 0
	}
	for _, l := range r.Lines {
		if l.Outcome.rank() < 0 {
			return fmt.Errorf("%q has no outcome", l.Source)
		}
		for _, e := range l.Elements {
			if e < 0 || e >= len(elements) {
				return fmt.Errorf("%q accounts for element %d of %d", l.Source, e, len(elements))
			}
			elements[e]++
		}
		if l.Field == "" {
			continue
		}
		if _, ok := fields[l.Field]; !ok {
			return fmt.Errorf("%q accounts for the field %s, which is not there", l.Source, l.Field)
		}
		fields[l.Field]++
	}
	for i, n := range elements {
		if n != 1 {
			return fmt.Errorf("element %d of the command line is accounted for %d times", i+1, n)
		}
	}
	for _, name := range r.fields {
		if n := fields[name]; n != 1 {
			return fmt.Errorf("the field %s is accounted for %d times", name, n)
		}
	}
	return nil
}

// Count returns the number of lines of an outcome.
func (r *Report) Count(o Outcome) (n int) {
	for _, l := range r.Lines {
		if l.Outcome == o {
			n++
		}
	}
	return n
}

// All returns every finding, in the order of the places.
func (r *Report) All() diag.List {
	all := slices.Clone(r.Findings)
	for _, l := range r.Lines {
		all = append(all, l.Findings...)
	}
	all.Sort()
	return all
}

// Fine reports whether everything is in the configuration.
func (r *Report) Fine() bool {
	return r.Count(Rejected) == 0 && r.Count(NeedsDecision) == 0 && !r.Findings.HasErrors()
}

// sorted returns the lines of an outcome by place.
func (r *Report) sorted(o Outcome) (out []*Line) {
	for _, l := range r.Lines {
		if l.Outcome == o {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b *Line) int { return cmp.Compare(first(a), first(b)) })
	return out
}

// first is the first element of a line, and a number behind all of them for
// lines without.
func first(l *Line) int {
	if len(l.Elements) == 0 {
		return 1 << 30
	}
	return l.Elements[0]
}
