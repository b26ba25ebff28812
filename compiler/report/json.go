package report

import (
	_ "embed" // the schema
	"encoding/json"
	"io"

	"shunt/compiler/diag"
)

// FormatVersion is the version of the JSON report. Its minor part grows when
// fields are added, its major part when a field changes or goes.
const FormatVersion = "1.1"

// findingsSchema describes the JSON report; a test holds the two together.
//
//go:embed findings.schema.json
var findingsSchema string

// FindingsSchema returns the JSON Schema (2020-12) of the JSON report.
func FindingsSchema() string { return findingsSchema }

// The JSON report. Its shape is the same with and without findings.
type jsonReport struct {
	FormatVersion   string        `json:"format_version"`
	Tool            jsonTool      `json:"tool"`
	Valid           bool          `json:"valid"`
	ExitStatus      int           `json:"exit_status"`
	ErrorCount      int           `json:"error_count"`
	WarningCount    int           `json:"warning_count"`
	NoteCount       int           `json:"note_count"`
	SuppressedCount int           `json:"suppressed_count"`
	Truncated       bool          `json:"truncated"`
	Findings        []jsonFinding `json:"findings"`
}

type jsonTool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type jsonFinding struct {
	Code     diag.Code     `json:"code"`
	Rule     string        `json:"rule"`
	Severity string        `json:"severity"`
	Message  string        `json:"message"`
	Hint     string        `json:"hint"`
	Path     string        `json:"path"`
	File     string        `json:"file"`
	Start    *jsonPos      `json:"start"`
	End      *jsonPos      `json:"end"`
	Snippet  *jsonSnippet  `json:"snippet"`
	Related  []jsonRelated `json:"related"`
	// Fingerprint knows the finding again in a later run.
	Fingerprint string          `json:"fingerprint"`
	Suppressed  *jsonSuppressed `json:"suppressed"`
}

// jsonSuppressed says why a finding does not count. The place is that of the
// comment or of the entry in the baseline.
type jsonSuppressed struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	File   string `json:"file"`
	Line   int    `json:"line"`
}

// jsonPos is a place: line and column from 1, byte from 0. Columns count bytes.
type jsonPos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// jsonSnippet is the line of a finding; the highlight is a range of its bytes.
type jsonSnippet struct {
	StartLine      int    `json:"start_line"`
	Code           string `json:"code"`
	HighlightStart int    `json:"highlight_start"`
	HighlightEnd   int    `json:"highlight_end"`
}

type jsonRelated struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// maxSnippet bounds the bytes of a snippet; a longer line has none.
const maxSnippet = 1000

func (r *Report) writeJSON(w io.Writer) error {
	list, left := r.shown(every)
	out := jsonReport{
		FormatVersion:   FormatVersion,
		Tool:            jsonTool{r.Tool, r.Version},
		Valid:           !r.Findings.HasErrors(),
		ExitStatus:      r.ExitStatus,
		ErrorCount:      r.Findings.Count(diag.Error),
		WarningCount:    r.Findings.Count(diag.Warning),
		NoteCount:       r.Findings.Count(diag.Note),
		SuppressedCount: r.Findings.Suppressed(),
		Truncated:       left > 0,
		Findings:        make([]jsonFinding, 0, len(list)),
	}
	lines, prints := r.excerpts(), r.fingerprints()
	for _, i := range list {
		f := lines.jsonFinding(&r.Findings[i])
		f.Fingerprint = prints[i]
		out.Findings = append(out.Findings, f)
	}
	return writeIndented(w, &out)
}

// writeIndented writes JSON for people and programs.
func writeIndented(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

func (e *excerpts) jsonFinding(f *diag.Finding) jsonFinding {
	entry, _ := diag.Lookup(f.Code)
	out := jsonFinding{
		Code: f.Code, Rule: entry.Title, Severity: f.Severity.String(), Message: f.Message, Hint: diag.Shorten(f.Hint),
		Path: f.Path, File: f.Pos.File, Start: position(f.Pos), End: position(f.End), Related: []jsonRelated{},
	}
	if line, ok := e.line(f.Pos); ok && len(line) <= maxSnippet {
		from := min(max(f.Pos.Column-1, 0), len(line))
		to := min(from+1, len(line))
		if f.End.Line == f.Pos.Line && f.End.Column > f.Pos.Column {
			to = min(f.End.Column-1, len(line))
		}
		out.Snippet = &jsonSnippet{StartLine: f.Pos.Line, Code: line, HighlightStart: from, HighlightEnd: to}
	}
	if s := f.Suppressed; s != nil {
		out.Suppressed = &jsonSuppressed{s.By.String(), diag.Shorten(s.Reason), s.Pos.File, s.Pos.Line}
	}
	for _, other := range f.Related {
		out.Related = append(out.Related, jsonRelated{other.Pos.File, other.Pos.Line, other.Pos.Column, diag.Shorten(other.Message)})
	}
	return out
}

// position is nil for a place whose line is not known.
func position(p diag.Pos) *jsonPos {
	if !p.Known() {
		return nil
	}
	return &jsonPos{p.Line, p.Column, p.Offset}
}
