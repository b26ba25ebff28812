package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"shunt/compiler/diag"
)

// Identity returns what a finding of the report is known by.
func (r *Report) Identity(f *diag.Finding) diag.Identity {
	id := diag.Identity{Code: f.Code, File: r.fileName(f.Pos.File), Path: f.Path, Message: f.Message}
	if r.Named != nil {
		id.Path = r.Named(f.Pos.File, f.Path)
	}
	return id
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
