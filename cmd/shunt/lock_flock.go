//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockWait bounds how long lockFolder waits for another process.
const lockWait = 5 * time.Second

// lockFolder keeps other processes of this program from writing a plan and its
// signature to the folder of a file, and returns what lets them again. It is
// best effort: without it one of two writers at the same time may leave a
// signature that does not fit, which every reader refuses.
func lockFolder(name string) (unlock func()) {
	f, err := os.Open(filepath.Dir(resolve(name)))
	if err != nil {
		return func() {} // writing will say why
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR || time.Now().After(end) {
			break
		}
	}
	return func() { _ = f.Close() } // which unlocks; nothing was written
}
