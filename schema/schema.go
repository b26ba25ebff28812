// Package schema holds the CUE schema of the configuration as text, and the JSON
// Schema for editors that is made from it. It evaluates nothing; compiler/check
// does.
//
// The words of the schema are the words of the whole project. Where a comment
// in a CUE file says "engine", older routers said worker; the field name
// worker_ids keeps the old word because it is the one people already write.
//
// The package is read-only and safe for concurrent use.
package schema

import (
	"bytes"
	_ "embed"
)

//go:embed config.cue
var config string

//go:embed policy.cue
var policy string

//go:embed admission.cue
var admission string

//go:embed state.cue
var state string

//go:embed legacy.cue
var legacy string

//go:embed config.schema.json
var editors []byte

// JSON returns the JSON Schema of a configuration. It has the shape that the CUE
// schema has, and editors know how to use it.
func JSON() []byte { return bytes.Clone(editors) }

//go:embed test.cue
var test string

//go:embed test.schema.json
var testEditors []byte

// TestJSON returns the JSON Schema of a file of tests of routing decisions.
func TestJSON() []byte { return bytes.Clone(testEditors) }

// File is one CUE file of the schema.
type File struct {
	Name string
	Text string
}

// Files returns the files of the schema's one CUE package. The definition
// #Config describes a configuration, and #Legacy holds the dropped names.
func Files() []File {
	return []File{
		{"config.cue", config},
		{"policy.cue", policy},
		{"admission.cue", admission},
		{"state.cue", state},
		{"legacy.cue", legacy},
	}
}

// TestFiles returns the files of the schema with that of test files, which the
// definition #Tests describes.
func TestFiles() []File { return append(Files(), File{"test.cue", test}) }
