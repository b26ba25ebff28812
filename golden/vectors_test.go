package golden_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vectorFiles says which test function runs the cases of a file under vectors.
// A file without a runner fails, and so does a runner without a file.
func vectorFiles() map[string]func(*testing.T, []byte) []string {
	return map[string]func(*testing.T, []byte) []string{
		"admission.json":  runScenarios,
		"affinity.json":   runAffinity,
		"cache.json":      runCache,
		"config.json":     runConfigs,
		"groups.json":     runGroups,
		"legacy.json":     runLegacy,
		"limits.json":     runLimits,
		"load.json":       runScenarios,
		"lookup.json":     runLookups,
		"pick.json":       runScenarios,
		"resolution.json": runResolution,
		"slo.json":        runSLO,
	}
}

// vectorIDs are the vectors that the files must hold between them. A case's id
// is its vector's, or that and a dash and a word when a vector has several.
func vectorIDs() []string {
	var ids []string
	for _, r := range [][2]int{
		{1, 15},    // resolution
		{16, 31},   // order by latency targets
		{32, 45},   // groups
		{46, 59},   // admission
		{60, 66},   // load table; 67 is about the wire form of reports
		{68, 71},   // load table
		{72, 91},   // power of two and of k, comparison
		{92, 130},  // cache-aware
		{131, 143}, // sessions and the store of bindings
		{144, 150}, // round robin and load-based
		{151, 159}, // sticky
		{160, 169}, // the buckets that are migrated from
	} {
		for n := r[0]; n <= r[1]; n++ {
			ids = append(ids, fmt.Sprintf("V%d", n))
		}
	}
	return ids
}

func TestVectors(t *testing.T) {
	paths, err := filepath.Glob("vectors/*.json")
	if err != nil {
		t.Fatal(err)
	}
	runners := vectorFiles()
	var ran []string
	for _, path := range paths {
		name := filepath.Base(path)
		run := runners[name]
		if run == nil {
			t.Errorf("%s: nobody runs this file", path)
			continue
		}
		delete(runners, name)
		t.Run(strings.TrimSuffix(name, ".json"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, data)
			checkRan(t, data, got)
			ran = append(ran, got...)
		})
	}
	for name := range runners {
		t.Errorf("vectors/%s: missing", name)
	}
	checkCovered(t, ran)
}

// checkRan compares the ids that a runner says it ran with those in the file.
func checkRan(t *testing.T, data []byte, ran []string) {
	t.Helper()
	var file struct {
		Cases []struct {
			ID string `json:"id"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range file.Cases {
		if c.ID == "" || slices.Contains(want, c.ID) {
			t.Errorf("case id %q is empty or repeated", c.ID)
		}
		want = append(want, c.ID)
	}
	if !slices.Equal(want, ran) {
		t.Errorf("ran %v of %v", ran, want)
	}
}

func checkCovered(t *testing.T, ran []string) {
	t.Helper()
	seen := make(map[string]bool)
	for _, id := range ran {
		vector, _, _ := strings.Cut(id, "-")
		seen[vector] = true
	}
	for _, id := range vectorIDs() {
		if !seen[id] {
			t.Errorf("vector %s has no case", id)
		}
		delete(seen, id)
	}
	for id := range seen {
		t.Errorf("vector %s is not in the list of vectors", id)
	}
}

// decode reads a vector file and refuses fields that its runner does not know.
func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}
