package bpe

import "strings"

// matcher finds added tokens in text: the leftmost, and of those that start there
// the longest. It is a trie, so one position costs at most the length of the
// longest token.
type matcher struct {
	states []state
	// only is the byte that all tokens start with, if there is just one.
	only   byte
	single bool
}

// state is a place in the trie. Its edges are sorted by byte; id is the token that ends
// here, or none.
type state struct {
	labels []byte
	next   []int32
	id     uint32
	ends   bool
}

func newMatcher() *matcher { return &matcher{states: make([]state, 1)} }

func (m *matcher) empty() bool { return len(m.states) == 1 }

// add enters a token, which is not empty.
func (m *matcher) add(content string, id uint32) {
	at := int32(0)
	for i := range len(content) {
		n := &m.states[at]
		k := indexByte(n.labels, content[i])
		if k < 0 {
			n.labels = append(n.labels, content[i])
			n.next = append(n.next, int32(len(m.states)))
			at = int32(len(m.states))
			m.states = append(m.states, state{})
			continue
		}
		at = n.next[k]
	}
	m.states[at].id, m.states[at].ends = id, true
	root := &m.states[0]
	m.single = len(root.labels) == 1
	m.only = root.labels[0]
}

// find returns the place of the first token in text at or after from.
func (m *matcher) find(text string, from int) (start, end int, id uint32, ok bool) {
	for i := from; i < len(text); i++ {
		if m.single {
			k := strings.IndexByte(text[i:], m.only)
			if k < 0 {
				return 0, 0, 0, false
			}
			i += k
		}
		if end, id = m.longest(text, i); end > i {
			return i, end, id, true
		}
	}
	return 0, 0, 0, false
}

// longest returns the end of the longest token that starts at i, or i.
func (m *matcher) longest(text string, i int) (end int, id uint32) {
	end = i
	at := int32(0)
	for j := i; j < len(text); j++ {
		n := &m.states[at]
		k := indexByte(n.labels, text[j])
		if k < 0 {
			break
		}
		at = n.next[k]
		if m.states[at].ends {
			end, id = j+1, m.states[at].id
		}
	}
	return end, id
}

// indexByte looks for an edge; most states have one.
func indexByte(labels []byte, c byte) int {
	for k, l := range labels {
		if l == c {
			return k
		}
	}
	return -1
}
