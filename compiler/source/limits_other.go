//go:build !(linux || darwin || freebsd)

package source

import "errors"

// limitProcess refuses, because an evaluation without limits is not offered.
func limitProcess() error {
	return errors.New("CUE programs cannot be limited on this system, so they are not evaluated")
}
