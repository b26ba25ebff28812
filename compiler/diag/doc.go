// Package diag is the language in which the compiler speaks about a
// configuration: a finding is a code, a place, a message and a hint.
//
// Codes are stable: a code never changes its meaning, and a retired one is not
// used again. The first two digits are its family:
//
//	SH00xx  the tool could not do its job: input, limits, evaluation
//	SH01xx  syntax and shape of the configuration
//	SH02xx  rules between its parts: references, uniqueness, compatibility
//	SH03xx  warnings of the static analysis
//	SH04xx  dropped options of older routers
//	SH05xx  plan files
//	SH08xx  suppressions, accepted findings
//
// Retired: SH0309 (limits while no load reports existed) and SH0401 to SH0409
// (settings that were not available yet).
//
// The package uses the standard library only. Findings and lists are plain
// values; one goroutine at a time may change a List.
package diag
