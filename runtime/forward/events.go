package forward

import "bytes"

// scanner watches a stream of server-sent events for the first real event and
// for error events, whose payload's first key is "error". Chunks may split lines
// anywhere. It looks at the first bytes of each line only, so text inside a
// payload cannot be mistaken, and its cost does not grow with long lines.
type scanner struct {
	// token says that an event other than an error has come.
	token bool
	// failed says that an error event has come.
	failed bool

	at      phase
	used    int // bytes of the current line looked at
	matched int // bytes of errorKey
}

// phase is how far the current line matches `data:` spaces `{` spaces `"error"`.
type phase uint8

const (
	prefix  phase = iota // in eventPrefix, at index scanner.used
	spaces               // before the brace
	inside               // after the brace
	key                  // in errorKey, at index scanner.matched
	decided              // skip to the end of the line
)

const (
	eventPrefix = "data:"
	errorKey    = `"error"`
	// lookAhead bounds the bytes of a line that decide.
	lookAhead = 32
)

// feed takes the next chunk.
func (s *scanner) feed(chunk []byte) {
	for i := 0; i < len(chunk); {
		if s.at == decided {
			end := bytes.IndexByte(chunk[i:], '\n')
			if end < 0 {
				return
			}
			i += end + 1
			s.at, s.used = prefix, 0
			continue
		}
		i += s.look(chunk[i])
	}
}

// look judges one byte and returns 1 if it was taken. A byte that decides the
// line is left for the search for the line's end.
func (s *scanner) look(c byte) int {
	if s.at == prefix {
		if c != eventPrefix[s.used] {
			s.at = decided
			return 0
		}
		if s.used++; s.used == len(eventPrefix) {
			s.at = spaces
		}
		return 1
	}
	s.used++
	switch {
	case s.used > lookAhead:
	case c == ' ' && s.at != key:
		return 1
	case c == '{' && s.at == spaces:
		s.at = inside
		return 1
	case c == errorKey[0] && s.at == inside:
		s.at, s.matched = key, 1
		return 1
	case s.at == key && c == errorKey[s.matched]:
		if s.matched++; s.matched == len(errorKey) {
			s.failed, s.at = true, decided
		}
		return 1
	}
	s.token, s.at = true, decided
	return 0
}
