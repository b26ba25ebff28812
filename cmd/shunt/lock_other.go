//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

// lockFolder locks nothing where there is no flock.
func lockFolder(string) (unlock func()) { return func() {} }
