package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// readdress gives the engines of a configuration the addresses of running ones.
// It works on the text, line by line, so that comments and layout survive: an
// engine is a line with its id, as in the example.
func readdress(text string, engines []engine) (string, error) {
	url := regexp.MustCompile(`url: "[^"]*"`)
	port := regexp.MustCompile(`bootstrap_port: \d+`)
	lines := strings.SplitAfter(text, "\n")
	for _, e := range engines {
		found := false
		for i, line := range lines {
			if !strings.Contains(line, "{id: "+e.ID+",") {
				continue
			}
			if found || !url.MatchString(line) || port.MatchString(line) != (e.BootstrapPort != 0) {
				return "", fmt.Errorf("line %d: not the one description of a %s engine %s", i+1, e.Role, e.ID)
			}
			found = true
			line = url.ReplaceAllLiteralString(line, `url: "`+e.URL+`"`)
			lines[i] = port.ReplaceAllLiteralString(line, "bootstrap_port: "+strconv.Itoa(e.BootstrapPort))
		}
		if !found {
			return "", fmt.Errorf("no engine %s", e.ID)
		}
	}
	return strings.Join(lines, ""), nil
}
