package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shunt/compiler/diag"
)

// TestTokenizerPage checks the examples of the one page whose finding needs more
// than the compiler, which reads no tokenizers.
func TestTokenizerPage(t *testing.T) {
	page, ok := diag.PageOf(diag.BadTokenizer)
	if !ok || len(page.Bad) == 0 {
		t.Fatal("there is no example")
	}
	f := func(files []diag.File, code int, want string) {
		t.Helper()
		dir := t.TempDir()
		args := []string{"shunt", "check"}
		for _, file := range files {
			path := filepath.Join(dir, filepath.FromSlash(file.Name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(file.Data), 0o644); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(file.Name, "/") {
				args = append(args, path)
			}
		}
		var out, errs bytes.Buffer
		if got := run(t.Context(), args, strings.NewReader(""), &out, &errs); got != code || !strings.Contains(out.String(), want) {
			t.Errorf("status %d, want %d with %q\n%s%s", got, code, want, &out, &errs)
		}
	}
	f(page.Bad, exitFindings, "[SH0227]")
	f(page.Good, exitFine, "")
}
