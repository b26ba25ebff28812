// Command vulndb makes an offline database for govulncheck out of the module
// golang.org/x/vulndb, which any module proxy has, while the database's own host
// may be out of reach. Its argument is the folder to write; use it with
// govulncheck -db file://FOLDER.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// source is the module whose reports are used.
const source = "golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018"

// report is what the indexes need of an OSV document.
type report struct {
	ID        string    `json:"id"`
	Modified  time.Time `json:"modified"` // the module leaves it zero
	Published time.Time `json:"published"`
	Withdrawn string    `json:"withdrawn"`
	Aliases   []string  `json:"aliases"`
	Affected  []struct {
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

// The entries of index/vulns.json and index/modules.json.
type (
	vuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Aliases  []string  `json:"aliases,omitempty"`
	}
	moduleVuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Fixed    string    `json:"fixed,omitempty"`
	}
	module struct {
		Path  string       `json:"path"`
		Vulns []moduleVuln `json:"vulns"`
	}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vulndb FOLDER")
		os.Exit(2)
	}
	if err := build(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "vulndb:", err)
		os.Exit(3)
	}
}

// build writes the database.
func build(to string) error {
	dir, err := download()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "data", "osv", "*.json"))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("no reports in %s", dir), err)
	}
	for _, sub := range []string{"ID", "index"} {
		if err := os.MkdirAll(filepath.Join(to, sub), 0o755); err != nil {
			return err
		}
	}
	var newest time.Time
	var vulns []vuln
	modules := map[string]*module{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var r report
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if r.Withdrawn != "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, "ID", r.ID+".json"), data, 0o644); err != nil {
			return err
		}
		if r.Published.After(newest) {
			newest = r.Published
		}
		vulns = append(vulns, vuln{r.ID, r.Modified, r.Aliases})
		index(modules, &r)
	}
	sorted := slices.SortedFunc(maps.Values(modules), func(a, b *module) int { return cmp.Compare(a.Path, b.Path) })
	for name, v := range map[string]any{
		"db.json": map[string]time.Time{"modified": newest}, "vulns.json": vulns, "modules.json": sorted,
	} {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "index", name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d reports about %d modules, the newest of %s\n", len(vulns), len(modules), newest.Format(time.DateOnly))
	return nil
}

// index adds a report to the modules that it is about, once each, with the last
// version that fixes it.
func index(modules map[string]*module, r *report) {
	for _, a := range r.Affected {
		m := modules[a.Package.Name]
		if m == nil {
			m = &module{Path: a.Package.Name}
			modules[m.Path] = m
		}
		if n := len(m.Vulns); n > 0 && m.Vulns[n-1].ID == r.ID {
			continue
		}
		v := moduleVuln{ID: r.ID, Modified: r.Modified}
		for _, rg := range a.Ranges {
			for _, e := range rg.Events {
				if e.Fixed != "" {
					v.Fixed = e.Fixed
				}
			}
		}
		m.Vulns = append(m.Vulns, v)
	}
}

// download fetches the module and returns its folder.
func download() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", source)
	cmd.Dir = os.TempDir() // outside any module, whose go.sum does not know it
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jerr := json.Unmarshal(out, &m); jerr == nil && m.Error != "" {
		return "", errors.New(strings.TrimSpace(m.Error))
	}
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w", source, err)
	}
	return m.Dir, nil
}
