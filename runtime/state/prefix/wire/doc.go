// Package wire decodes the KV cache events of engines: what SGLang and vLLM
// publish about the blocks they store and remove.
//
// Events come as maps (both engines today) or as arrays (both before 2026); one
// decoder takes either, and the batch around them likewise. Counts are checked
// against caps before anything is allocated. A Batch is reused from message to
// message and belongs to one goroutine.
package wire
