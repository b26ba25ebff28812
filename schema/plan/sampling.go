package plan

import (
	"errors"
	"fmt"
	"math"
)

// samplingDomain is what engines accept for a parameter.
type samplingDomain struct {
	low, high float64
	// open excludes low itself.
	open bool
	// whole admits whole numbers only, and minusOne -1 besides, which is no end
	// of a band.
	whole, minusOne bool
}

func domainOf(name string) (d samplingDomain, ok bool) {
	switch name {
	case "temperature":
		return samplingDomain{low: 0, high: 2}, true
	case "top_p":
		return samplingDomain{low: 0, high: 1, open: true}, true
	case "top_k":
		return samplingDomain{low: 1, high: MaxCount, whole: true, minusOne: true}, true
	case "min_p":
		return samplingDomain{low: 0, high: 1}, true
	case "repetition_penalty":
		return samplingDomain{low: 0, high: 2, open: true}, true
	case "frequency_penalty", "presence_penalty":
		return samplingDomain{low: -2, high: 2}, true
	case "n":
		return samplingDomain{low: 1, high: 128, whole: true}, true
	}
	return samplingDomain{}, false
}

// String is the domain in words.
func (d samplingDomain) String() string {
	s := fmt.Sprintf("from %v to %v", d.low, d.high)
	switch {
	case d.open:
		s = fmt.Sprintf("above %v, up to %v", d.low, d.high)
	case d.high == MaxCount:
		s = fmt.Sprintf("from %v", d.low)
	}
	if d.whole {
		s = "a whole number " + s
	}
	if d.minusOne {
		s += ", or -1"
	}
	return s
}

func (d samplingDomain) holds(x float64, band bool) bool {
	if d.minusOne && !band && x == -1 {
		return true
	}
	return x >= d.low && x <= d.high && !(d.open && x == d.low) && !(d.whole && x != math.Trunc(x))
}

// Check reports, in one clause, what is wrong with a parameter of a model that
// treats conflicts so.
func (p *SamplingParam) Check(c Conflict) error {
	d, ok := domainOf(p.Name)
	if !ok {
		return fmt.Errorf("unknown sampling parameter %q", p.Name)
	}
	band := p.Value == nil
	switch {
	case band && (p.Min == nil || p.Max == nil), !band && (p.Min != nil || p.Max != nil):
		return errors.New("a parameter has a value, or min and max")
	case band && c == ConflictAllow:
		return errors.New("a band only checks, so it has no meaning where conflicts are allowed")
	}
	for _, x := range [...]*float64{p.Value, p.Min, p.Max} {
		if x != nil && !d.holds(*x, band) {
			d.minusOne = d.minusOne && !band
			return fmt.Errorf("%v is outside what engines accept, %s", *x, d)
		}
	}
	if band && *p.Min > *p.Max {
		return fmt.Errorf("min %v is above max %v", *p.Min, *p.Max)
	}
	return nil
}
