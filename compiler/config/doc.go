// Package config is the configuration as people write it: its Go types, the
// spellings of durations and sizes, and the defaults of everything optional.
//
// Absent, empty and zero differ, so what may be absent is a pointer. The types
// follow the CUE schema field by field; unknown fields were refused before.
//
// The package uses the standard library only. Values are plain data, safe for
// concurrent reading.
package config
