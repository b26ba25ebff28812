package suite

import (
	"encoding/json"
	"fmt"
	"strconv"

	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/simulate"
)

// File is a test file as written; schema/test.cue describes it.
type File struct {
	Version int    `json:"version"`
	Plan    string `json:"plan"`
	// Config is one file, or several that are unified.
	Config Names `json:"config"`
	// World and WorldFile are the state of tests without their own; who reads
	// the file puts the content of WorldFile into World.
	World     *simulate.World `json:"world"`
	WorldFile string          `json:"world_file"`
	Tests     []Test          `json:"tests"`
}

// Test is one request, one for each of several lengths, or a sequence of steps,
// and what is expected.
type Test struct {
	Name      string          `json:"name"`
	Request   *Request        `json:"request"`
	World     *simulate.World `json:"world"`
	WorldFile string          `json:"world_file"`
	// Repeat is how often the request is decided; 0 is once.
	Repeat int `json:"repeat"`
	// Seed decides the draws; absent is 1.
	Seed    *uint64      `json:"seed"`
	Expect  *Expectation `json:"expect"`
	Lengths []Row        `json:"lengths"`
	// Steps follow each other in one world, in place of Request, Repeat, Expect
	// and Lengths.
	Steps []Step `json:"steps"`
}

// Step is one part of a sequence.
type Step struct {
	Name string `json:"name"`
	// Change is what of the world changes before.
	Change *simulate.World `json:"change"`
	// Request is that of the step before if it is nil.
	Request *Request     `json:"request"`
	Repeat  int          `json:"repeat"`
	Expect  *Expectation `json:"expect"`
}

// Request is facts, or a body.
type Request struct {
	Model              string            `json:"model"`
	InputTokens        Lengths           `json:"input_tokens"`
	TokenIDs           []uint32          `json:"token_ids"`
	MaxOutputTokens    *int64            `json:"max_output_tokens"`
	ExpectedPeakTokens *int64            `json:"expected_peak_tokens"`
	SessionKey         string            `json:"session_key"`
	RoutingKey         string            `json:"routing_key"`
	TTFTMS             *uint64           `json:"ttft_target_ms"`
	TPS                *float64          `json:"tps_target"`
	Headers            map[string]string `json:"headers"`
	Body               json.RawMessage   `json:"body"`
	// BodyFile is read by who reads the file, into Body.
	BodyFile string  `json:"body_file"`
	Prompt   *string `json:"prompt"`
}

// Row is lengths and what is expected of each.
type Row struct {
	InputTokens        Lengths  `json:"input_tokens"`
	From               int64    `json:"from"` // 0 is 1, if To is given
	To                 int64    `json:"to"`   // 0 has no end, if From is given
	MaxOutputTokens    *int64   `json:"max_output_tokens"`
	ExpectedPeakTokens *int64   `json:"expected_peak_tokens"`
	Bucket             string   `json:"bucket"`
	Buckets            []string `json:"buckets"`
	Error              string   `json:"error"`
	Status             int      `json:"status"`
}

// expectation is what a row expects beside its test.
func (r *Row) expectation() *Expectation {
	return &Expectation{Bucket: r.Bucket, Buckets: r.Buckets, Error: r.Error, Status: r.Status}
}

// Expectation is what a decision is held against; absent members are not
// compared.
type Expectation struct {
	Bucket       string                  `json:"bucket"`
	Buckets      []string                `json:"buckets"`
	Fates        map[string]routing.Fate `json:"fates"`
	Plain        Names                   `json:"plain"`
	Prefill      Names                   `json:"prefill"`
	Decode       Names                   `json:"decode"`
	Reason       policy.Reason           `json:"reason"`
	DecodeReason policy.Reason           `json:"decode_reason"`
	Error        string                  `json:"error"`
	Stage        string                  `json:"stage"`
	Status       int                     `json:"status"`
	Code         string                  `json:"code"`
	Rejections   []policy.Rejection      `json:"rejections"`
	Distribution map[string]Share        `json:"distribution"`
}

// empty reports whether the expectation could not fail.
func (e *Expectation) empty() bool {
	if e == nil {
		return true
	}
	for _, s := range e.Distribution {
		if s.Min != nil || s.Max != nil {
			return false
		}
	}
	return e.Bucket == "" && e.Buckets == nil && len(e.Fates) == 0 && len(e.Plain)+len(e.Prefill)+len(e.Decode) == 0 &&
		e.Reason == "" && e.DecodeReason == "" && e.Error == "" && e.Stage == "" && e.Status == 0 && e.Code == "" && e.Rejections == nil
}

// Share is how often an engine is picked.
type Share struct {
	Min *int64 `json:"min"`
	Max *int64 `json:"max"`
}

// Lengths is a number or a list of numbers.
type Lengths []int64

// UnmarshalJSON reads either form.
func (l *Lengths) UnmarshalJSON(data []byte) error { return one(data, (*[]int64)(l)) }

// Names is a name or a list of names.
type Names []string

// UnmarshalJSON reads either form.
func (n *Names) UnmarshalJSON(data []byte) error { return one(data, (*[]string)(n)) }

func one[T any](data []byte, into *[]T) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, into)
	}
	*into = make([]T, 1)
	return json.Unmarshal(data, &(*into)[0])
}

// Decode reads a test file whose shape was judged.
func Decode(data []byte) (*File, error) {
	f := new(File)
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("test file: %w", err)
	}
	return f, nil
}

// pointers of places in a test file.
func testPointer(i int) string { return "/tests/" + strconv.Itoa(i) }

func stepPointer(i, j int) string { return testPointer(i) + "/steps/" + strconv.Itoa(j) }

func rowPointer(i, j int) string { return testPointer(i) + "/lengths/" + strconv.Itoa(j) }
