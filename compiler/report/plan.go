package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"shunt/schema/plan"
)

// WritePlan writes a plan as text for people: settings, and per model its
// engines, its buckets in try order, the candidates by input length, and what it
// requires and why.
func WritePlan(out io.Writer, d *plan.Document) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "plan %s\n", Clean(d.Digest))
	fmt.Fprintf(w, "format %s, compiled by %s\n", d.Format, Clean(cmp.Or(d.Provenance.Compiler, "an unnamed compiler")))
	for _, s := range d.Provenance.Sources {
		fmt.Fprintf(w, "source %s sha256:%s\n", Clean(s.Path), Clean(s.SHA256))
	}
	writeServer(w, &d.Body)
	for i := range d.Body.Models {
		writeModel(w, &d.Body.Models[i])
	}
	return w.Flush()
}

func writeServer(w io.Writer, b *plan.Body) {
	s := &b.Server
	fmt.Fprintf(w, "\nserver\n  listen %s, admin %s\n", s.Listen, cmp.Or(s.Admin, "off"))
	fmt.Fprintf(w, "  body up to %d bytes\n", s.MaxBodyBytes)
	fmt.Fprintf(w, "  timeouts: request %s, connect %s, header %s, stream idle %s, stale %s\n",
		duration(s.RequestTimeoutMS), duration(s.ConnectTimeoutMS), duration(s.HeaderTimeoutMS), duration(s.StreamIdleTimeoutMS), duration(s.StaleTimeoutMS))
	fmt.Fprintf(w, "  drain: delay %s, timeout %s\n", duration(s.DrainDelayMS), duration(s.DrainTimeoutMS))
	fmt.Fprintf(w, "  log %s as %s, decisions %s\n", s.Log.Level, s.Log.Format, exposed(s.ExposeDecision))
	writeState(w, &b.State)
}

func exposed(yes bool) string {
	if yes {
		return "exposed to clients"
	}
	return "not exposed to clients"
}

// duration writes milliseconds in the largest unit that holds them exactly.
func duration(ms int64) string {
	switch {
	case ms != 0 && ms%3_600_000 == 0:
		return fmt.Sprintf("%dh", ms/3_600_000)
	case ms != 0 && ms%60_000 == 0:
		return fmt.Sprintf("%dm", ms/60_000)
	case ms%1000 == 0:
		return fmt.Sprintf("%ds", ms/1000)
	}
	return fmt.Sprintf("%dms", ms)
}

func writeModel(w io.Writer, m *plan.Model) {
	fmt.Fprintf(w, "\nmodel %s\n", m.ID)
	writeSettings(w, m)
	fmt.Fprintf(w, "  breaker opens after %d failures for %s\n", m.Breaker.Threshold, duration(m.Breaker.CoolDownMS))
	fmt.Fprintf(w, "  engines\n")
	for _, e := range m.Engines() {
		fmt.Fprintf(w, "    %s %s %s", e.ID, e.Role, e.URL)
		if e.BootstrapPort != nil {
			fmt.Fprintf(w, " bootstrap port %d", *e.BootstrapPort)
		}
		if len(e.Labels) > 0 {
			fmt.Fprintf(w, " labels %s", labels(e.Labels))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  buckets in try order\n")
	for i := range m.Buckets {
		writeBucket(w, &m.Buckets[i])
	}
	writeLengths(w, m)
	writeRequires(w, m)
}

func writeBucket(w io.Writer, b *plan.Bucket) {
	fmt.Fprintf(w, "    %s: input %s", b.ID, lengths(optional(b.Min, 0), optional(b.Max, math.MaxInt64)))
	if b.MaxContextTokens != nil {
		fmt.Fprintf(w, ", context up to %d", *b.MaxContextTokens)
	}
	fmt.Fprintf(w, ", rank %d%s\n", b.Rank, estimates(b))
	for _, g := range b.Groups.All() {
		fmt.Fprintf(w, "      %s: %s, %s\n", g.Stage, members(g.Group), policy(&g.Group.Policy))
		if t := g.Group.Policy.CacheAware; t != nil {
			writeCacheAware(w, t)
		}
	}
	if b.Groups.PD != nil && len(b.Groups.PD.MatchLabels) > 0 {
		fmt.Fprintf(w, "      pairs have equal labels %s\n", strings.Join(b.Groups.PD.MatchLabels, ", "))
	}
}

// optional reads an optional number.
func optional(n *int64, def int64) int64 {
	if n == nil {
		return def
	}
	return *n
}

// lengths writes an inclusive range of token counts.
func lengths(from, to int64) string {
	switch {
	case to == math.MaxInt64 && from == 0:
		return "of any length"
	case to == math.MaxInt64:
		return fmt.Sprintf("from %d", from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

func members(g *plan.Group) string {
	text := "all engines"
	if g.WorkerIDs != nil {
		text = "no engine"
		if len(*g.WorkerIDs) > 0 {
			text = "engines " + strings.Join(*g.WorkerIDs, " ")
		}
	}
	if len(g.Labels) > 0 {
		text += " with labels " + labels(g.Labels)
	}
	return text
}

func labels(m map[string]string) string {
	words := make([]string, 0, len(m))
	for name, value := range m {
		words = append(words, name+"="+value)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func policy(p *plan.Policy) string {
	text := string(p.Type)
	if p.PowerOfTwo != nil {
		text += fmt.Sprintf(" of %d", p.PowerOfTwo.Choices)
	}
	if f := p.Fallback(); f != nil {
		text += " or " + string(f.Type)
		if f.PowerOfTwo != nil {
			text += fmt.Sprintf(" of %d", f.PowerOfTwo.Choices)
		}
	}
	for _, l := range limits(&p.Admission) {
		text += ", " + l
	}
	return text
}

// limits writes the limits that are set.
func limits(a *plan.Admission) []string {
	var out []string
	add := func(name string, n *int64) {
		if n != nil {
			out = append(out, name+" "+strconv.FormatInt(*n, 10))
		}
	}
	add("max_running_requests", a.MaxRunningRequests)
	add("max_waiting_requests", a.MaxWaitingRequests)
	add("max_kv_tokens", a.MaxKVTokens)
	add("max_pending_prefill_tokens", a.MaxPendingPrefillTokens)
	add("max_inflight_requests", a.MaxInflightRequests)
	return out
}

// shownCandidates bounds how many buckets a line of writeLengths names.
const shownCandidates = 8

func writeLengths(w io.Writer, m *plan.Model) {
	fmt.Fprintf(w, "  candidates by input length\n")
	for i := range m.Breakpoints {
		to := int64(math.MaxInt64)
		if i+1 < len(m.Breakpoints) {
			to = m.Breakpoints[i+1].From - 1
		}
		var names []string
		count := 0
		for _, run := range m.Breakpoints[i].Runs {
			count += run[1] - run[0] + 1
			for b := run[0]; b <= run[1] && len(names) < shownCandidates; b++ {
				names = append(names, m.Buckets[b].ID)
			}
		}
		text := strings.Join(names, ", ")
		if count == 0 {
			text = "none"
		}
		if more := count - len(names); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(w, "    %s: %s\n", lengths(m.Breakpoints[i].From, to), text)
	}
}

func writeRequires(w io.Writer, m *plan.Model) {
	fmt.Fprintf(w, "  requires\n")
	none := true
	need := func(what string, reasons []string) {
		if len(reasons) == 0 {
			return
		}
		none = false
		fmt.Fprintf(w, "    %s, because of %s", what, reasons[0])
		if more := len(reasons) - 1; more > 0 {
			fmt.Fprintf(w, " and %d more", more)
		}
		fmt.Fprintln(w)
	}
	need("tokens", m.Requires.Tokens)
	need("length estimates", m.Requires.LengthEstimate)
	need("load reports", m.Requires.LoadReports)
	need("dispatch timestamps", m.Requires.DispatchTimestamps)
	need("a prefix source", m.Requires.PrefixSource)
	need("session keys", m.Requires.SessionHeader)
	need("routing keys", m.Requires.RoutingKeyHeader)
	if none {
		fmt.Fprintf(w, "    nothing\n")
	}
}

// Value is one value of a plan's body and where it comes from.
type Value struct {
	// Pointer is below body.
	Pointer string          `json:"pointer"`
	Value   json.RawMessage `json:"value"`
	// Origin is "file:line", "default" or "derived".
	Origin string `json:"origin"`
}

// Values lists every value of a plan's body in its order. Lists of engines, label
// names and runs count as one.
func Values(d *plan.Document) ([]Value, error) {
	body, err := json.Marshal(&d.Body)
	if err != nil {
		return nil, fmt.Errorf("encode plan body: %w", err)
	}
	v := valueLister{dec: json.NewDecoder(bytes.NewReader(body)), places: d.Provenance.Places()}
	v.dec.UseNumber()
	if err := v.list(""); err != nil {
		return nil, fmt.Errorf("list values: %w", err)
	}
	return v.out, nil
}

// valueLister turns the tokens of a body into values.
type valueLister struct {
	dec    *json.Decoder
	places map[string]plan.Place
	out    []Value
}

// list reads one value and adds what it holds.
func (v *valueLister) list(pointer string) error {
	if strings.HasSuffix(pointer, "/worker_ids") || strings.HasSuffix(pointer, "/match_labels") || strings.HasSuffix(pointer, "/runs") {
		var raw json.RawMessage
		if err := v.dec.Decode(&raw); err != nil {
			return err
		}
		v.add(pointer, raw)
		return nil
	}
	token, err := v.dec.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		raw, err := json.Marshal(token)
		v.add(pointer, raw)
		return err
	}
	for i := 0; v.dec.More(); i++ {
		step := strconv.Itoa(i)
		if open == '{' {
			key, err := v.dec.Token()
			if err != nil {
				return err
			}
			step = strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(key))
		}
		if err := v.list(pointer + "/" + step); err != nil {
			return err
		}
	}
	_, err = v.dec.Token()
	return err
}

func (v *valueLister) add(pointer string, raw json.RawMessage) {
	v.out = append(v.out, Value{pointer, raw, v.origin(pointer)})
}

// origin looks a value up, then the values that hold it: the labels of an engine
// have one place together.
func (v *valueLister) origin(pointer string) string {
	// What cache_aware and session_aware fall back to is part of what they are.
	if strings.Contains(pointer, "/breakpoints/") || strings.Contains(pointer, "/requires/") ||
		strings.HasSuffix(pointer, "_aware/fallback/type") {
		return "derived"
	}
	for at := pointer; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		if p, ok := v.places[at]; ok {
			return fmt.Sprintf("%s:%d", p.File, p.Line)
		}
	}
	return "default"
}

// WriteValues writes values as lines of pointer, value and origin.
func WriteValues(out io.Writer, values []Value) error {
	w := bufio.NewWriter(out)
	for _, v := range values {
		fmt.Fprintf(w, "%s = %s  # %s\n", Clean(v.Pointer), Clean(string(v.Value)), Clean(v.Origin))
	}
	return w.Flush()
}
