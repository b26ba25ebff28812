//go:build linux || darwin || freebsd

package source

import (
	"fmt"
	"syscall"
)

// Limits of the evaluation child.
const (
	childMemory     = 4 << 30 // bytes of address space
	childCPUSeconds = 10
)

// limitProcess bounds the memory and processor time of this process for good.
func limitProcess() error {
	if !raceDetector {
		limit := syscall.Rlimit{Cur: childMemory, Max: childMemory}
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
			return fmt.Errorf("limit of memory: %w", err)
		}
	}
	limit := syscall.Rlimit{Cur: childCPUSeconds, Max: childCPUSeconds}
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		return fmt.Errorf("limit of processor time: %w", err)
	}
	return nil
}
