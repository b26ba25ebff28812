package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret bounds the file of a secret, in bytes.
const maxSecret = 64 << 10

// secret resolves a reference, env:NAME or file:PATH. Errors name the reference
// and never what it refers to. A line end after the secret is no part of it.
func secret(reference string) (string, error) {
	kind, name, _ := strings.Cut(reference, ":")
	var value string
	switch kind {
	case "env":
		value = os.Getenv(name)
	case "file":
		raw, err := readSecret(name)
		if err != nil {
			return "", err
		}
		value = strings.TrimRight(raw, "\r\n")
	default:
		return "", errors.New("no reference to a secret: want env:NAME or file:PATH")
	}
	if value == "" {
		return "", fmt.Errorf("the secret %s is empty or not set", reference)
	}
	return value, nil
}

func readSecret(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("secret: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(raw) > maxSecret {
		err = errors.New("too large")
	}
	if err != nil {
		return "", fmt.Errorf("secret file:%s: %w", name, err)
	}
	return string(raw), nil
}
