package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"shunt/compiler/report"
)

// goldenCase is a case of golden/check as arguments of a command.
type goldenCase struct {
	options, names []string
}

// caseFile is the input that says how a case is compiled.
const caseFile = "options.json"

// unpack writes the inputs of a case into the current folder.
func unpack(t *testing.T, archive *txtar.Archive) goldenCase {
	t.Helper()
	var c goldenCase
	var options []byte
	for _, s := range archive.Files {
		if strings.HasPrefix(s.Name, "want/") {
			continue
		}
		name, data := s.Name, s.Data
		if plain, ok := strings.CutSuffix(name, ".quoted"); ok {
			name, data = plain, nil
			for line := range strings.Lines(string(s.Data)) {
				text, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
				if err != nil {
					t.Fatal(err)
				}
				data = append(data, text...)
			}
		}
		if name == caseFile {
			options = data
			continue
		}
		writeInput(t, name, data)
		c.names = append(c.names, name)
	}
	if options != nil {
		c.read(t, options)
	}
	return c
}

func writeInput(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c *goldenCase) read(t *testing.T, data []byte) {
	t.Helper()
	var o struct {
		Inputs       []string          `json:"inputs"`
		AllowCUECode bool              `json:"allow_cue_code"`
		MaxBytes     int64             `json:"max_bytes"`
		EvalTimeout  string            `json:"eval_timeout"`
		Links        map[string]string `json:"links"`
		Folders      []string          `json:"folders"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	for name, target := range o.Links {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range o.Folders {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if o.AllowCUECode {
		c.options = append(c.options, "--allow-cue-code")
	}
	if o.MaxBytes > 0 {
		c.options = append(c.options, fmt.Sprint("--max-bytes=", o.MaxBytes))
	}
	if o.EvalTimeout != "" {
		c.options = append(c.options, "--eval-timeout="+o.EvalTimeout)
	}
	if o.Inputs != nil {
		c.names = o.Inputs
	}
}

// schemas are those of the formats that have one.
func schemas(t *testing.T) map[report.Format]*jsonschema.Schema {
	t.Helper()
	sarif, err := os.ReadFile("../../compiler/report/testdata/sarif/sarif-2.1.0-rtm.5.json")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[report.Format]*jsonschema.Schema)
	for f, text := range map[report.Format]string{report.JSON: report.FindingsSchema(), report.SARIF: string(sarif)} {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(string(f), document); err != nil {
			t.Fatal(err)
		}
		if out[f], err = c.Compile(string(f)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// wellFormed holds a report to what its format is made of.
func wellFormed(f report.Format, schema *jsonschema.Schema, data []byte) error {
	switch f {
	case report.JUnit, report.Checkstyle:
		for d := xml.NewDecoder(bytes.NewReader(data)); ; {
			if _, err := d.Token(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	case report.JSON, report.SARIF, report.GitLab:
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil || schema == nil {
			return err
		}
		return schema.Validate(value)
	}
	return nil
}

// TestFormatsAgree runs every case of golden/check in every format, each alone
// and all together: the exit status is the same, and each report is what its
// format is.
func TestFormatsAgree(t *testing.T) {
	paths, err := filepath.Glob("../../golden/check/*.txtar")
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d cases, %v", len(paths), err)
	}
	schemas := schemas(t)
	statuses := make(map[int]int)
	for i, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Chdir(t.TempDir())
			c := unpack(t, archive)
			for _, failOn := range []string{"error", "note"} {
				if failOn == "note" && (len(c.options) > 0 || i%5 != 0) {
					continue // programs, and so many checks, take their time
				}
				want := -1
				together := append([]string{"shunt", "check", "--fail-on", failOn, "--quiet"}, c.options...)
				for _, f := range report.Formats() {
					args := slices.Concat([]string{"shunt", "check", "--format", string(f), "--fail-on", failOn}, c.options, []string{"--"}, c.names)
					var out, problems bytes.Buffer
					got := run(t.Context(), args, strings.NewReader(""), &out, &problems)
					if want < 0 {
						want = got
					}
					if got != want || problems.Len() > 0 {
						t.Errorf("%s: status %d, want %d; %s", f, got, want, &problems)
					}
					if err := wellFormed(f, schemas[f], out.Bytes()); err != nil {
						t.Errorf("%s: %v\n%s", f, err, &out)
					}
					alone := string(f) + ".out"
					writeInput(t, alone, out.Bytes())
					together = append(together, "--format", string(f)+"="+alone+".again")
				}
				statuses[want]++
				if failOn == "note" {
					continue // files are written to disk, which takes its time
				}
				var out, problems bytes.Buffer
				if got := run(t.Context(), append(append(together, "--"), c.names...), strings.NewReader(""), &out, &problems); got != want || out.Len()+problems.Len() > 0 {
					t.Errorf("together: status %d, want %d; %s %s", got, want, &out, &problems)
				}
				for _, f := range report.Formats() {
					a, _ := os.ReadFile(string(f) + ".out")
					b, err := os.ReadFile(string(f) + ".out.again")
					if err != nil || !bytes.Equal(a, b) {
						t.Errorf("%s differs in a file: %v\n%s\n%s", f, err, a, b)
					}
				}
			}
		})
	}
	if statuses[exitFine] == 0 || statuses[exitFindings] == 0 || statuses[exitFailed] == 0 {
		t.Errorf("statuses %v; the cases do not tell formats apart", statuses)
	}
}
