package load

import (
	"encoding/json"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// DecodeStat reads the report that a rank publishes: a msgpack array of a tag,
// four counts, the rank, and the five numbers of the native part. A report
// without the native part is basic; one with a piece of it is an error.
func DecodeStat(p []byte) (Report, error) {
	r, err := decodeStat(p)
	if err != nil {
		return Report{}, fmt.Errorf("load report: %w", err)
	}
	return r, nil
}

func decodeStat(p []byte) (r Report, err error) {
	n, p, err := msgp.ReadArrayHeaderBytes(p)
	if err != nil {
		return r, err
	}
	if n < 5 {
		return r, fmt.Errorf("%d elements; a tag and four counts are required", n)
	}
	tag, p, err := msgp.ReadStringZC(p)
	if err != nil {
		return r, err
	}
	if string(tag) != "LoadStat" {
		return r, fmt.Errorf("tag %q", tag[:min(len(tag), 40)])
	}
	for _, to := range []*uint64{&r.Running, &r.Waiting, &r.Used, &r.Capacity} {
		if *to, p, err = msgp.ReadUint64Bytes(p); err != nil {
			return r, err
		}
	}
	if n == 5 {
		return r, nil
	}
	// The rank is informational, but must be one.
	if p, err = skipRank(p); err != nil {
		return r, err
	}
	if n == 6 || n == 7 && msgp.IsNil(p) {
		return r, nil
	}
	if n == 7 {
		// A variant publishes the waiting tokens alone. They are no native report.
		_, _, err = msgp.ReadUint64Bytes(p)
		return r, err
	}
	if n < 11 {
		return r, fmt.Errorf("%d elements; the native part is incomplete", n)
	}
	r.Extension, err = decodeExtension(p)
	return r, err
}

func skipRank(p []byte) ([]byte, error) {
	if msgp.IsNil(p) {
		return msgp.ReadNilBytes(p)
	}
	_, p, err := msgp.ReadInt64Bytes(p)
	return p, err
}

func decodeExtension(p []byte) (*Extension, error) {
	var x Extension
	var err error
	for _, to := range []*uint64{&x.WaitingUncached, &x.Total, &x.MaxRunning, &x.PrefillTokens, &x.PrefillBusyUS} {
		if *to, p, err = msgp.ReadUint64Bytes(p); err != nil {
			return nil, err
		}
	}
	return &x, nil
}

// RankReport is a report with the rank that it is about.
type RankReport struct {
	Rank   int
	Report Report
}

// maxRanks bounds the ranks of one engine.
const maxRanks = 4096

// wireLoad is a rank in the answer of /v1/loads. Pointers tell absent from zero.
type wireLoad struct {
	Rank            int     `json:"dp_rank"`
	Running         *uint64 `json:"num_running_reqs"`
	Waiting         *uint64 `json:"num_waiting_reqs"`
	Used            *uint64 `json:"num_used_tokens"`
	Capacity        *uint64 `json:"max_total_num_tokens"`
	WaitingUncached *uint64 `json:"num_waiting_uncached_tokens"`
	Total           *uint64 `json:"num_total_tokens"`
	MaxRunning      *uint64 `json:"max_running_requests"`
	PrefillTokens   *uint64 `json:"total_prefill_uncached_tokens"`
	PrefillBusyUS   *uint64 `json:"total_prefill_busy_us"`
}

// DecodeLoads reads the answer of GET /v1/loads?include=core.
func DecodeLoads(raw []byte) ([]RankReport, error) {
	var d struct {
		Loads []wireLoad `json:"loads"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("load reports: %w", err)
	}
	var out []RankReport
	for _, l := range d.Loads {
		if l.Running == nil || l.Waiting == nil || l.Used == nil || l.Capacity == nil {
			return nil, fmt.Errorf("load reports: rank %d lacks one of the four counts", l.Rank)
		}
		r := Report{Running: *l.Running, Waiting: *l.Waiting, Used: *l.Used, Capacity: *l.Capacity}
		// Older engines have no counters of prefill work: their reports are basic.
		if l.WaitingUncached != nil && l.Total != nil && l.MaxRunning != nil && l.PrefillTokens != nil && l.PrefillBusyUS != nil {
			r.Extension = &Extension{*l.WaitingUncached, *l.Total, *l.MaxRunning, *l.PrefillTokens, *l.PrefillBusyUS}
		}
		out = append(out, RankReport{Rank: l.Rank, Report: r})
	}
	return checkRanks(out)
}

// DecodeGetLoad reads the answer of the deprecated GET /get_load, which has no
// capacity: its reports are basic.
func DecodeGetLoad(raw []byte) ([]RankReport, error) {
	var d []struct {
		Rank    int     `json:"dp_rank"`
		All     *uint64 `json:"num_reqs"`
		Waiting *uint64 `json:"num_waiting_reqs"`
		Total   uint64  `json:"num_tokens"`
		Pending uint64  `json:"num_pending_tokens"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("load reports: %w", err)
	}
	var out []RankReport
	for _, l := range d {
		if l.All == nil || l.Waiting == nil {
			return nil, fmt.Errorf("load reports: rank %d lacks its counts", l.Rank)
		}
		r := Report{Running: *l.All - min(*l.All, *l.Waiting), Waiting: *l.Waiting, Used: l.Total - min(l.Total, l.Pending)}
		out = append(out, RankReport{Rank: l.Rank, Report: r})
	}
	return checkRanks(out)
}

func checkRanks(reports []RankReport) ([]RankReport, error) {
	seen := make(map[int]bool, len(reports))
	for _, r := range reports {
		if r.Rank < 0 || r.Rank >= maxRanks || seen[r.Rank] {
			return nil, fmt.Errorf("load reports: rank %d is repeated or out of range", r.Rank)
		}
		seen[r.Rank] = true
	}
	if len(reports) == 0 {
		return nil, fmt.Errorf("load reports: none")
	}
	return reports, nil
}
