// Command vulndb writes a vulnerability database for govulncheck from the Go
// module that holds its sources, for machines that reach a module proxy and no
// other host.
//
//	go run ./.ci/vulndb [-version V] FOLDER
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pinned is the version that continuous integration checks against. Raise it to
// learn of newer advisories.
const pinned = "v0.0.0-20261105234957-e22db6528018"

const vulndbModule = "golang.org/x/vulndb"

func main() { os.Exit(run(os.Args, os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	version := flags.String("version", pinned, "`version` of "+vulndbModule)
	if flags.Parse(args[1:]) != nil || flags.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: vulndb [-version V] FOLDER")
		return 2
	}
	n, err := build(*version, flags.Arg(0))
	if err != nil {
		fmt.Fprintln(stderr, "vulndb:", err)
		return 1
	}
	fmt.Fprintf(stdout, "%d advisories of %s@%s in %s\n", n, vulndbModule, *version, flags.Arg(0))
	return 0
}

// advisory is the part of an OSV document that the indexes need.
type advisory struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Aliases  []string  `json:"aliases"`
	Affected []struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
		Ranges []struct {
			Events []struct {
				Fixed string `json:"fixed"`
			} `json:"events"`
		} `json:"ranges"`
	} `json:"affected"`
}

// The documents under index, as the protocol of the database has them.
type (
	moduleEntry struct {
		Path  string       `json:"path"`
		Vulns []moduleVuln `json:"vulns"`
	}
	moduleVuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Fixed    string    `json:"fixed,omitempty"`
	}
	vulnEntry struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Aliases  []string  `json:"aliases,omitempty"`
	}
	dbEntry struct {
		Modified time.Time `json:"modified"`
	}
)

// build writes the database and returns how many advisories it has.
func build(version, folder string) (int, error) {
	source, err := download(version)
	if err != nil {
		return 0, err
	}
	paths, err := filepath.Glob(filepath.Join(source, "data", "osv", "GO-*.json"))
	if err != nil {
		return 0, err
	}
	if len(paths) == 0 {
		return 0, fmt.Errorf("%s@%s has no advisories under data/osv", vulndbModule, version)
	}
	for _, sub := range []string{"ID", "index"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil {
			return 0, err
		}
	}
	var db index
	for _, path := range paths {
		if err := db.add(path, filepath.Join(folder, "ID")); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	return len(paths), db.write(filepath.Join(folder, "index"))
}

// download returns the folder of the module in the module cache.
func download(version string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "mod", "download", "-json", vulndbModule+"@"+version)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); jsonErr == nil && m.Error != "" {
		return "", fmt.Errorf("%s", m.Error)
	}
	if err != nil {
		return "", fmt.Errorf("go mod download: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return m.Dir, nil
}

// index is what the documents under index are made of.
type index struct {
	modified time.Time
	modules  map[string][]moduleVuln
	vulns    []vulnEntry
}

// add copies one advisory and indexes it.
func (db *index) add(path, to string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var a advisory
	if err := json.Unmarshal(data, &a); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, a.ID+".json"), data, 0o644); err != nil {
		return err
	}
	if a.Modified.After(db.modified) {
		db.modified = a.Modified
	}
	db.vulns = append(db.vulns, vulnEntry{ID: a.ID, Modified: a.Modified, Aliases: a.Aliases})
	if db.modules == nil {
		db.modules = make(map[string][]moduleVuln)
	}
	for _, affected := range a.Affected {
		v := moduleVuln{ID: a.ID, Modified: a.Modified}
		for _, r := range affected.Ranges {
			for _, e := range r.Events {
				if e.Fixed != "" {
					v.Fixed = e.Fixed
				}
			}
		}
		name := affected.Package.Name
		if !slices.ContainsFunc(db.modules[name], func(o moduleVuln) bool { return o.ID == v.ID }) {
			db.modules[name] = append(db.modules[name], v)
		}
	}
	return nil
}

func (db *index) write(folder string) error {
	modules := make([]moduleEntry, 0, len(db.modules))
	for path, vulns := range db.modules {
		modules = append(modules, moduleEntry{Path: path, Vulns: vulns})
	}
	slices.SortFunc(modules, func(a, b moduleEntry) int { return cmp.Compare(a.Path, b.Path) })
	for name, v := range map[string]any{"db": dbEntry{db.modified}, "modules": modules, "vulns": db.vulns} {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name+".json"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
