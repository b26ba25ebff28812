// Package bpe turns text into the token ids that an engine computes for it, from
// the engine's own tokenizer.json.
//
// Only byte-level BPE with one of three families of pre-tokenizers is
// implemented, each by hand and each id for id equal to the Hugging Face
// library. A file that asks for anything else is refused with the component at
// fault: a wrong id would look like a miss of the prefix cache and never be
// noticed. Character classes and normalization come from tables of this package,
// because the library has its own versions of Unicode and Go's change with the
// toolchain.
//
// A Tokenizer is safe for concurrent use. The package imports the reader of
// ordered JSON and nothing else of this module.
package bpe
