// Package policy chooses one engine among candidates: the contract, admission,
// and one file per policy.
//
// A policy owns selection, fallback and admission within the candidates it is
// given. It never chooses another bucket or stage, and it keeps no candidate
// slice after Pick returned. Policies are safe for concurrent use; a Request
// belongs to one goroutine.
package policy
