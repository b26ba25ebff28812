// Package compiler turns configurations into a plan: it reads, judges, lowers
// and seals. It is the only compiler package that a program needs besides the
// ones that print its results.
//
// Compiling uses no network, no clock and no randomness: the same inputs give the
// same plan, whatever their syntax. Compile may be called from several
// goroutines; a result is immutable.
package compiler
