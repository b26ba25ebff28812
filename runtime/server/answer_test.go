package server

import (
	"testing"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/simulate"
)

// TestSimulatedAnswers holds the answers that offline tools foretell against
// those of the server.
func TestSimulatedAnswers(t *testing.T) {
	for kind := policy.NoMatchingBucket; kind <= policy.StateUnavailable; kind++ {
		for _, stage := range []fleet.Role{0, fleet.Plain, fleet.Prefill, fleet.Decode} {
			want := selectionFailed(&policy.Error{Kind: kind, Stage: stage})
			d := routing.Decision{Error: &routing.ErrorTrace{Kind: kind.String()}}
			if stage != 0 {
				d.Error.Stage = stage.String()
			}
			if status, code := simulate.Answer(&d); status != want.Status || code != want.Code {
				t.Errorf("%v, %v: %d %s, the server answers %d %s", kind, stage, status, code, want.Status, want.Code)
			}
		}
	}
	if (policy.StateUnavailable + 1).String() != "unknown" {
		t.Error("there is a kind that this test does not know")
	}
}
