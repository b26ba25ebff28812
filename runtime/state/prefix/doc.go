// Package prefix knows which engines already hold the KV cache of a prompt's
// beginning, so that a pick can prefer them.
//
// Engines publish the blocks they store and remove; an Index gathers them as a
// forest of hash chains with the owners of each block. A prompt is cut into
// blocks and hashed exactly as the engines do (Hashing), and the index answers
// how many leading blocks each engine holds. A Source is what a policy asks: the
// local index, or a remote indexer (package indexer). A Memo makes sure that one
// request asks each source once.
//
// The events arrive through package feed; package wire decodes them. An Index, a
// Namespace, a Memo and all sources are safe for concurrent use; Hashing and
// Outcome are values.
package prefix
