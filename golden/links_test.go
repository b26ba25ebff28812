package golden_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a link of Markdown, with its target.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows the links of the documents that people write: files must
// exist, and headings where the link names one.
func TestLinks(t *testing.T) {
	for _, name := range []string{"../README.md", "../runtime/OPERATION.md", "../runtime/STATE.md", "bench/PERFORMANCE.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			file, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := name
			if file != "" {
				target = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere: %v", name, m[1], err)
				continue
			}
			if heading != "" && !anchors(t, target)[heading] {
				t.Errorf("%s: %s leads to a heading that is not there", name, m[1])
			}
		}
	}
}

// anchors are the names by which the headings of a document are linked.
func anchors(t *testing.T, name string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	for line := range strings.SplitSeq(string(data), "\n") {
		if title := strings.TrimLeft(line, "#"); title != line {
			dashed := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")
			out[regexp.MustCompile("[^a-z0-9_-]").ReplaceAllString(dashed, "")] = true
		}
	}
	return out
}
