package flags

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// Sampling returns the parameters of --override-sampling-params in their order,
// without those that have a mistake.
func (l *Line) Sampling() []plan.SamplingParam {
	v := l.Value("override-sampling-params")
	if v == nil {
		return nil
	}
	params, _ := readSampling(v.Text, l.conflictMode())
	return params
}

func (l *Line) conflictMode() plan.Conflict {
	if l.Text("sampling-param-conflict", "reject") == "allow" {
		return plan.ConflictAllow
	}
	return plan.ConflictReject
}

// samplingRules are R60 to R70.
func (l *Line) samplingRules() {
	v := l.Value("override-sampling-params")
	if v == nil {
		return
	}
	g := l.Get("override-sampling-params")
	_, problems := readSampling(v.Text, l.conflictMode())
	for _, p := range problems {
		g.add(diag.LegacyValue, l.Args[v.At].Pos, "--override-sampling-params: "+p, `write an object like {"temperature":0.7,"top_p":{"min":0.1,"max":0.9}}`)
	}
}

// readSampling reads the object and says everything that is wrong with it.
func readSampling(text string, mode plan.Conflict) (params []plan.SamplingParam, problems []string) {
	fields, err := readObject([]byte(text))
	if err != nil {
		return nil, []string{err.Error()}
	}
	if len(fields) == 0 {
		return nil, []string{"the object is empty"}
	}
	seen := make(map[string]bool)
	for _, f := range fields {
		if seen[f.name] {
			problems = append(problems, fmt.Sprintf("%q is given twice", f.name))
			continue
		}
		seen[f.name] = true
		p, err := readParam(f)
		if err == nil {
			err = p.Check(mode)
		}
		if err == nil {
			err = largeParam(&p)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%q: %v", f.name, err))
			continue
		}
		params = append(params, p)
	}
	return params, problems
}

// largeParam refuses numbers that not every JSON reader can hold.
func largeParam(p *plan.SamplingParam) error {
	for _, x := range [...]*float64{p.Value, p.Min, p.Max} {
		if x != nil && math.Abs(*x) > plan.MaxCount {
			return fmt.Errorf("%v is too large", *x)
		}
	}
	return nil
}

// member is one field of an object as it stands, repeated ones included.
type member struct {
	name  string
	value json.RawMessage
}

// readObject splits an object into its fields.
func readObject(data []byte) (out []member, err error) {
	bad := errors.New("it is not a JSON object")
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, bad
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, bad
		}
		m := member{name: fmt.Sprint(name)}
		if err := d.Decode(&m.value); err != nil {
			return nil, bad
		}
		out = append(out, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, bad
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	return out, nil
}

// readParam reads a number or a band.
func readParam(f member) (p plan.SamplingParam, err error) {
	p.Name = f.name
	if x, ok := readNumber(f.value); ok {
		p.Value = &x
		return p, nil
	}
	bounds, err := readObject(f.value)
	if err != nil {
		return p, errors.New("the value is neither a number nor an object with min and max")
	}
	for _, b := range bounds {
		x, ok := readNumber(b.value)
		at := map[string]**float64{"min": &p.Min, "max": &p.Max}[b.name]
		switch {
		case at == nil:
			return p, fmt.Errorf("a band has min and max, and not %q", b.name)
		case *at != nil:
			return p, fmt.Errorf("%s is given twice", b.name)
		case !ok:
			return p, fmt.Errorf("%s is not a number", b.name)
		}
		*at = &x
	}
	if p.Min == nil || p.Max == nil {
		return p, errors.New("a band has min and max")
	}
	return p, nil
}

func readNumber(data []byte) (float64, bool) {
	if len(data) == 0 || slices.Contains([]byte(`{["tfn`), data[0]) {
		return 0, false
	}
	var x float64
	err := json.Unmarshal(data, &x)
	return x, err == nil
}
