// Package prepare turns the bytes and headers of a chat request into the facts
// that routing needs, and into the body and headers that engines receive.
//
// The body is read in one strict pass and never re-encoded: members are cut out
// and appended as bytes. What a model wants of sampling parameters is applied
// here, and its prompts are tokenized here within the bounds of the process. Parsed
// requests belong to one goroutine; everything else is safe for concurrent use.
package prepare
