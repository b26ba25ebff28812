package load

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// The gauges of vLLM's /metrics that make a report, one for each rank by its label
// engine. vLLM reports neither tokens in use nor those that wait for prefill, so
// its reports are basic.
const (
	vllmRunning = "vllm:num_requests_running"
	vllmWaiting = "vllm:num_requests_waiting"
)

// DecodeMetrics reads the answer of vLLM's GET /metrics.
func DecodeMetrics(raw []byte) ([]RankReport, error) {
	running, waiting := make(map[int]uint64), make(map[int]uint64)
	for line := range bytes.Lines(raw) {
		name, rest := line, []byte(nil)
		if i := bytes.IndexAny(line, "{ "); i >= 0 {
			name, rest = line[:i], line[i:]
		}
		var to map[int]uint64
		switch string(name) {
		case vllmRunning:
			to = running
		case vllmWaiting:
			to = waiting
		default:
			continue
		}
		rank, n, err := sample(rest)
		if err != nil {
			return nil, fmt.Errorf("load reports: %s: %w", name, err)
		}
		to[rank] += n
	}
	var out []RankReport
	for rank, n := range running {
		w, ok := waiting[rank]
		if !ok {
			return nil, fmt.Errorf("load reports: rank %d lacks %s", rank, vllmWaiting)
		}
		out = append(out, RankReport{Rank: rank, Report: Report{Running: n, Waiting: w}})
	}
	return checkRanks(out)
}

// sample reads what follows the name of a gauge: labels, if any, and a count.
func sample(rest []byte) (rank int, n uint64, err error) {
	if len(rest) > 0 && rest[0] == '{' {
		end := bytes.LastIndexByte(rest, '}')
		if end < 0 {
			return 0, 0, fmt.Errorf("labels without an end")
		}
		if rank, err = rankLabel(rest[1:end]); err != nil {
			return 0, 0, err
		}
		rest = rest[end+1:]
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0, 0, fmt.Errorf("no value")
	}
	v, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil || v < 0 || v > math.MaxUint32 || v != math.Trunc(v) {
		return 0, 0, fmt.Errorf("%.40q is no count", fields[0])
	}
	return rank, uint64(v), nil
}

// rankLabel finds the label engine, whose absence is rank 0. Values of labels may
// hold anything, escaped.
func rankLabel(labels []byte) (int, error) {
	for len(labels) > 0 {
		eq := bytes.Index(labels, []byte(`="`))
		if eq < 0 {
			return 0, fmt.Errorf("labels %.80q", labels)
		}
		name, rest := bytes.TrimLeft(labels[:eq], ", "), labels[eq+2:]
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return 0, fmt.Errorf("labels %.80q", labels)
		}
		if string(name) == "engine" {
			rank, err := strconv.Atoi(string(rest[:end]))
			if err != nil || rank < 0 {
				return 0, fmt.Errorf("engine %.40q is no rank", rest[:end])
			}
			return rank, nil
		}
		labels = rest[end+1:]
	}
	return 0, nil
}
