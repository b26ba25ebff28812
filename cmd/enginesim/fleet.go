package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"shunt/runtime/enginetest"
)

// entry is one engine of a fleet file; what it leaves out the flags say.
type entry struct {
	ID                     string           `json:"id"`
	Role                   *enginetest.Role `json:"role"`
	Model                  *string          `json:"model"`
	Listen                 *string          `json:"listen"`
	BootstrapListen        *string          `json:"bootstrap_listen"`
	Seed                   *uint64          `json:"seed"`
	PrefillTokensPerSecond *int             `json:"prefill_tokens_per_second"`
	InterToken             *duration        `json:"inter_token"`
	OutputTokens           *int             `json:"output_tokens"`
	MaxRunning             *int             `json:"max_running"`
	MaxQueued              *int             `json:"max_queued"`
	KVTokens               *int             `json:"kv_tokens"`
	ContextTokens          *int             `json:"context_tokens"`
	BootstrapTimeout       *duration        `json:"bootstrap_timeout"`
	EarlyHead              *bool            `json:"early_head"`
	BlockSize              *int             `json:"block_size"`
	CacheTokens            *int             `json:"cache_tokens"`
	Ranks                  *int             `json:"ranks"`
	Events                 *bool            `json:"events"`
	Replay                 *bool            `json:"replay"`
	PublishLoads           *bool            `json:"publish_loads"`
	VLLM                   *bool            `json:"vllm"`
	HashSeed               *string          `json:"hash_seed"`
	EventPort              *int             `json:"event_port"`
	ReplayPort             *int             `json:"replay_port"`
	LoadPort               *int             `json:"load_port"`
}

// duration is a time.Duration written like "5ms".
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = duration(v)
	return err
}

// fleetOptions returns the options of all engines to start.
func fleetOptions(c *cli.Context) ([]enginetest.Options, error) {
	base := flagOptions(c)
	path := c.String("fleet")
	if path == "" {
		return []enginetest.Options{base}, nil
	}
	if c.IsSet("id") {
		return nil, errors.New("--id and --fleet exclude each other")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	entries, err := parseFleet(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := make([]enginetest.Options, len(entries))
	for i, e := range entries {
		out[i] = e.over(base)
	}
	return out, nil
}

// parseFleet reads a fleet file: engines with distinct ids, at least one.
func parseFleet(data []byte) ([]entry, error) {
	var entries []entry
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&entries); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok && strings.Contains(name, "-") {
			return nil, fmt.Errorf("unknown field %s; names are those of the flags with _ in place of -", name)
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the list of engines")
	}
	if len(entries) == 0 {
		return nil, errors.New("no engines")
	}
	seen := map[string]bool{}
	for i, e := range entries {
		if e.ID == "" || seen[e.ID] {
			return nil, fmt.Errorf("engine %d: id %q is empty or used twice", i, e.ID)
		}
		seen[e.ID] = true
	}
	return entries, nil
}

// flagOptions returns what the flags say.
func flagOptions(c *cli.Context) enginetest.Options {
	return enginetest.Options{
		ID:                     c.String("id"),
		Role:                   enginetest.Role(c.String("role")),
		Model:                  c.String("model"),
		Listen:                 c.String("listen"),
		BootstrapListen:        c.String("bootstrap-listen"),
		Seed:                   c.Uint64("seed"),
		PrefillTokensPerSecond: c.Int("prefill-tokens-per-second"),
		InterToken:             c.Duration("inter-token"),
		OutputTokens:           c.Int("output-tokens"),
		MaxRunning:             c.Int("max-running"),
		MaxQueued:              c.Int("max-queued"),
		KVTokens:               c.Int("kv-tokens"),
		ContextTokens:          c.Int("context-tokens"),
		BootstrapTimeout:       c.Duration("bootstrap-timeout"),
		EarlyHead:              c.Bool("early-head"),
		RecordLimit:            c.Int("record-limit"),
		BlockSize:              c.Int("block-size"),
		CacheTokens:            c.Int("cache-tokens"),
		Ranks:                  c.Int("ranks"),
		Events:                 c.Bool("events"),
		Replay:                 c.Bool("replay"),
		PublishLoads:           c.Bool("publish-loads"),
		VLLM:                   c.Bool("vllm"),
		HashSeed:               c.String("hash-seed"),
		EventPort:              c.Int("event-port"),
		ReplayPort:             c.Int("replay-port"),
		LoadPort:               c.Int("load-port"),
	}
}

// over returns base with what the entry sets.
func (e entry) over(base enginetest.Options) enginetest.Options {
	o := base
	o.ID = e.ID
	set(&o.Role, e.Role)
	set(&o.Model, e.Model)
	set(&o.Listen, e.Listen)
	set(&o.BootstrapListen, e.BootstrapListen)
	set(&o.Seed, e.Seed)
	set(&o.PrefillTokensPerSecond, e.PrefillTokensPerSecond)
	set(&o.InterToken, (*time.Duration)(e.InterToken))
	set(&o.OutputTokens, e.OutputTokens)
	set(&o.MaxRunning, e.MaxRunning)
	set(&o.MaxQueued, e.MaxQueued)
	set(&o.KVTokens, e.KVTokens)
	set(&o.ContextTokens, e.ContextTokens)
	set(&o.BootstrapTimeout, (*time.Duration)(e.BootstrapTimeout))
	set(&o.EarlyHead, e.EarlyHead)
	set(&o.BlockSize, e.BlockSize)
	set(&o.CacheTokens, e.CacheTokens)
	set(&o.Ranks, e.Ranks)
	set(&o.Events, e.Events)
	set(&o.Replay, e.Replay)
	set(&o.PublishLoads, e.PublishLoads)
	set(&o.VLLM, e.VLLM)
	set(&o.HashSeed, e.HashSeed)
	set(&o.EventPort, e.EventPort)
	set(&o.ReplayPort, e.ReplayPort)
	set(&o.LoadPort, e.LoadPort)
	return o
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
