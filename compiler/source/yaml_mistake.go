package source

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// mistake is a place in a text that is no YAML, with what is wrong there.
type mistake struct {
	offset        int
	message, hint string
}

// findMistake looks for what people get wrong in YAML. The parser notices most of
// it lines later or names the line where the surrounding block starts, so this
// goes over the raw text again, once the parser has refused it. It returns nil
// for a text in which it sees nothing wrong, and then the parser has the word.
func findMistake(data []byte) *mistake {
	s := &yamlScan{data: data, word: -1}
	for start := 0; start < len(data) && s.found == nil && !s.lost; {
		end := len(data)
		if i := bytes.IndexByte(data[start:], '\n'); i >= 0 {
			end = start + i
		}
		s.line(start, len(bytes.TrimRight(data[:end], "\r \t")))
		start = end + 1
	}
	if s.found == nil && !s.lost && len(s.flow) > 0 {
		s.unclosed()
	}
	return s.found
}

// level is an open block: the entries of a list or the keys of an object, all of
// which start at one column.
type level struct {
	column int
	list   bool
}

// yamlScan goes over the lines of a text. It knows blocks, flow collections,
// quotes, comments and block scalars, and gives up at anything else.
type yamlScan struct {
	data   []byte
	levels []level
	// flow are the offsets of the open brackets and braces, and column the indent
	// of the line on which the first one stands.
	flow   []int
	column int
	// pending says that the last key or dash has no value yet.
	pending bool
	// text says that the lines deeper than its column belong to a block scalar,
	// plain that they may go on with a plain one.
	text, plain bool
	// quoted is the end of the last quoted text of several lines.
	quoted int
	// word is the offset of a line that is only a word, where a key could be, and
	// wordColumn its column; -1 is none.
	word, wordColumn int
	lost             bool
	found            *mistake
}

func (s *yamlScan) report(offset int, message, hint string) {
	if s.found == nil {
		s.found = &mistake{offset, message, hint}
	}
}

// line looks at one line without its end and trailing space.
func (s *yamlScan) line(start, end int) {
	at := start
	for at < end && s.data[at] == ' ' {
		at++
	}
	column := at - start
	switch {
	case at >= end || start < s.quoted:
		return
	case s.text && column > s.column:
		return
	case s.data[at] == '#':
		return
	case len(s.flow) > 0:
		s.inFlow(at, end, column)
		return
	case s.data[at] == '\t':
		s.report(at, "a tab indents the line", "YAML is indented with spaces; replace the tab")
		return
	}
	s.text = false
	if column == 0 && (bytes.HasPrefix(s.data[at:end], []byte("---")) || s.data[at] == '%' || bytes.HasPrefix(s.data[at:end], []byte("..."))) {
		s.lost = true // several documents have an error of their own
		return
	}
	s.block(at, end, column)
}

// inFlow goes on with a flow collection, unless the line shows that it should
// have been closed.
func (s *yamlScan) inFlow(at, end, column int) {
	// Parsers take flow lines of any indent, so a small one alone proves nothing.
	_, key := s.key(at, end)
	if s.data[at] == '-' && at+1 < end && s.data[at+1] == ' ' || column <= s.column && key {
		s.unclosed()
		return
	}
	s.value(at, end)
}

func (s *yamlScan) unclosed() {
	at := s.flow[len(s.flow)-1]
	s.report(at, fmt.Sprintf("the %q that opens here is not closed", s.data[at]), fmt.Sprintf("add the missing %q", closing(s.data[at])))
}

func closing(open byte) byte {
	if open == '{' {
		return '}'
	}
	return ']'
}

// block looks at a line of block style: dashes, then a key, a value or a word.
func (s *yamlScan) block(at, end, column int) {
	for at < end && s.data[at] == '-' && (at+1 == end || s.data[at+1] == ' ') {
		if !s.enter(at, column, true) {
			return
		}
		s.pending, s.plain, s.word = true, false, -1
		for at++; at < end && s.data[at] == ' '; at++ {
			column++
		}
		column++
	}
	if at >= end || s.data[at] == '#' {
		return
	}
	if s.data[at] == '?' || s.data[at] == '|' || s.data[at] == '>' || s.data[at] == '\t' {
		s.lost = true
		return
	}
	value, ok := s.key(at, end)
	if !ok {
		s.noKey(at, end, column)
		return
	}
	if s.word >= 0 && s.wordColumn <= column {
		s.noColon(s.word)
		return
	}
	if name := s.data[at:value]; name[0] != '"' && name[0] != '\'' && bytes.ContainsAny(name, "{[") {
		// The colon is one inside the value.
		s.noColon(at)
		return
	}
	if !s.enter(at, column, false) {
		return
	}
	s.column, s.word = column, -1
	s.afterKey(value, end)
}

// enter comes to an entry of a list or an object at a column, and reports
// whether one may start there.
func (s *yamlScan) enter(at, column int, list bool) bool {
	deepest := -1
	for n := len(s.levels); n > 0; n-- {
		top := s.levels[n-1]
		// A list may stand at the column of its key, and ends with the next key.
		if top.column < column || top.column == column && (top.list == list || list) {
			break
		}
		deepest = top.column
		s.levels, s.pending, s.plain = s.levels[:n-1], false, false
	}
	n := len(s.levels)
	switch {
	case n > 0 && s.levels[n-1] == level{column, list}:
		return true
	case n > 0 && s.levels[n-1].column == column && !s.pending:
		s.report(at, "a list item stands among the keys of an object", "indent it below the key that it belongs to, or add that key")
		return false
	case deepest >= 0 && n > 0 && !s.pending:
		s.report(at, fmt.Sprintf("the line is indented by %d, which fits no line above it", column),
			fmt.Sprintf("indent it by %d to go on with the lines before it, or by %d", deepest, s.levels[n-1].column))
		return false
	case n > 0 && !s.pending:
		s.report(at, "the line is indented deeper than the lines before it, whose value is complete",
			fmt.Sprintf("indent it by %d", s.levels[n-1].column))
		return false
	}
	s.levels, s.pending, s.plain = append(s.levels, level{column, list}), false, false
	return true
}

// key returns the offset behind the colon of a key at an offset.
func (s *yamlScan) key(at, end int) (int, bool) {
	i := at
	switch c := s.data[at]; c {
	case '{', '[':
		return 0, false
	case '"', '\'':
		if i = s.quoteEnd(at, end); i < 0 {
			return 0, false
		}
	}
	for ; i < end; i++ {
		if s.data[i] == '#' && s.data[i-1] == ' ' {
			break
		}
		if s.data[i] == ':' && (i+1 == end || s.data[i+1] == ' ' || s.data[i+1] == '\t') {
			return i + 1, true
		}
	}
	return 0, false
}

// quoteEnd is the offset behind the quote that closes the one at an offset, and
// -1 when the line has none.
func (s *yamlScan) quoteEnd(at, end int) int {
	q := s.data[at]
	for i := at + 1; i < end; i++ {
		switch {
		case s.data[i] == '\\' && q == '"':
			i++
		case s.data[i] == q && q == '\'' && i+1 < end && s.data[i+1] == q:
			i++
		case s.data[i] == q:
			return i + 1
		}
	}
	return -1
}

// folded reports whether a quoted text goes on over several lines, none of which
// looks like a key. Nobody means one that swallows keys.
func (s *yamlScan) folded(at int) bool {
	end := s.quoteEnd(at, len(s.data))
	return end >= 0 && !keyLine.Match(s.data[at:end])
}

// keyLine is the beginning of a line with a key.
var keyLine = regexp.MustCompile(`\n[ -]*[A-Za-z_]+: `)

// noKey looks at a line that is a value or a word without a colon.
func (s *yamlScan) noKey(at, end, column int) {
	n := len(s.levels)
	switch c := s.data[at]; {
	case c == '{' || c == '[' || c == '"' || c == '\'':
		s.column, s.pending = max(column-1, 0), false
		s.value(at, end)
	case s.pending || n == 0:
		// It is the value, unless a key follows at its column.
		s.word, s.wordColumn, s.pending, s.plain = at, column, false, true
		if n > 0 && column <= s.levels[n-1].column && !s.levels[n-1].list {
			s.noColon(at)
		}
	case s.word >= 0 && column > s.levels[n-1].column, s.plain && column > s.levels[n-1].column:
		// It goes on with the line before.
	default:
		s.noColon(at)
	}
}

// noColon reports a line that should be a key with its value.
func (s *yamlScan) noColon(at int) {
	end := bytes.IndexAny(s.data[at:], " \r\n")
	if end < 0 {
		end = len(s.data) - at
	}
	word := string(s.data[at : at+end])
	name, rest, colon := strings.Cut(word, ":")
	if colon && name != "" && rest != "" && !strings.HasPrefix(rest, "//") {
		s.report(at+len(name), "the colon has no space behind it", fmt.Sprintf("write %s: %s", short(name), short(rest)))
		return
	}
	s.report(at, "the line has no colon, and should be a key with its value", fmt.Sprintf("write %s: and the value", short(strings.TrimSuffix(word, ":"))))
}

// short cuts text of the user for a hint.
func short(text string) string {
	end := min(len(text), 40)
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// afterKey looks at what follows a key on its line.
func (s *yamlScan) afterKey(at, end int) {
	// Anchors and tags come before the value.
	for {
		for at < end && (s.data[at] == ' ' || s.data[at] == '\t') {
			at++
		}
		if at >= end || s.data[at] != '&' && s.data[at] != '!' {
			break
		}
		for at < end && s.data[at] != ' ' {
			at++
		}
	}
	s.pending, s.plain = false, false
	switch {
	case at >= end || s.data[at] == '#':
		s.pending = true
	case s.data[at] == '|' || s.data[at] == '>':
		s.text = true
	default:
		s.value(at, end)
	}
}

// value looks at a value or at a further line of a flow collection.
func (s *yamlScan) value(at, end int) {
	if c := s.data[at]; len(s.flow) == 0 && c != '{' && c != '[' && c != '"' && c != '\'' {
		s.plain = true
		if _, ok := s.key(at, end); ok && c != '*' {
			s.report(at, "the value has a colon and a space inside", "quote the value, or put the second key on a line of its own")
		}
		return
	}
	fresh := true // a quote opens only where a value may start
	for i := at; i < end && s.found == nil; i++ {
		c := s.data[i]
		switch {
		case (c == '"' || c == '\'') && fresh:
			next := s.quoteEnd(i, end)
			if next < 0 && s.folded(i) {
				// The rest of its last line is not looked at.
				s.quoted, s.lost = s.quoteEnd(i, len(s.data)), len(s.flow) > 0
				return
			}
			if next < 0 {
				s.report(i, fmt.Sprintf("the quote %c that opens here is not closed on its line", c), "close the quote")
				return
			}
			i, fresh = next-1, false
		case c == '#' && (i == at || s.data[i-1] == ' '):
			return
		case c == '{' || c == '[':
			s.flow, fresh = append(s.flow, i), true
		case c == '}' || c == ']':
			s.close(i)
			fresh = false
		case c == ',' || c == ':':
			fresh = true
		case c != ' ':
			fresh = false
		}
	}
}

// close comes to a closing bracket or brace.
func (s *yamlScan) close(at int) {
	n := len(s.flow)
	if n == 0 {
		s.report(at, fmt.Sprintf("the %q closes nothing", s.data[at]), "remove it, or add what it closes")
		return
	}
	if closing(s.data[s.flow[n-1]]) != s.data[at] {
		s.unclosed()
		return
	}
	s.flow = s.flow[:n-1]
}
