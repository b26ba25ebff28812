// Package template renders chat templates: the part of Jinja that models use to
// write a conversation as one text.
//
// The law is Jinja for Python as Hugging Face sets it up: trim_blocks and
// lstrip_blocks on, no escaping, tojson as Python's json writes, objects in the
// order of their keys. What is not implemented is refused with its position when
// a template is compiled, or at the latest when it is met: a text that differs in
// one character has other token ids.
//
// A Template is compiled once and is safe for concurrent use. A rendering is
// bounded in steps, output and depth, and stops with its context. The package
// imports the reader of ordered JSON and nothing else of this module.
package template
