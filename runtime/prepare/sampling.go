package prepare

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Param is a sampling parameter that a model can set or bound.
type Param uint8

// samplingCount is the number of parameters.
const samplingCount = 8

// paramNames are the members of a body, in the order in which values are added.
var paramNames = [samplingCount]string{
	"temperature", "top_p", "top_k", "min_p", "repetition_penalty",
	"frequency_penalty", "presence_penalty", "n",
}

// ParamOf is the inverse of String.
func ParamOf(name string) (Param, bool) {
	for i, n := range paramNames {
		if n == name {
			return Param(i), true
		}
	}
	return 0, false
}

func (p Param) String() string { return paramNames[p] }

// Rule is what a model wants of one parameter: the Value, which is added where a
// request has none, or with Band a value from Min to Max, which only checks.
type Rule struct {
	Param    Param
	Band     bool
	Value    float64
	Min, Max float64
}

// Sampling is what a model allows requests to choose.
type Sampling struct {
	// Allow lets a request's own values pass; otherwise one that differs from a
	// rule is a violation.
	Allow bool
	// Rules stand in the order of Param, at most one for each.
	Rules []Rule
}

// Violation is a value that a rule does not accept. Its text is for clients.
type Violation struct {
	Rule Rule
	got  string
}

func (v *Violation) Error() string {
	const longest = 64
	got := v.got
	if len(got) > longest {
		got = strings.ToValidUTF8(got[:longest], "") + "..."
	}
	if v.Rule.Band {
		return fmt.Sprintf("sampling parameter %s must be from %s to %s, got %s",
			v.Rule.Param, number(v.Rule.Min), number(v.Rule.Max), got)
	}
	return fmt.Sprintf("sampling parameter %s must be %s, got %s", v.Rule.Param, number(v.Rule.Value), got)
}

// Sample applies a model's rules to a parsed request: exact values are added
// where the request has none, and what the rules do not accept is returned, in
// the order of the rules.
func (r *Request) Sample(s *Sampling) []*Violation {
	var out []*Violation
	r.defaults = r.defaults[:0]
	for _, rule := range s.Rules {
		at := r.sampling[rule.Param]
		if at == (span{}) {
			r.add(rule)
			continue
		}
		if raw := r.body[at.from:at.to]; !s.Allow && !rule.accepts(raw) {
			out = append(out, &Violation{Rule: rule, got: string(raw)})
		}
	}
	return out
}

// add queues an exact value. More than one completion keeps the router from
// naming the request, whoever asked for them.
func (r *Request) add(rule Rule) {
	if rule.Band {
		return
	}
	r.defaults = append(append(append(r.defaults, ',', '"'), rule.Param.String()...), '"', ':')
	r.defaults = strconv.AppendFloat(r.defaults, rule.Value, 'f', -1, 64)
	if temperature+member(rule.Param) == completions && rule.Value > 1 {
		r.Several = true
	}
}

func (u Rule) accepts(raw jsontext.Value) bool {
	x, ok := coerce(raw)
	if u.Band {
		return ok && x >= u.Min && x <= u.Max
	}
	return ok && x == u.Value
}

// longestNumber bounds a number in a string.
const longestNumber = 64

// coerce reads a value as engines do: a number, a boolean as 0 or 1, or a number
// in a string, with space around it and single underscores between digits.
func coerce(raw jsontext.Value) (float64, bool) {
	switch raw.Kind() {
	case 't':
		return 1, true
	case 'f':
		return 0, true
	case '0':
		return finite(string(raw))
	case '"':
		s, err := jsontext.AppendUnquote(nil, []byte(raw))
		if err != nil || len(s) > longestNumber {
			return 0, false
		}
		return finite(plainNumber(strings.TrimSpace(string(s))))
	}
	return 0, false
}

// plainNumber takes out single underscores between digits. What is no number
// then, or has a form that only Go reads, becomes empty.
func plainNumber(s string) string {
	var b strings.Builder
	digit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_' && digit(i-1) && digit(i+1):
		case digit(i), strings.IndexByte("+-.eE", c) >= 0:
			b.WriteByte(c)
		default:
			return ""
		}
	}
	return b.String()
}

func finite(s string) (float64, bool) {
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsInf(x, 0)
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
