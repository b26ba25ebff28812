// Package flags knows the command line of the older router: its arguments, the
// habits of its parser, and what it refuses at start-up.
package flags
