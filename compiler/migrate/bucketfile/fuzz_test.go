package bucketfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/bucketfile"
)

// seeds adds the input files of the cases.
func seeds(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			if !strings.HasPrefix(file.Name, "want/") {
				f.Add(file.Data)
			}
		}
	}
}

func sound(t *testing.T, name string, data []byte, list diag.List) {
	t.Helper()
	lines := strings.Count(string(data), "\n") + 1
	for _, f := range list {
		if f.Code == diag.Internal || f.Message == "" || f.Pos.File != name || f.Pos.Line > lines {
			t.Errorf("%v", f)
		}
	}
}

// FuzzRead reads bucket files and associates those without mistakes.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		file, findings := bucketfile.Read(t.Context(), "f", data, bucketfile.Options{})
		sound(t, "f", data, findings)
		if findings.HasErrors() {
			return
		}
		buckets, open, _ := bucketfile.Associate(file, bucketfile.Decisions{})
		if len(file.Specs) != len(open) || len(buckets) != len(file.Buckets) {
			t.Errorf("%d specs, %d buckets: %d questions, %d complete buckets", len(file.Specs), len(file.Buckets), len(open), len(buckets))
		}
		template := bucketfile.Template(open)
		_, answers := bucketfile.ReadDecisions(t.Context(), "d.yaml", template)
		for _, a := range answers {
			if !strings.Contains(a.Message, "is still the placeholder TODO") {
				t.Errorf("%v in\n%s", a, template)
			}
		}
	})
}

// FuzzDecisions reads decisions files.
func FuzzDecisions(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, findings := bucketfile.ReadDecisions(t.Context(), "d.yaml", data)
		sound(t, "d.yaml", data, findings)
	})
}

// FuzzConfig reads configuration files and files of engines.
func FuzzConfig(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"c.toml", "c.yaml"} {
			_, findings := bucketfile.ReadConfig(t.Context(), name, data)
			sound(t, name, data, findings)
			_, _, findings = bucketfile.ReadWorkers(t.Context(), name, data)
			sound(t, name, data, findings)
		}
	})
}
