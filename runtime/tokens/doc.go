// Package tokens tells the token ids that an engine will compute for a chat
// request, from the model's own tokenizer and chat template.
//
// Each answer says how far it can be trusted: ids are exact where engines provably
// render a request the same way, rendered where an engine may rewrite it first,
// and otherwise there is only an estimate of the length. Exact ids may be
// forwarded to an engine, rendered ones serve to find cached prefixes: a wrong one
// costs a miss and never a wrong answer.
//
// A Model is safe for concurrent use. The package may be imported by prepare,
// server and app; it imports its own parts (bpe, template, ordered) and nothing
// else of this module.
package tokens
