// Package format lays configurations out: YAML, JSON and CUE.
//
// It changes space and nothing else. Keys keep their order, because a comment
// belongs to what stands below it; quotes, numbers, anchors and comments stay as
// they are written. Every result is read again and must say what the text said
// before, or it is not given out. Formatting what was formatted changes nothing.
//
// YAML is laid out here and not by an encoder: those that exist write a parsed
// document anew, and lose comments at the end of a document and in flow lists,
// join lines and drop empty ones.
//
// All functions only read their arguments and are safe for concurrent use.
package format
