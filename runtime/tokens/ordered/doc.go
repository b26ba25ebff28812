// Package ordered reads JSON in the order in which it is written, pulled by the
// caller, without building values that nobody asked for.
//
// Chat templates print objects in the order of their keys, so a map would lose
// what decides the token ids; and a tokenizer file holds several hundred thousand
// entries that have to reach their tables without a detour. The package imports
// nothing of this module. A Reader belongs to one goroutine.
package ordered
