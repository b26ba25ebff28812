package report

import (
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"shunt/compiler/diag"
)

// sarifSchema is the name of the format in its own documents.
const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// fingerprintName names our fingerprints; its version changes when what goes
// into them does.
const fingerprintName = "shuntFinding/v1"

// A SARIF 2.1.0 log, as much of it as findings fill.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		ShortDescription sarifText    `json:"shortDescription"`
		FullDescription  sarifText    `json:"fullDescription"`
		Help             sarifText    `json:"help"`
		Configuration    sarifSetting `json:"defaultConfiguration"`
	}
	sarifSetting struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		ExitCode      int                 `json:"exitCode"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int        `json:"startLine"`
		StartColumn int        `json:"startColumn,omitempty"`
		EndLine     int        `json:"endLine,omitempty"`
		EndColumn   int        `json:"endColumn,omitempty"`
		Snippet     *sarifText `json:"snippet,omitempty"`
	}
	sarifSuppression struct {
		Kind          string         `json:"kind"`
		Status        string         `json:"status"`
		Justification string         `json:"justification,omitempty"`
		Location      *sarifLocation `json:"location,omitempty"`
	}
)

func (r *Report) writeSARIF(w io.Writer) error {
	list, left := r.shown(every)
	invocation := sarifInvocation{Successful: !r.Findings.Failed(), ExitCode: r.ExitStatus}
	if left > 0 {
		invocation.Notifications = []sarifNotification{{Level: "warning", Message: sarifText{notShown(left)}}}
	}
	codes := r.codes(list)
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: r.Tool, Version: r.Version, Rules: sarifRules(codes)}},
		Invocations: []sarifInvocation{invocation},
		ColumnKind:  "utf16CodeUnits",
		Results:     make([]sarifResult, 0, len(list)),
	}
	lines, prints := r.excerpts(), r.fingerprints()
	for _, i := range list {
		result := r.sarifResult(lines, &r.Findings[i])
		result.RuleIndex, _ = slices.BinarySearch(codes, r.Findings[i].Code)
		result.Fingerprints = map[string]string{fingerprintName: prints[i]}
		run.Results = append(run.Results, result)
	}
	return writeIndented(w, &sarifLog{sarifSchema, "2.1.0", []sarifRun{run}})
}

// codes lists the codes of some of the findings in ascending order.
func (r *Report) codes(list []int) []diag.Code {
	var out []diag.Code
	for _, i := range list {
		out = append(out, r.Findings[i].Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func sarifRules(codes []diag.Code) []sarifRule {
	out := make([]sarifRule, 0, len(codes))
	for _, code := range codes {
		e, ok := diag.Lookup(code)
		if !ok {
			e = diag.Entry{Code: code, Title: string(code), Explanation: string(code), Hint: string(code)}
		}
		out = append(out, sarifRule{
			ID: string(code), ShortDescription: sarifText{e.Title}, FullDescription: sarifText{e.Explanation},
			Help: sarifText{e.Hint}, Configuration: sarifSetting{e.Severity.String()},
		})
	}
	return out
}

func (r *Report) sarifResult(lines *excerpts, f *diag.Finding) sarifResult {
	text := f.Message
	if f.Hint != "" {
		text += "\nhint: " + diag.Shorten(f.Hint)
	}
	out := sarifResult{
		RuleID: string(f.Code), Level: f.Severity.String(), Message: sarifMessage(text),
		// Either every result of a run has suppressions or none has.
		Locations: []sarifLocation{}, Suppressions: []sarifSuppression{},
	}
	if f.Pos.File != "" {
		location := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{r.uri(f.Pos.File)}, Region: lines.sarifRegion(f)}}
		if f.Path != "" {
			location.Logical = []sarifLogical{{f.Path}}
		}
		out.Locations = append(out.Locations, location)
	}
	for _, other := range f.Related {
		if other.Pos.File == "" {
			continue
		}
		location := r.sarifPlace(lines, other.Pos)
		message := sarifMessage(diag.Shorten(other.Message))
		location.Message = &message
		out.Related = append(out.Related, *location)
	}
	if s := f.Suppressed; s != nil {
		suppression := sarifSuppression{Kind: "external", Status: "accepted", Justification: diag.Shorten(s.Reason)}
		if s.By == diag.ByComment {
			suppression.Kind = "inSource"
		}
		if s.Pos.File != "" {
			suppression.Location = r.sarifPlace(lines, s.Pos)
		}
		out.Suppressions = append(out.Suppressions, suppression)
	}
	return out
}

// sarifPlace is the location of a place without an end.
func (r *Report) sarifPlace(lines *excerpts, p diag.Pos) *sarifLocation {
	out := &sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{r.uri(p.File)}}}
	if p.Known() {
		out.Physical.Region = &sarifRegion{StartLine: p.Line, StartColumn: lines.column(p)}
	}
	return out
}

func (e *excerpts) sarifRegion(f *diag.Finding) *sarifRegion {
	at := e.region(f)
	if at.line == 0 {
		return nil
	}
	out := &sarifRegion{StartLine: at.line}
	if at.column > 0 {
		out.StartColumn, out.EndLine, out.EndColumn = at.column, at.endLine, at.endColumn
	}
	x := e.look(f.Pos)
	if line := x.masked; x.ok && at.endLine == at.line && f.Pos.Column >= 1 && f.Pos.Column <= len(line) {
		to := f.Pos.Column
		if f.End.Line == f.Pos.Line && f.End.Column > f.Pos.Column {
			to = min(f.End.Column-1, len(line))
		}
		if snippet := line[f.Pos.Column-1 : to]; len(snippet) <= maxSnippet && snippet == x.raw[f.Pos.Column-1:to] {
			out.Snippet = &sarifText{snippet}
		}
	}
	return out
}

// What a message would say with its characters: {0} is an argument and [a](b) a
// link.
var sarifArgument = regexp.MustCompile(`\{(\d+)\}`)

// sarifMessage makes a message of a text that is to be shown as it is.
func sarifMessage(text string) sarifText {
	text = sarifArgument.ReplaceAllString(text, "{{$1}}")
	if strings.Contains(text, "](") {
		text = strings.NewReplacer("[", `\[`, "]", `\]`).Replace(text)
	}
	return sarifText{text}
}

// uri is the name of a file as a URI, relative where the name is.
func (r *Report) uri(name string) string {
	name = r.fileName(name)
	u := url.URL{Path: name}
	if filepath.IsAbs(name) || strings.HasPrefix(name, "/") {
		u.Scheme = "file"
		u.Path = "/" + strings.TrimPrefix(name, "/")
	}
	return u.String()
}
