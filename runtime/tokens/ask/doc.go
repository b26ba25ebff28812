// Package ask lets an engine tokenize: it sends the parts of a chat request that
// decide the prompt to the engine's /tokenize and reads the ids.
//
// SGLang and vLLM take the same question and give the same answer; they differ in
// what of a chat request /tokenize heeds. A request with something that the
// engine's /tokenize would pass over, but its chat endpoint would not, is not
// asked about: its ids would be wrong. Older engines that take texts only refuse
// the question, which is an estimate like every other failure.
//
// A Client is safe for concurrent use. The package is for prepare and app.
package ask
