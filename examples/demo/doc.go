// Command demo shows the whole product on one machine, with nothing but Go: it
// builds the commands, starts eight simulated engines, compiles the example
// pd-two-buckets for their addresses, serves it, sends requests of three sizes
// and checks that each goes where the example says. Run it from the root of the
// repository:
//
//	go run ./examples/demo          # as make demo does; exit code 0 when all is as expected
//	go run ./examples/demo --keep   # as make run does: keeps everything up until Ctrl-C
//	go run ./examples/demo --cache   # as make demo-cache does: conversations that follow their prefix
//	go run ./examples/demo --exec 'command'   # runs a command with SHUNT_URL set
//
// It imports nothing of this project: all it does, anybody can do with the
// commands and HTTP.
package main
