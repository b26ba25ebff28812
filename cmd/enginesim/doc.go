// Command enginesim runs simulated SGLang engines for demonstrations, tests
// and benchmarks: one that its flags describe, or several from a file. See
// package shunt/runtime/enginetest for what an engine does.
//
// When all engines accept connections it prints one line of JSON with their
// addresses on standard output; it runs until it is interrupted.
package main
