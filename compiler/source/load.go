package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"shunt/compiler/diag"
)

// syntax is how the text of an input is parsed.
type syntax uint8

const (
	syntaxYAML syntax = iota + 1
	syntaxJSON
	syntaxCUE
	syntaxTOML
)

// syntaxOf returns the syntax that the extension of a name stands for.
func syntaxOf(name string) (syntax, bool) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return syntaxYAML, true
	case ".json":
		return syntaxJSON, true
	case ".cue":
		return syntaxCUE, true
	}
	return 0, false
}

// load reads an input and checks its text. It returns the index of the file.
func (r *reader) load(in Input) (int, syntax, bool) {
	at := diag.Pos{File: in.Name}
	s, ok := syntaxOf(cmp.Or(in.As, in.Name))
	if in.As == ".toml" {
		s, ok = syntaxTOML, true
	}
	if !ok {
		r.unknownType(in, at)
		return 0, 0, false
	}
	if len(r.files) >= math.MaxUint16 {
		r.fail(diag.TooLarge, at, "too many inputs")
		return 0, 0, false
	}
	limit, what := r.options.MaxBytes-r.bytes, "all inputs together"
	if s == syntaxCUE && limit > MaxCUEBytes {
		limit, what = MaxCUEBytes, "a CUE input"
	}
	data, err := readAll(in, limit)
	switch {
	case errors.Is(err, errTooLarge):
		bound := r.options.MaxBytes
		if s == syntaxCUE && what == "a CUE input" {
			bound = MaxCUEBytes
		}
		r.fail(diag.TooLarge, at, fmt.Sprintf("%s may have %d bytes, and this is more", what, bound))
		return 0, 0, false
	case err != nil:
		r.unreadable(at, err)
		return 0, 0, false
	}
	r.bytes += int64(len(data))
	f := newFile(in.Name, data)
	f.dropMark()
	r.files = append(r.files, f)
	if !r.cleanText(f) {
		return 0, 0, false
	}
	return len(r.files) - 1, s, true
}

// unknownType reports a name without a known extension, or that there is no file
// of that name to begin with.
func (r *reader) unknownType(in Input, at diag.Pos) {
	if in.Reader == nil {
		info, err := os.Stat(in.Name)
		if err == nil && info.IsDir() {
			err = errFolder
		}
		if err != nil {
			r.unreadable(at, err)
			return
		}
	}
	message := fmt.Sprintf("the name %q has no extension, which would say the syntax", in.Name)
	if ext := filepath.Ext(in.Name); ext != "" {
		message = fmt.Sprintf("files with the extension %s are no configurations", ext)
	}
	f := r.fail(diag.UnknownFileType, at, message)
	f.Hint = "name the file .yaml, .yml, .json or .cue"
	if in.Reader != nil {
		f.Hint = "give standard input a name with .yaml, .yml, .json or .cue"
	}
}

func (r *reader) unreadable(at diag.Pos, err error) {
	f := r.fail(diag.Unreadable, at, reason(err))
	if errors.Is(err, errFolder) {
		f.Hint = "name the configuration files that are in it"
	}
}

var (
	errTooLarge = errors.New("too large")
	errFolder   = errors.New("it is a directory")
)

// readAll reads at most limit bytes.
func readAll(in Input, limit int64) ([]byte, error) {
	from := in.Reader
	if from == nil {
		f, err := os.Open(in.Name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil {
			return nil, err
		} else if info.IsDir() {
			return nil, errFolder
		}
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errTooLarge
	}
	return data, err
}

// reason words an error of reading a file without the path, which is the
// position.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the file does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "the file may not be read: permission denied"
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return "the file cannot be read: " + err.Error()
}

// dropMark removes a UTF-8 byte order mark, which some editors write. The hash
// is of the file with it, positions are without.
func (f *file) dropMark() {
	rest, ok := bytes.CutPrefix(f.data, []byte("\xef\xbb\xbf"))
	if !ok {
		return
	}
	sum := f.sum
	*f = *newFile(f.name, rest)
	f.sum = sum
}

// cleanText reports the first byte or character of a file that hides its
// meaning from a reader.
func (r *reader) cleanText(f *file) bool {
	if bytes.HasPrefix(f.data, []byte("\xff\xfe")) || bytes.HasPrefix(f.data, []byte("\xfe\xff")) {
		r.fail(diag.BadEncoding, f.pos(0), "the file is UTF-16, not UTF-8")
		return false
	}
	for i := 0; i < len(f.data); {
		c := f.data[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		char, size := utf8.DecodeRune(f.data[i:])
		if message := hides(f.data, i, char, size); message != "" {
			r.fail(diag.BadEncoding, f.pos(i), message)
			return false
		}
		i += size
	}
	return true
}

// hides says what is wrong with the character at offset i, or nothing. Line
// separators besides LF and CRLF are refused because YAML counts them and
// editors do not, directional marks because they show text in another order
// than it has.
func hides(data []byte, i int, char rune, size int) string {
	switch {
	case char == utf8.RuneError && size <= 1:
		return fmt.Sprintf("the byte 0x%02x is not UTF-8", data[i])
	case char == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return ""
	case char == '\r':
		return "a carriage return stands without a line feed"
	case char < ' ' || char >= 0x7f && char < 0xa0 || char == 0x2028 || char == 0x2029 || char == 0xfeff,
		char >= 0x202a && char <= 0x202e || char >= 0x2066 && char <= 0x2069:
		return fmt.Sprintf("the invisible character U+%04X", char)
	}
	return ""
}
