package page

import (
	"strconv"

	"shunt/schema/plan"
)

func itoa(n int) string { return strconv.Itoa(n) }

// planView is the page of one plan.
type planView struct {
	Name, Digest, Short string
	Compiler            string
	Sources             []plan.Source
	Tiles               []tile
	Compiled            bool
	// Findings are the first ones, the worst before the others; OtherFindings
	// are folded, and LeftFindings is how many are not there.
	Findings, OtherFindings []findingView
	LeftFindings            int
	FindingCounts           string
	Worst                   string
	Models                  []*modelView
	Settings                []settings
}

// tile is a number at the top of a page.
// Class is what its number is about, if it should be seen.
type tile struct{ Number, Text, Link, Class string }

// findingView is a finding in words.
type findingView struct{ Severity, Code, Place, Message, Hint string }

// settings are values that stand together.
type settings struct {
	Title  string
	Values []valueView
}

// valueView is a value and where it comes from. Written is false for defaults
// and for what the compiler derived.
type valueView struct {
	Name, Value, Origin string
	Written             bool
}

// link leads to another place of the page, or is only text without an anchor.
type link struct{ Anchor, Text string }

// newLink names something that may have a long name.
func newLink(anchor, name string) link { return link{anchor, shortened(name, 80)} }

// modelView is a model.
type modelView struct {
	ID, Anchor string
	Summary    string
	Bands      *bands
	Regions    []regionView
	Buckets    []*bucketView
	Engines    []engineView
	// WithLabels and WithPorts say that some engine has them.
	WithLabels, WithPorts bool
	Requires              []requireView
	Settings              []valueView
	// Shared are the defaults that several policies have, on pages too large
	// to repeat them.
	Shared []sharedView
	Unfold bool
}

// regionView is a range of inputs and what they try.
type regionView struct {
	Input string
	Tries []link
	More  int
}

// bucketView is a bucket.
type bucketView struct {
	ID, Anchor   string
	Number       int
	Min          int64
	Max, Context string // empty is unbounded
	Lengths      string
	Policies     string
	Settings     []valueView
	Groups       []*groupView
	// Compact buckets are written in few bytes, because there are many.
	Compact bool
}

// groupView is a group of a bucket.
type groupView struct {
	Stage string
	// Members says how the engines were selected, and MembersPlace where.
	Members, MembersPlace string
	Engines               []link
	More                  int
	Policy                string
	// Place is where the policy was written, empty if nobody did.
	Place string
	// Written and Defaults are the tuning, Limits the admission.
	Written, Defaults, Limits []valueView
	// Ref leads to the defaults where they are not repeated, and Same to the
	// group that has the same policy, where that is not repeated.
	Ref, Same *link
}

// engineView is an engine.
type engineView struct {
	ID, Anchor, Role, URL, Port, Labels string
	Buckets                             []link
	More                                int
}

// requireView is a need of a model.
type requireView struct {
	What, Why string
	Because   []link
	More      int
}

// sharedView is a set of defaults.
type sharedView struct {
	Anchor, Title string
	Values        []valueView
}
