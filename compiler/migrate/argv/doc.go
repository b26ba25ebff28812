// Package argv finds the invocation of a legacy router in what teams keep it in
// and returns its arguments with their places: a shell script or a file with
// only the arguments, a Kubernetes manifest or a stream of them as Helm renders
// it, a docker-compose file, a systemd unit.
//
// Nothing is executed and nothing but the given bytes is read. What only the
// running system knows (an environment variable, the output of a command, a
// secret) stays in the text as it is written and is named in Arg.Open. What a
// shell or the orchestrator would do with the text before the router sees it is
// done here: quoting, continuations, substitution of values that the input
// itself gives, splitting.
//
// Inputs are untrusted: sizes, nesting, aliases and the growth by substitution
// are bounded, and no value of a variable that may be a secret is returned.
package argv
