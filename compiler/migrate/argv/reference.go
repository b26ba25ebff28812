package argv

import "strings"

// known is the environment of a container while its references are resolved.
type known struct {
	// values are what the input gives, and hidden the names of variables whose
	// values come from elsewhere or may be secrets.
	values map[string]*word
	hidden map[string]bool
}

// references substitutes $(NAME) as Kubernetes does: $$ stands for a dollar, a
// name without a value stays as it is written, and everything else means
// nothing.
func (r *reader) references(w *word, env known) *word {
	t := w.text()
	if !strings.Contains(t.value, "$") {
		return w
	}
	out := &word{at: w.at, open: w.open, some: w.some, notes: w.notes}
	start := 0
	for i := 0; i+1 < len(t.value); i++ {
		if t.value[i] != '$' {
			continue
		}
		switch t.value[i+1] {
		case '$':
			out.addText(t, start, i+1)
			start, i = i+2, i+1
		case '(':
			end := strings.IndexByte(t.value[i:], ')')
			if end < 0 {
				continue
			}
			name := t.value[i+2 : i+end]
			if !r.grow(env.values[name]) {
				return out
			}
			out.addText(t, start, i)
			start = i
			if v := env.values[name]; v != nil {
				out.addText(v.text(), 0, len(v.buf))
				out.inherit(v)
				start = i + end + 1
			} else if assignment.MatchString(name + "=") {
				out.leaveOpen(name)
			}
			i += end
		}
	}
	out.addText(t, start, len(t.value))
	return out
}

// What a word and its spans weigh besides its bytes.
const (
	wordWeight = 64
	spanWeight = 16
)

// grow counts a word that is substituted, and reports whether what the input
// grows to is still within the bounds.
func (r *reader) grow(v *word) bool {
	if v != nil {
		r.grown += wordWeight + len(v.buf) + spanWeight*len(v.spans)
	}
	return r.grown <= maxGrowth
}
