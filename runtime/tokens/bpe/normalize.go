package bpe

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hangul syllables are composed by arithmetic, as Unicode defines them.
const (
	hangulBase = 0xAC00
	hangulEnd  = 0xD7A4
	leadBase   = 0x1100
	leads      = 19
	vowelBase  = 0x1161
	vowels     = 21
	trailBase  = 0x11A7 // one before the first: 0 stands for none
	trails     = 28
	perLead    = vowels * trails
)

// normalizer composes text canonically (NFC), with the data of the version of
// Unicode that the reference library has.
type normalizer struct {
	parts   map[rune][2]rune // the second is 0 where there is only one
	whole   map[[2]rune]rune
	classes map[rune]uint8
}

// newNormalizer unpacks the generated tables.
func newNormalizer() *normalizer {
	n := &normalizer{parts: make(map[rune][2]rune), whole: make(map[[2]rune]rune), classes: make(map[rune]uint8)}
	all := []rune(pairs)
	for i := 0; i < len(all); i += 4 {
		pair := [2]rune{all[i+2], all[i+3]}
		n.parts[all[i+1]] = pair
		if all[i] != 0 {
			n.whole[pair] = all[i+1]
		}
	}
	all = []rune(singles)
	for i := 0; i < len(all); i += 2 {
		n.parts[all[i]] = [2]rune{all[i+1], 0}
	}
	all = []rune(marks)
	for i := 0; i < len(all); i += 2 {
		n.classes[all[i]] = uint8(all[i+1])
	}
	return n
}

// nfc returns the text itself when nothing in it can change. The buffer is working
// memory that is handed back.
func (n *normalizer) nfc(text string, buf []piece) (string, []piece) {
	var b strings.Builder
	done, last := 0, 0 // written up to done; last is where the latest code point starts
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			last = i
			i++
			continue
		}
		c, size := at(text[i:])
		if c&active == 0 {
			last = i
			i += size
			continue
		}
		end := i + size + activeSpan(text[i+size:])
		if b.Len() == 0 {
			b.Grow(len(text))
		}
		b.WriteString(text[done:last])
		buf = n.compose(&b, buf[:0], text[last:end])
		done, last, i = end, end, end
	}
	if done == 0 {
		return text, buf
	}
	b.WriteString(text[done:])
	return b.String(), buf
}

func activeSpan(s string) int { return span(s, active, 0) }

// piece is one code point of a decomposition with its combining class.
type piece struct {
	r     rune
	class uint8
}

// compose writes the canonical composition of a stretch of text that neither
// begins nor ends inside of something composable.
func (n *normalizer) compose(b *strings.Builder, buf []piece, s string) []piece {
	for _, r := range s {
		buf = n.decompose(buf, r)
	}
	for i := 0; i < len(buf); {
		j := i + 1
		if buf[i].class != 0 {
			for j < len(buf) && buf[j].class != 0 {
				j++
			}
			slices.SortStableFunc(buf[i:j], func(x, y piece) int { return cmp.Compare(x.class, y.class) })
		}
		i = j
	}
	for _, p := range n.join(buf) {
		b.WriteRune(p.r)
	}
	return buf
}

// decompose appends the full canonical decomposition of a code point.
func (n *normalizer) decompose(buf []piece, r rune) []piece {
	if r >= hangulBase && r < hangulEnd {
		r -= hangulBase
		buf = append(buf, piece{r: leadBase + r/perLead}, piece{r: vowelBase + r%perLead/trails})
		if t := r % trails; t != 0 {
			buf = append(buf, piece{r: trailBase + t})
		}
		return buf
	}
	p, ok := n.parts[r]
	if !ok {
		return append(buf, piece{r, n.classes[r]})
	}
	buf = n.decompose(buf, p[0])
	if p[1] != 0 {
		buf = n.decompose(buf, p[1])
	}
	return buf
}

// join composes ordered pieces in place: each with the latest starter, unless
// something between them has the same or a higher class.
func (n *normalizer) join(buf []piece) []piece {
	out, starter := 0, -1
	for _, p := range buf {
		if starter >= 0 {
			adjacent := out-1 == starter
			if adjacent || buf[out-1].class < p.class {
				if whole, ok := n.pair(buf[starter].r, p.r); ok {
					buf[starter].r = whole
					continue
				}
			}
		}
		if p.class == 0 {
			starter = out
		}
		buf[out] = p
		out++
	}
	return buf[:out]
}

// pair returns what two code points compose to.
func (n *normalizer) pair(a, b rune) (rune, bool) {
	if l, v := a-leadBase, b-vowelBase; l >= 0 && l < leads && v >= 0 && v < vowels {
		return hangulBase + (l*vowels+v)*trails, true
	}
	if s, t := a-hangulBase, b-trailBase; a >= hangulBase && a < hangulEnd && s%trails == 0 && t > 0 && t < trails {
		return a + t, true
	}
	r, ok := n.whole[[2]rune{a, b}]
	return r, ok
}
