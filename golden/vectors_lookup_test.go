package golden_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/wire"
)

// lookupCase is cache-aware picks from prefix sources.
type lookupCase struct {
	ID      string                `json:"id"`
	Note    string                `json:"note"`
	Engines []engineSpec          `json:"engines"`
	Tuning  json.RawMessage       `json:"tuning"`
	Sources map[string]sourceSpec `json:"sources"`
	Steps   []lookupStep          `json:"steps"`
}

// sourceSpec is a scripted source, or a local one.
type sourceSpec struct {
	Status  string     `json:"status"`
	Reason  string     `json:"reason"`
	Matches []matchOne `json:"matches"`
	Rejects string     `json:"rejects"`
	Takes   string     `json:"takes"`

	Local     bool `json:"local"`
	BlockSize int  `json:"block_size"`
	Bigram    bool `json:"bigram"`
	// WholeBlocks leaves a short last block out.
	WholeBlocks bool           `json:"whole_blocks"`
	Stored      map[string]int `json:"stored"`
}

// matchOne is [address, blocks].
type matchOne prefix.Match

func (m *matchOne) UnmarshalJSON(data []byte) error {
	pair := []any{&m.Address, &m.Blocks}
	return json.Unmarshal(data, &pair)
}

// lookupStep has one field set.
type lookupStep struct {
	Pick    *lookupPick    `json:"pick"`
	Refuse  *[]string      `json:"refuse"`
	Queries map[string]int `json:"queries"`
	Checks  *int           `json:"checks"`
}

// lookupPick asks source x unless said, with the memo of the given name.
type lookupPick struct {
	Memo     string   `json:"memo"`
	Source   string   `json:"source"`
	Group    []string `json:"group"`
	NoTokens bool     `json:"no_tokens"`
	AtOnce   int      `json:"at_once"`
	Want     string   `json:"want"`
	Reason   string   `json:"reason"`
	Fails    string   `json:"fails"`
	Rejected []string `json:"rejected"`
	Trace    string   `json:"trace"`
	Holders  []string `json:"holders"`
}

func runLookups(t *testing.T, data []byte) (ran []string) {
	var file struct {
		About string       `json:"about"`
		Cases []lookupCase `json:"cases"`
	}
	decode(t, data, &file)
	var base cacheTuning
	cache, err := os.ReadFile("vectors/cache.json")
	if err != nil {
		t.Fatal(err)
	}
	var tuned cacheFile
	decode(t, cache, &tuned)
	decode(t, tuned.Base, &base)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			// Scripted sources take their time.
			synctest.Test(t, func(t *testing.T) { c.run(t, base) })
		})
		ran = append(ran, c.ID)
	}
	return ran
}

// lookupWorld is a world with one policy for each source.
type lookupWorld struct {
	*world
	door     *door
	policies map[string]*policy.CacheAware
	scripts  map[string]*script
	memos    map[string]*prefix.Memo
}

func (c *lookupCase) run(t *testing.T, tuning cacheTuning) {
	t.Helper()
	if c.Tuning != nil {
		decode(t, c.Tuning, &tuning)
	}
	w := &lookupWorld{
		world: newWorld(t, c.Engines), door: new(door),
		policies: make(map[string]*policy.CacheAware), scripts: make(map[string]*script), memos: make(map[string]*prefix.Memo),
	}
	for name, spec := range c.Sources {
		p, err := policy.NewCacheAware(policy.CacheOptions{
			Loads: w.reader(), Admission: w.door, Prefixes: &policy.Indexed{Source: w.source(name, spec)},
			Fallback: &policy.PowerOfTwo{Loads: w.reader()}, Tuning: tuning.live(),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.policies[name] = p
	}
	for i, s := range c.Steps {
		if err := s.run(w); err != nil {
			t.Errorf("step %d: %v", i+1, err)
		}
	}
}

func (w *lookupWorld) source(name string, spec sourceSpec) prefix.Source {
	if spec.Local {
		return w.local(spec)
	}
	statuses := []prefix.Status{prefix.NoQuery, prefix.Empty, prefix.Matched, prefix.Unavailable}
	s := &script{takes: w.span(spec.Takes)}
	s.out = prefix.Outcome{Reason: spec.Reason, QueryBlocks: 8}
	if spec.Rejects != "" {
		s.err = &prefix.InvalidError{Code: spec.Rejects, Err: errors.New("scripted")}
	} else {
		i := slices.IndexFunc(statuses, func(s prefix.Status) bool { return s.String() == spec.Status })
		if i < 0 {
			w.t.Fatalf("source %s: status %q", name, spec.Status)
		}
		s.out.Status = statuses[i]
	}
	for _, m := range spec.Matches {
		s.out.Matches = append(s.out.Matches, prefix.Match(m))
	}
	w.scripts[name] = s
	return s
}

// local is a source over an index that holds the first blocks of the prompt.
func (w *lookupWorld) local(spec sourceSpec) prefix.Source {
	index, names := prefix.NewIndex(1000), new(prefix.Namespace)
	if spec.BlockSize == 0 {
		return &prefix.Local{Index: index, Namespace: names}
	}
	h := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: spec.BlockSize, Bigram: spec.Bigram}
	if spec.WholeBlocks {
		h.Scheme = prefix.VLLM
	}
	if agreed, _ := names.Propose("http://a", h); !agreed {
		w.t.Fatal("the first engine is not believed")
	}
	hashes := h.Append(nil, prefix.Prompt{Tokens: prompt()})
	for id, n := range spec.Stored {
		index.Attach(w.engine(id).URL(), 0).Apply(&wire.Batch{Events: []wire.Event{
			{Kind: wire.Stored, Medium: wire.Device, Hashes: hashes[:n], BlockSize: spec.BlockSize},
		}})
	}
	return &prefix.Local{Index: index, Namespace: names}
}

func prompt() []uint32 { return []uint32{1, 2, 3, 4, 5, 6, 7, 8} }

// script is a source with one answer.
type script struct {
	out     prefix.Outcome
	err     error
	takes   time.Duration
	queries atomic.Int32
}

func (s *script) Lookup(context.Context, prefix.Prompt) (prefix.Outcome, error) {
	s.queries.Add(1)
	time.Sleep(s.takes)
	return s.out, s.err
}

func (s *lookupStep) run(w *lookupWorld) error {
	switch {
	case s.Pick != nil:
		return s.Pick.run(w)
	case s.Refuse != nil:
		w.door.refuse = *s.Refuse
	case s.Queries != nil:
		for name, want := range s.Queries {
			if got := int(w.scripts[name].queries.Load()); got != want {
				return fmt.Errorf("source %s was asked %d times, want %d", name, got, want)
			}
		}
	case s.Checks != nil:
		if len(w.door.saw) != *s.Checks {
			return fmt.Errorf("admission was asked %d times, want %d", len(w.door.saw), *s.Checks)
		}
	default:
		return errors.New("empty step")
	}
	return nil
}

func (s *lookupPick) run(w *lookupWorld) error {
	candidates := w.all()
	if s.Group != nil {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(e *fleet.Engine) bool { return !slices.Contains(s.Group, e.ID()) })
	}
	name := s.Source
	if name == "" {
		name = "x"
	}
	req := policy.Request{Model: "m", Stage: fleet.Plain, Input: 8, TokenIDs: prompt()}
	if s.NoTokens {
		req.TokenIDs = nil
	}
	if s.Memo != "" {
		if w.memos[s.Memo] == nil {
			w.memos[s.Memo] = new(prefix.Memo)
		}
		req.Memo = w.memos[s.Memo]
	}
	failures := make([]error, max(s.AtOnce, 1))
	var wg sync.WaitGroup
	for i := range failures {
		wg.Go(func() {
			one := req
			one.Trace = new(policy.Trace)
			got, err := w.policies[name].Pick(w.t.Context(), candidates, &one)
			failures[i] = s.judge(got, err, &one)
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}

func (s *lookupPick) judge(got policy.Pick, err error, req *policy.Request) error {
	c := cacheCase{Want: s.Want, Reason: s.Reason, Fails: s.Fails, Rejected: s.Rejected, Holders: s.Holders, Trace: s.Trace}
	return errors.Join(c.judge(got, err), c.judgeTrace(req, new(door)))
}
