package report

import (
	"io"

	"shunt/compiler/diag"
)

// A GitLab code quality report is a list of these.
type gitLabIssue struct {
	Type        string         `json:"type"`
	Description string         `json:"description"`
	CheckName   string         `json:"check_name"`
	Categories  []string       `json:"categories"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitLabLocation `json:"location"`
}

type gitLabLocation struct {
	Path      string          `json:"path"`
	Positions gitLabPositions `json:"positions"`
}

type gitLabPositions struct {
	Begin gitLabPosition `json:"begin"`
	End   gitLabPosition `json:"end"`
}

type gitLabPosition struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// writeGitLab writes the findings that count; the format has no place for
// suppressed ones.
func (r *Report) writeGitLab(w io.Writer) error {
	list, left := r.shown(active)
	lines, prints := r.excerpts(), r.fingerprints()
	out := make([]gitLabIssue, 0, len(list)+1)
	for _, i := range list {
		f := &r.Findings[i]
		text := f.Message
		if f.Hint != "" {
			text += " (" + diag.Shorten(f.Hint) + ")"
		}
		at := lines.region(f)
		out = append(out, gitLabIssue{
			Type: "issue", Description: text, CheckName: string(f.Code), Categories: []string{"Bug Risk"},
			Fingerprint: prints[i], Severity: gitLabSeverity(f),
			Location: gitLabLocation{Path: r.located(f.Pos.File), Positions: gitLabPositions{
				// GitLab wants a place also where there is none.
				Begin: gitLabPosition{max(at.line, 1), max(at.column, 1)},
				End:   gitLabPosition{max(at.endLine, 1), max(at.endColumn, at.column, 1)},
			}},
		})
	}
	if left > 0 {
		first := gitLabPosition{1, 1}
		out = append(out, gitLabIssue{
			Type: "issue", Description: notShown(left), CheckName: r.Tool, Categories: []string{"Bug Risk"},
			Fingerprint: "not-shown", Severity: "info",
			Location: gitLabLocation{Path: r.Tool, Positions: gitLabPositions{first, first}},
		})
	}
	return writeIndented(w, out)
}

func gitLabSeverity(f *diag.Finding) string {
	switch {
	case f.Severity == diag.Error && f.Code.Failure():
		return "blocker"
	case f.Severity == diag.Error:
		return "critical"
	case f.Severity == diag.Warning:
		return "minor"
	}
	return "info"
}

// located is the name of a file for formats in which everything has one.
func (r *Report) located(name string) string {
	if name == "" {
		return r.Tool
	}
	return r.fileName(name)
}
