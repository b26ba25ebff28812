package check

import (
	"fmt"
	"strconv"
	"strings"

	"shunt/compiler/diag"
)

// nearest returns the known word that is most like a wrong one, and nothing
// when none is near enough to be meant.
func nearest(wrong string, known []string) string { return diag.Nearest(wrong, known) }

func didYouMean(word string) string { return fmt.Sprintf("did you mean %q?", word) }

// describe returns the first sentence of what the schema says about a field,
// or what the field takes.
func describe(p *place) string {
	for _, group := range p.schema.Doc() {
		text := strings.Join(strings.Fields(group.Text()), " ")
		if text == "" {
			continue
		}
		if i := strings.Index(text, ". "); i >= 0 {
			text = text[:i]
		}
		text = strings.TrimSuffix(text, ".")
		return strings.ToLower(text[:1]) + text[1:]
	}
	return p.expected()
}

// nameOf names a value in a message by the end of its path: a field by its
// name, an element by its list and number.
func nameOf(path []string) string {
	if len(path) == 0 {
		return "the configuration"
	}
	last := path[len(path)-1]
	if _, err := strconv.Atoi(last); err != nil || len(path) == 1 {
		return shorten(last)
	}
	return shorten(path[len(path)-2]) + "[" + last + "]"
}

// shorten cuts text of the user that is too long for a message.
func shorten(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && text[cut]&0xc0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
