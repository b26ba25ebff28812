package simulate

import (
	"fmt"
	"io"
	"strings"

	"shunt/runtime/policy"
	"shunt/runtime/routing"
)

// Text writes a decision for people.
func Text(w io.Writer, d *routing.Decision) error {
	var b strings.Builder
	fmt.Fprintf(&b, "request   model %s, input %d tokens%s, %s%s\n", d.Model, d.Input, sourceText(d), peakText(d.Peak), targetsText(d))
	for i := range d.Buckets {
		bucketText(&b, d, &d.Buckets[i])
	}
	b.WriteString(outcomeText(d))
	_, err := io.WriteString(w, b.String())
	return err
}

// sourceText says where the length came from, if that is known.
func sourceText(d *routing.Decision) string {
	switch {
	case d.InputSource == "":
		return ""
	case d.InputReason == "":
		return " (" + d.InputSource + ")"
	}
	return fmt.Sprintf(" (%s: %s)", d.InputSource, d.InputReason)
}

func peakText(peak int64) string {
	if peak == 0 {
		return "expected peak unknown"
	}
	return fmt.Sprintf("expected peak %d", peak)
}

func targetsText(d *routing.Decision) (s string) {
	if d.TTFTMS != nil {
		s += fmt.Sprintf(", first token within %d ms", *d.TTFTMS)
	}
	if d.TPS != nil {
		s += fmt.Sprintf(", %v tokens/s", *d.TPS)
	}
	return s
}

func bucketText(b *strings.Builder, d *routing.Decision, t *routing.BucketTrace) {
	later := ""
	if t.Penalty > 0 {
		later = fmt.Sprintf(" (after others, latency penalty %d)", t.Penalty)
	}
	fmt.Fprintf(b, "bucket    %s: %s%s\n", t.ID, fateText(d, t), later)
	for i := range t.Groups {
		groupText(b, &t.Groups[i])
	}
}

func fateText(d *routing.Decision, t *routing.BucketTrace) string {
	switch t.Fate {
	case routing.BelowMin:
		return fmt.Sprintf("skipped, input %d is below its minimum %d", d.Input, *t.Bound)
	case routing.AboveMax:
		return fmt.Sprintf("skipped, input %d is above its maximum %d", d.Input, *t.Bound)
	case routing.AboveContext:
		return fmt.Sprintf("skipped, peak %d is above its context %d", max(d.Input, d.Peak), *t.Bound)
	case routing.Picked:
		return "picked"
	case routing.Failed:
		return "tried, no complete selection"
	}
	return "not tried"
}

func groupText(b *strings.Builder, g *routing.GroupTrace) {
	fmt.Fprintf(b, "  %-7s candidates %s\n", g.Stage, list(g.Candidates))
	for i := range g.Affinity {
		fmt.Fprintf(b, "          %s\n", affinityText(&g.Affinity[i]))
	}
	compared := g.Compared
	if g.Cache != nil {
		compared = cacheText(b, g.Cache, compared)
	}
	if len(compared) > 1 {
		fmt.Fprintf(b, "          compared by %s\n", g.Source)
		for i := range compared {
			fmt.Fprintf(b, "            %s\n", comparedText(&compared[i]))
		}
	}
	for i := range g.Admission {
		fmt.Fprintf(b, "          %s\n", verdictText(&g.Admission[i]))
	}
	switch {
	case g.Pick != nil:
		fmt.Fprintf(b, "          pick %s (%s)\n", g.Pick.Engine, g.Pick.Reason)
	case g.Error != nil:
		fmt.Fprintf(b, "          failed: %s\n", errorText(g.Error))
	}
}

func list(ids []string) string {
	const most = 16
	switch n := len(ids); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], " "), n-most)
	}
	return strings.Join(ids, " ")
}

func comparedText(c *policy.Compared) string { return c.Engine + ": " + observedText(c) }

func observedText(c *policy.Compared) string {
	s := fmt.Sprintf("in-flight %d", c.Inflight)
	s += value("depth", c.Depth) + value("running", c.Running) + value("waiting", c.Waiting)
	s += value("pending prefill", c.WaitingUncached)
	if c.QueueMS != nil {
		s += fmt.Sprintf(", prefill queue %.1f ms", *c.QueueMS)
	}
	if c.Used != nil && c.Capacity != nil {
		s += fmt.Sprintf(", KV %d of %d", *c.Used, *c.Capacity)
	}
	if c.Running == nil {
		s += ", no fresh report"
	}
	return s
}

func verdictText(v *policy.Verdict) string {
	seen := fmt.Sprintf("in-flight %d", v.Inflight)
	seen += value("running", v.Running) + value("waiting", v.Waiting) + value("KV", v.KV) + value("pending prefill", v.Pending)
	if v.Running == nil {
		seen += ", no fresh report: limits on reports pass"
	}
	if v.Limit == "" {
		return fmt.Sprintf("admission admits %s (%s)", v.Engine, seen)
	}
	return fmt.Sprintf("admission rejects %s at %s (%s)", v.Engine, v.Limit, seen)
}

func value(name string, v *uint64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(", %s %d", name, *v)
}

func errorText(e *routing.ErrorTrace) string {
	s := strings.ReplaceAll(e.Kind, "_", " ")
	if e.Stage != "" {
		s += " (" + e.Stage + ")"
	}
	for i, r := range e.Rejected {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		s += sep + r.Engine + " at " + string(r.Limit)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func outcomeText(d *routing.Decision) string {
	if d.Error != nil {
		return "outcome   no selection: " + errorText(d.Error) + "\n"
	}
	return "outcome   " + Compact(d) + "\n"
}

// Compact is a successful decision on one line: bucket, engines, reasons.
func Compact(d *routing.Decision) string {
	s := "bucket " + d.Bucket
	for _, p := range []struct {
		stage string
		pick  *routing.PickTrace
	}{{"plain", d.Plain}, {"prefill", d.Prefill}, {"decode", d.Decode}} {
		if p.pick != nil {
			s += fmt.Sprintf(", %s %s (%s)", p.stage, p.pick.Engine, p.pick.Reason)
		}
	}
	return s
}
