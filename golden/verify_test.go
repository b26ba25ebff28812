package golden_test

import (
	"errors"
	"strings"
	"testing"

	"shunt/golden"
	"shunt/schema/plan"
)

// editFile is the input of a verify case: one edit of the compiled plan.
const editFile = "edit.json"

// edit replaces text that occurs exactly once; with an empty old text, the new
// text is appended. Reseal corrects the digest afterwards, so that it is not
// what is found.
type edit struct {
	Old    string `json:"old"`
	New    string `json:"new"`
	Reseal bool   `json:"reseal"`
}

// TestVerify compares what the loader says about plans that were edited.
func TestVerify(t *testing.T) {
	golden.Run(t, "verify/*.txtar", func(t *testing.T, c *golden.Case) {
		options, names := arrange(t, c, editFile)
		var e edit
		decode(t, c.Input(editFile), &e)
		_, err := plan.Load([]byte(e.apply(t, string(made(t, options, names...)))))
		if err == nil {
			t.Fatal("the edited plan is accepted")
		}
		c.Want("error", err.Error())
	})
}

func (e *edit) apply(t *testing.T, data string) string {
	t.Helper()
	if e.Old == "" {
		return data + e.New
	}
	if n := strings.Count(data, e.Old); n != 1 {
		t.Fatalf("%q occurs %d times in\n%s", e.Old, n, data)
	}
	data = strings.Replace(data, e.Old, e.New, 1)
	if !e.Reseal {
		return data
	}
	// The loader names the digest that the body has.
	_, err := plan.Load([]byte(data))
	refused, ok := errors.AsType[*plan.Error](err)
	if !ok || refused.Code != plan.CodeDigest {
		t.Fatalf("nothing to reseal: %v", err)
	}
	const prefix = "sha256:"
	_, right, _ := strings.Cut(refused.Hint, prefix)
	before, after, _ := strings.Cut(data, prefix)
	return before + prefix + right[:64] + after[64:]
}
