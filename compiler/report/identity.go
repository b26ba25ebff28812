package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"shunt/compiler/diag"
)

// Identity returns what a finding of the report is known by. Bytes that are not
// UTF-8 are replaced, as they would be when it is written to a file.
func (r *Report) Identity(f *diag.Finding) diag.Identity {
	path := f.Path
	if r.Named != nil {
		path = r.Named(f.Pos.File, path)
	}
	valid := func(s string) string { return string([]rune(s)) }
	return diag.Identity{Code: f.Code, File: valid(r.fileName(f.Pos.File)), Path: valid(path), Message: valid(f.Message)}
}

// fingerprints returns a text for each finding that no other has. Of several
// with one identity, the place in their order tells them apart.
func (r *Report) fingerprints() []string {
	seen := make(map[diag.Identity]int, len(r.Findings))
	out := make([]string, len(r.Findings))
	for i := range r.Findings {
		id := r.Identity(&r.Findings[i])
		// Quoting keeps the parts apart, whatever they hold.
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d", id.Code, id.File, id.Path, id.Message, seen[id]))
		seen[id]++
		out[i] = hex.EncodeToString(sum[:16])
	}
	return out
}
