// Package argv finds the command line of an older router in whatever holds it: a
// shell script, a Kubernetes manifest, a compose file or a systemd unit.
package argv
