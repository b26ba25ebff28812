package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"shunt/schema/plan"
)

// TestSignedPlansOfSeveralWriters has many commands write one plan at once. The
// last plan is the one that is signed.
func TestSignedPlansOfSeveralWriters(t *testing.T) {
	key, err := plan.NewSignKey()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "plan.json")
	for range 5 {
		var writers sync.WaitGroup
		for i := range 8 {
			writers.Go(func() {
				if err := writePlan(name, fmt.Appendf(nil, "plan %d", i), &key, io.Discard); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := os.ReadFile(name + plan.SignatureSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.VerifySignature([]plan.VerifyKey{key.Public()}, data, signature); err != nil {
			t.Fatal(err)
		}
	}
}
