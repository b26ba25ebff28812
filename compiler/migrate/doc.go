// Package migrate turns the command line of an older router into a configuration,
// and accounts for each of its elements.
package migrate
