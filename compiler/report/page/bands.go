package page

import (
	"math"
	"math/bits"
	"unicode/utf8"

	"shunt/schema/plan"
)

// The measures of a drawing, in its own units.
const (
	drawingWidth = 1000
	labelWidth   = 250
	// bareWidth is what is left of the axis without labels.
	bareWidth = 16
	// squeezed is the width from zero to the first power of two.
	squeezed   = 34
	axisHeight = 24
	tallRow    = 38
	// labelledRows is how many rows still have a label.
	labelledRows = 40
	// thinTotal is the height that more rows share.
	thinTotal = 1500
)

// bands is the drawing of the lengths that the buckets of a model take.
type bands struct {
	// Title says what is drawn, Heading is above it if there are several.
	Title, Heading string

	Width  int
	Height int
	// Left and Right are the ends of the axis, First the place of its first
	// power of two; left of it is everything down to zero.
	Left, Right, First int
	// Low and High are the powers of two at First and Right.
	Low, High int64
	// Factor is that between two ticks.
	Factor     int64
	Top        int
	Ticks      []tick
	Rows       []band
	Gaps       []gap
	Labelled   bool
	Open       bool
	HasGap     bool
	HasContext bool
	HasPD      bool
	HasPlain   bool
	// Breaks and Moves say which marks there are.
	Breaks, Moves bool
	// Marks are inputs whose requests go elsewhere.
	Marks []gap
}

// Rest is the height below the axis.
func (d *bands) Rest() int { return d.Height - d.Top }

// tick is a line of the axis.
type tick struct {
	X    int
	Text string
}

// gap is a range of inputs that no bucket takes, or one that is marked.
type gap struct {
	X, Width int
	Text     string
	Class    string
}

// band is one bucket: the inputs that it takes, and the room that the answer has
// behind them.
type band struct {
	Anchor string
	// Label and Sub are for the row, Text tells all of it.
	Label, Sub, Text string
	Y, H             int
	LabelY, SubY     int
	X, Width         int
	RoomX, RoomWidth int
	// Open says that the inputs have no end, RoomOpen that the room has none.
	Open, RoomOpen bool
	PD             bool
	Changed        bool
}

// Half is half the height, for the tip of an arrow.
func (b band) Half() float64 { return float64(b.H) / 2 }

// scale is the axis of a drawing: zero, then powers of two at equal distances.
type scale struct {
	low, high int // exponents
	left      float64
	first     float64
	right     float64
}

// newScale fits the bounds of all buckets, those of both plans in a comparison.
func newScale(models ...*plan.Model) scale {
	low, high := int64(math.MaxInt64), int64(0)
	left := float64(labelWidth)
	for _, m := range models {
		if len(m.Buckets) > labelledRows {
			left = bareWidth
		}
		for i := range m.Buckets {
			b := &m.Buckets[i]
			for _, n := range []*int64{b.Min, b.Max, b.MaxContextTokens} {
				if n != nil && *n > 0 {
					low, high = min(low, *n), max(high, *n)
				}
			}
		}
	}
	if high == 0 {
		low, high = 1<<10, 1<<17
	}
	s := scale{low: max(bits.Len64(uint64(low))-3, 0), left: left, first: left + squeezed, right: drawingWidth - 14}
	// One power more than is needed leaves room for what has no end.
	s.high = max(bits.Len64(uint64(high)), s.low+2)
	return s
}

// x is where a length stands.
func (s scale) x(n int64) int {
	if n <= 0 {
		return int(s.left)
	}
	power := math.Log2(float64(n))
	if power < float64(s.low) {
		// Below the first power the axis is squeezed.
		return int(s.left + (s.first-s.left)*float64(n)/math.Exp2(float64(s.low)))
	}
	x := s.first + (power-float64(s.low))/float64(s.high-s.low)*(s.right-s.first)
	return int(math.Round(min(x, s.right)))
}

// step is how many powers of two lie between two ticks.
func (s scale) step() int { return 1 + (s.high-s.low)/12 }

func (s scale) ticks() []tick {
	out := []tick{{int(s.left), "0"}}
	for p := s.low; p <= s.high; p += s.step() {
		if p < 62 {
			out = append(out, tick{s.x(1 << p), brief(1 << p)})
		}
	}
	return out
}

// newBands draws a model. Anchors start with the prefix, and those rows are
// marked whose bucket changed.
func newBands(m *plan.Model, s scale, title, prefix string, changed map[string]bool) *bands {
	d := &bands{
		Title: title, Width: drawingWidth, Left: int(s.left), Right: int(s.right), First: int(s.first),
		Low: 1 << s.low, High: 1 << min(s.high, 62), Top: axisHeight, Ticks: s.ticks(), Labelled: s.left == labelWidth, Factor: 1 << s.step(),
	}
	row := tallRow
	if !d.Labelled {
		row = max(thinTotal/len(m.Buckets), 3)
	}
	for i := range m.Buckets {
		b := newBand(&m.Buckets[i], s)
		if prefix != "" {
			b.Anchor = prefix + itoa(i)
		}
		b.Changed = changed[m.Buckets[i].ID]
		b.Y, b.H = axisHeight+i*row+row/5, max(row-2*(row/5), 2)
		b.LabelY, b.SubY = axisHeight+i*row+17, axisHeight+i*row+31
		d.HasPD, d.HasPlain = d.HasPD || b.PD, d.HasPlain || !b.PD
		d.Open = d.Open || b.Open || b.RoomOpen
		d.HasContext = d.HasContext || b.RoomWidth > 0
		d.Rows = append(d.Rows, b)
	}
	d.Height = axisHeight + len(m.Buckets)*row + 6
	for i := range m.Breakpoints {
		if len(m.Breakpoints[i].Runs) > 0 {
			continue
		}
		from, to := m.Breakpoints[i].From, endOf(m, i)
		x := s.x(from)
		end := int(s.right)
		if to != nil {
			end = s.x(*to + 1)
		}
		d.Gaps = append(d.Gaps, gap{X: x, Width: max(end-x, 2), Text: "no bucket takes an input of " + span(from, to)})
	}
	d.HasGap = len(d.Gaps) > 0
	return d
}

// newBand measures one bucket. A bucket takes no input above its context
// capacity, whatever its maximum says.
func newBand(b *plan.Bucket, s scale) band {
	from, to, room := least(b.Min), most(b.Max), most(b.MaxContextTokens)
	to = min(to, room)
	out := band{
		Label: shortened(b.ID, 30), Text: shortened(b.ID, 80) + ": input " + span(from, optional(to)), PD: b.Groups.PD != nil,
		Open: to == math.MaxInt64,
	}
	out.Sub = briefLengths(from, to, room)
	out.X = s.x(from)
	end := int(s.right)
	if !out.Open {
		end = s.x(to + 1)
	}
	out.Width = max(end-out.X, 2)
	out.RoomX, out.RoomOpen = end, room == math.MaxInt64 && !out.Open
	roomEnd := int(s.right)
	if !out.RoomOpen && !out.Open {
		roomEnd = s.x(room)
	}
	out.RoomWidth = max(roomEnd-out.RoomX, 0)
	if room == math.MaxInt64 {
		out.Text += ", any context"
	} else {
		out.Text += ", context up to " + grouped(room)
	}
	return out
}

// briefLengths says what a bucket takes in the words of the axis.
func briefLengths(from, to, room int64) string {
	if room == math.MaxInt64 {
		return briefSpan(from, to)
	}
	return briefSpan(from, to) + " in, " + brief(room) + " context"
}

// briefSpan is span in the words of the axis.
func briefSpan(from, to int64) string {
	switch {
	case to == math.MaxInt64 && from == 0:
		return "any length"
	case to == math.MaxInt64:
		return "from " + brief(from)
	case from == 0:
		return "to " + brief(to)
	}
	return brief(from) + " to " + brief(to)
}

func optional(n int64) *int64 {
	if n == math.MaxInt64 {
		return nil
	}
	return &n
}

// endOf is the last input of a breakpoint, nil when there is none.
func endOf(m *plan.Model, i int) *int64 {
	if i+1 == len(m.Breakpoints) {
		return nil
	}
	to := m.Breakpoints[i+1].From - 1
	return &to
}

// shortened cuts a name that is too long for its place.
func shortened(name string, most int) string {
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	return string([]rune(name)[:most-1]) + "…"
}
