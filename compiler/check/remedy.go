package check

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// meant returns the field that a wrong name stands for and a hint that says so.
// The name is empty where no field is near enough.
func (o *object) meant(wrong string) (name, hint string) {
	names := make([]string, len(o.fields))
	for i := range o.fields {
		names[i] = o.fields[i].name
	}
	word := wrong[:len(wrong)-len(strings.TrimLeft(wrong, "abcdefghijklmnopqrstuvwxyz_"))]
	if word != wrong && o.find(word) != nil && strings.ContainsRune(": {[\"", rune(wrong[len(word)])) {
		// YAML takes a colon without a space for a part of the name.
		return word, fmt.Sprintf("write %s with a colon and a space behind it", word)
	}
	near := otherName(wrong)
	if o.find(near) == nil {
		near = completed(wrong, names)
	}
	if near == "" {
		near = nearest(wrong, names)
	}
	if near == "" {
		return "", "known fields: " + strings.Join(names[:o.common], ", ")
	}
	return near, didYouMean(near)
}

// otherName is what other tools call a field.
func otherName(wrong string) string {
	switch wrong {
	case "name":
		return "id"
	case "address", "host", "base_url":
		return "url"
	}
	return ""
}

// completed returns the one known word that begins with the words of a name.
func completed(wrong string, known []string) string {
	begins := func(k string) bool { return strings.HasPrefix(k, wrong+"_") }
	i := slices.IndexFunc(known, begins)
	if i < 0 || len(wrong) < 4 || slices.ContainsFunc(known[i+1:], begins) {
		return ""
	}
	return known[i]
}

// definition is the name of the definition of a place, such as #Duration.
func (p *place) definition() string {
	_, path := p.schema.ReferencePath()
	return path.String()
}

// respelled returns a hint for a text that a person reads as a duration or a
// size, and the schema does not.
func (p *place) respelled(text string) string {
	parts := regexp.MustCompile(`^\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([A-Za-z]+)\s*$`).FindStringSubmatch(text)
	if parts == nil {
		return ""
	}
	number, unit := parts[1], strings.ToLower(parts[2])
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return ""
	}
	switch p.definition() {
	case "#Duration":
		ms := int64(math.Round(n * durationUnit(unit)))
		if ms == 0 {
			return ""
		}
		if right := number + unit[:1]; durationUnit(unit) == durationUnit(unit[:1]) && !strings.Contains(number, ".") && unit[:1] != "d" {
			return "write " + right
		}
		return "write " + words(ms)
	case "#Size":
		for _, u := range [...]struct{ short, unit string }{{"b", "B"}, {"k", "KiB"}, {"m", "MiB"}, {"g", "GiB"}} {
			if strings.HasPrefix(unit, u.short) && !strings.Contains(number, ".") {
				return "write " + number + u.unit
			}
		}
	}
	return ""
}

// durationUnit is the milliseconds of a unit as people spell it, 0 for no unit.
func durationUnit(unit string) float64 {
	switch strings.TrimSuffix(unit, "s") {
	case "m":
		if unit == "ms" {
			return 1
		}
		return 60_000
	case "msec", "milli", "millisecond":
		return 1
	case "", "sec", "second":
		return 1000
	case "min", "minute":
		return 60_000
	case "h", "hr", "hour":
		return 3_600_000
	case "d", "day":
		return 86_400_000
	}
	return 0
}

// plainNumber returns a hint for a text that a person reads as a number.
func plainNumber(text string) string {
	if isNumber(text) {
		return "remove the quotes"
	}
	if grouped := regexp.MustCompile(`^[0-9]{1,3}([,_' ][0-9]{3})+$`); grouped.MatchString(text) {
		return "write " + regexp.MustCompile(`[^0-9]`).ReplaceAllString(text, "")
	}
	if parts := regexp.MustCompile(`^([0-9]{1,9})([kK]|[mM])$`).FindStringSubmatch(text); parts != nil {
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return ""
		}
		round, binary := int64(1000), int64(1024)
		if strings.EqualFold(parts[2], "m") {
			round, binary = round*round, binary*binary
		}
		return fmt.Sprintf("write the whole number, %d or %d", n*round, n*binary)
	}
	return ""
}

// asObject returns a hint for a scalar where an object is expected.
func (p *place) asObject(n *source.Node) string {
	o := p.object()
	switch {
	case n.Kind == source.String && slices.Contains(p.variants(), n.Text):
		return fmt.Sprintf("write {type: %s}", n.Text)
	case n.Kind == source.Number && isWhole(n.Text) && o.find("max") != nil:
		return fmt.Sprintf("write {max: %s}", n.Text)
	case n.Kind == source.String:
		name, rest, ok := strings.Cut(n.Text, ":")
		if ok && rest != "" && o.find(name) != nil {
			return fmt.Sprintf("write %s: %s, with a space behind the colon", name, shorten(rest))
		}
	}
	return ""
}

// empty reports a null where a value is needed, mostly a key whose value is
// missing or stands at a wrong indent.
func (p *place) empty() string {
	switch {
	case !p.needed && p.kind == cue.ListKind:
		return "remove the field, or write a list; [] is an empty one"
	case !p.needed:
		return "remove the field, or write " + p.expected()
	case p.kind == cue.ListKind:
		return "write its elements below it, each indented and behind a dash"
	case p.kind == cue.StructKind:
		return "write its fields below it, indented"
	}
	return "write " + p.expected()
}

// tests is the one finding of a file of tests in the place of a configuration.
func tests(t *source.Tree) diag.List {
	list := t.Node("/tests")
	if list == nil || list.Kind != source.List || t.Node("/models") != nil || t.Node("/server") != nil {
		return nil
	}
	f := diag.New(diag.UnknownField, t.KeyPos("/tests"), "/tests", "this is a file of tests, not a configuration")
	f.Hint = "run it with shunt test, or name the configuration that it tests"
	f.End = t.End(f.Pos)
	return diag.List{f}
}

// compiled is the one finding of a plan in the place of a configuration.
func compiled(t *source.Tree) diag.List {
	format := textOf(t.Node("/format"))
	if !strings.HasPrefix(format, "shunt.plan/") || t.Node("/body") == nil {
		return nil
	}
	f := diag.New(diag.UnknownField, t.KeyPos("/format"), "/format", "this is a compiled plan, not a configuration")
	f.Hint = "check it with shunt verify, or name the configuration that it was compiled from"
	f.End = t.End(f.Pos)
	return diag.List{f}
}
