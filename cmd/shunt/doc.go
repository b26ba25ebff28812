// Command shunt is the toolchain: it checks configurations, compiles them into
// plans, and verifies, shows and explains plans.
//
// Findings and results go to standard output, progress and failures to standard
// error. The exit status is 0 when all is fine, 1 for findings, 2 for wrong usage
// and 3 when the job could not be done; it never depends on the format.
package main
