package prepare

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of a body. Engines stop at a few hundred levels
// with a server error, for which their circuit breaker would pay.
const maxDepth = 128

// bytesPerToken estimates the input length where no tokenizer is configured.
const bytesPerToken = 4

// The errors of a body. Their texts are for clients and name nothing but the
// request itself.
var (
	// ErrBody is a body that is not one strict JSON object, or whose routing
	// members are repeated or of a wrong type.
	ErrBody = errors.New("invalid request: body must be a JSON object")
	// ErrNoModel is a body without a model, or with null for one.
	ErrNoModel = errors.New("missing `model` field")
	// ErrOverflow means that input and requested output exceed every integer.
	ErrOverflow = errors.New("input and output token counts overflow")
)

// Request holds the facts of one body.
type Request struct {
	// Model is the model that the client asks for, never empty.
	Model string
	// Stream says that the client wants server-sent events.
	Stream bool
	// OwnID says that the client named the request on the engine (`rid`), so
	// the router must neither add a name nor abort by it.
	OwnID bool
	// Several says that more than one completion is wanted (`n`), or that
	// their number is unreadable.
	Several bool
	// CacheSalt and LoRA are what keeps the request's cached blocks apart from
	// others with the same tokens; usually both are empty.
	CacheSalt, LoRA string
	// Authorization is the client's header of that name, which engines see. Parse
	// empties it; it is set after that where engines are asked to tokenize.
	Authorization string

	// sampling is where the values of sampling parameters stand, the last copy of
	// each; the zero span is none or null.
	sampling [samplingCount]span
	// defaults are the members that Sample adds, each with a comma before it.
	defaults []byte

	// output is the requested number of output tokens, unless known is false.
	output uint64
	known  bool

	body []byte
	// end is the offset of the closing brace.
	end int
	// members counts the members that stay.
	members int
	cuts    []span
}

// span is a range of bytes to leave out.
type span struct{ from, to int }

// Parse reads the facts of a body into r, replacing what r held. Errors wrap
// ErrBody or ErrNoModel; what the parser said beyond that is for logs only. The
// request keeps the body, which nobody may change afterwards.
func (r *Request) Parse(body []byte) error {
	*r = Request{body: body, cuts: r.cuts[:0], defaults: r.defaults[:0]}
	p := parser{r: r, dec: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))}
	if err := p.object(); err != nil {
		return &bodyError{err}
	}
	if r.Model == "" {
		return ErrNoModel
	}
	return nil
}

// bodyError is ErrBody with the reason for logs.
type bodyError struct{ cause error }

func (e *bodyError) Error() string   { return ErrBody.Error() + ": " + e.cause.Error() }
func (e *bodyError) Unwrap() []error { return []error{ErrBody, e.cause} }

// Size is the length of the body in bytes.
func (r *Request) Size() int { return len(r.body) }

// Lengths returns the input length, at least 1 and estimated from the size of
// the body, and the expected peak, which is input and requested output together
// and 0 when the output is unknown.
func (r *Request) Lengths() (input, peak int64, err error) {
	return r.LengthsOf(int64(len(r.body) / bytesPerToken))
}

// LengthsOf is Lengths where the input length is known.
func (r *Request) LengthsOf(tokens int64) (input, peak int64, err error) {
	input = max(1, tokens)
	if !r.known {
		return input, 0, nil
	}
	if r.output > uint64(math.MaxInt64-input) {
		return 0, 0, ErrOverflow
	}
	return input, input + int64(r.output), nil
}

// The members that the router reads or owns.
type member uint8

const (
	other member = iota
	model
	stream
	maxTokens
	maxCompletionTokens
	rid
	salt
	lora
	temperature // the first of the sampling parameters, in the order of Param
	topP
	topK
	minP
	repetitionPenalty
	frequencyPenalty
	presencePenalty
	completions
	owned // written by the router alone: a client's copy never reaches an engine
)

func memberOf(name []byte) member {
	switch string(name) {
	case "model":
		return model
	case "stream":
		return stream
	case "max_tokens":
		return maxTokens
	case "max_completion_tokens":
		return maxCompletionTokens
	case "rid":
		return rid
	case "cache_salt":
		return salt
	case "lora_path":
		return lora
	case "bootstrap_host", "bootstrap_port", "bootstrap_room", "bootstrap_pair_key",
		"routed_dp_rank", "data_parallel_rank", "disagg_prefill_dp_rank":
		return owned
	}
	if p, ok := ParamOf(string(name)); ok {
		return temperature + member(p)
	}
	return other
}

// parser is one pass over a body.
type parser struct {
	r    *Request
	dec  *jsontext.Decoder
	seen [owned]bool
	name []byte // unescaped names are assembled here
	// output tokens by the older of the two names
	older uint64
}

// object reads the whole body. Names are compared as they mean, so an escaped
// spelling is the same member. A rid of null is cut like what the router owns:
// it says nothing, and would repeat the name that the router may add.
func (p *parser) object() error {
	if t, err := p.dec.ReadToken(); err != nil {
		return err
	} else if t.Kind() != '{' {
		return errors.New("not an object")
	}
	for prev := p.offset(); p.dec.PeekKind() != '}'; prev = p.offset() {
		raw, err := p.dec.ReadValue()
		if err != nil {
			return err
		}
		if p.leading() {
			p.r.cuts[0].to = p.offset() - len(raw)
		}
		m, err := p.member(raw)
		if err != nil {
			return err
		}
		value, err := p.dec.ReadValue()
		if err != nil {
			return err
		}
		if err := p.take(m, value); err != nil {
			return err
		}
		switch {
		case m != owned && (m != rid || value.Kind() != 'n'):
			p.r.members++
		case p.leading():
			p.r.cuts[0].to = p.offset()
		default:
			p.r.cuts = append(p.r.cuts, span{from: prev, to: p.offset()})
		}
	}
	return p.finish()
}

// leading reports whether everything so far is one cut. That cut takes the comma
// after it along, every other one the comma before it.
func (p *parser) leading() bool { return p.r.members == 0 && len(p.r.cuts) > 0 }

// finish reads the closing brace and makes sure that nothing follows it.
func (p *parser) finish() error {
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	p.r.end = p.offset() - 1
	if _, err := p.dec.ReadToken(); err == nil {
		return errors.New("trailing text")
	} else if err != io.EOF {
		return err
	}
	if !p.r.known && p.seen[maxTokens] && p.older != unset {
		p.r.output, p.r.known = p.older, true
	}
	return nil
}

func (p *parser) offset() int { return int(p.dec.InputOffset()) }

// member identifies a quoted name.
func (p *parser) member(raw jsontext.Value) (member, error) {
	name := []byte(raw[1 : len(raw)-1])
	if bytes.IndexByte(name, '\\') >= 0 {
		var err error
		if p.name, err = jsontext.AppendUnquote(p.name[:0], []byte(raw)); err != nil {
			return other, err
		}
		name = p.name
	}
	return memberOf(name), nil
}

// take notes what a member says. A routing member may stand once, even when one
// copy is null: router and engine could read different copies.
func (p *parser) take(m member, v jsontext.Value) (err error) {
	if err := checkDepth(v); err != nil {
		return err
	}
	if m >= model && m <= maxCompletionTokens {
		if p.seen[m] {
			return errors.New("a routing member is repeated")
		}
		p.seen[m] = true
	}
	null := v.Kind() == 'n'
	switch m {
	case model:
		p.r.Model, err = readString(v, null)
	case stream:
		p.r.Stream = v.Kind() == 't'
		if !null && v.Kind() != 't' && v.Kind() != 'f' {
			err = errors.New("stream is not a boolean")
		}
	case maxTokens:
		p.older, err = readCount(v, null)
	case maxCompletionTokens:
		p.r.output, err = readCount(v, null)
		p.r.known = err == nil && !null
	case rid:
		p.r.OwnID = p.r.OwnID || !null
	case salt:
		p.r.CacheSalt = text(v)
	case lora:
		p.r.LoRA = text(v)
	case completions:
		p.r.Several = p.r.Several || !null && !single(v)
	}
	if m >= temperature && m <= completions {
		p.r.sampling[m-temperature] = span{}
		if !null {
			p.r.sampling[m-temperature] = span{from: p.offset() - len(v), to: p.offset()}
		}
	}
	return err
}

// text reads a value that separates cached blocks. What is no string separates
// them, too: its JSON text stands for it, and then matches nothing.
func text(v jsontext.Value) string {
	if v.Kind() == 'n' {
		return ""
	}
	if v.Kind() == '"' {
		if s, err := jsontext.AppendUnquote(nil, []byte(v)); err == nil {
			return string(s)
		}
	}
	return string(v)
}

func readString(v jsontext.Value, null bool) (string, error) {
	if null {
		return "", nil
	}
	if v.Kind() != '"' {
		return "", errors.New("model is not a string")
	}
	s, err := jsontext.AppendUnquote(nil, []byte(v))
	return string(s), err
}

// unset marks a null count. A real count of this size overflows every sum, so
// it is refused as one that does not fit.
const unset = math.MaxUint64

func readCount(v jsontext.Value, null bool) (uint64, error) {
	if null {
		return unset, nil
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil || v[0] == '+' {
		return 0, errors.New("a token limit is not a count")
	}
	return min(n, unset-1), nil
}

// single reports whether a number of completions is readable and not above 1.
func single(v jsontext.Value) bool {
	n, err := strconv.ParseFloat(string(v), 64)
	return v.Kind() == '0' && err == nil && n <= 1
}

// checkDepth refuses a member value that nests too deeply. The value is valid
// JSON, so brackets outside strings balance.
func checkDepth(v jsontext.Value) error {
	if k := v.Kind(); k != '{' && k != '[' || len(v) < maxDepth {
		return nil
	}
	depth := 1 // the body's own object
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			i = stringEnd(v, i)
		case '{', '[':
			if depth++; depth > maxDepth {
				return errors.New("nested too deeply")
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// stringEnd is the index of the quote that ends the string begun at v[i].
func stringEnd(v []byte, i int) int {
	for i++; i < len(v); i++ {
		j := bytes.IndexByte(v[i:], '"')
		if j < 0 {
			return len(v)
		}
		quote := i + j
		slashes := 0
		for k := quote - 1; k >= i && v[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return quote
		}
		i = quote
	}
	return len(v)
}
