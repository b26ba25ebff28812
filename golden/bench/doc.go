// Command bench measures the binaries as a user has them: how long compiling
// takes, how soon the server listens, and what forwarding costs next to nginx
// and haproxy as plain reverse proxies over the same engines in the same run.
//
//	go run ./golden/bench --bin bin [compile|start|forward]
//
// Engines, proxies and the load generator share the machine, so only ratios
// within one run mean something. Rounds of all targets are interleaved.
package main
