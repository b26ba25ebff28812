package load_test

import (
	"slices"
	"strings"
	"testing"

	"shunt/runtime/state/load"
)

func TestDecodeMetrics(t *testing.T) {
	f := func(text string, want ...load.RankReport) {
		t.Helper()
		got, err := load.DecodeMetrics([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b load.RankReport) int { return a.Rank - b.Rank })
		if !slices.Equal(got, want) {
			t.Errorf("got %+v", got)
		}
	}
	report := func(rank int, running, waiting uint64) load.RankReport {
		return load.RankReport{Rank: rank, Report: load.Report{Running: running, Waiting: waiting}}
	}
	f("# HELP vllm:num_requests_running Number.\n# TYPE vllm:num_requests_running gauge\n"+
		"vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n"+
		"vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2.0\n"+
		"vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"capacity\"} 7.0\n"+
		"vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n", report(0, 3, 2))
	f("vllm:num_requests_waiting{model_name=\"a,engine=\\\"7\\\" }\"} 1\nvllm:num_requests_running 4 1700000000\n", report(0, 4, 1))
	f("vllm:num_requests_running{model_name=\"m\",engine=\"1\"} 1e1\nvllm:num_requests_waiting{model_name=\"m\",engine=\"1\"} 0\n"+
		"vllm:num_requests_running{model_name=\"m\",engine=\"0\"} 2\nvllm:num_requests_waiting{model_name=\"m\",engine=\"0\"} 5", report(0, 2, 5), report(1, 10, 0))

	bad := func(text, want string) {
		t.Helper()
		if _, err := load.DecodeMetrics([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	bad("", "none")
	bad("vllm:num_requests_running 1\n", "lacks")
	bad("vllm:num_requests_running\n", "none") // a name alone is no sample
	bad("vllm:num_requests_running \n", "no value")
	bad("vllm:num_requests_running NaN\n", "no count")
	bad("vllm:num_requests_running -1\n", "no count")
	bad("vllm:num_requests_running 1.5\n", "no count")
	bad("vllm:num_requests_running{engine=\"x\"} 1\n", "no rank")
	bad("vllm:num_requests_running{engine=\"-1\"} 1\n", "no rank")
	bad("vllm:num_requests_running{engine=\"0} 1\n", "labels")
	bad("vllm:num_requests_running{engine=\"99999\"} 1\nvllm:num_requests_waiting{engine=\"99999\"} 1\n", "out of range")
}

func FuzzDecodeMetrics(f *testing.F) {
	f.Add([]byte("vllm:num_requests_running{engine=\"0\"} 3.0\nvllm:num_requests_waiting{engine=\"0\"} 2.0\n"))
	f.Add([]byte("vllm:num_requests_running{a=\"\\"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		reports, err := load.DecodeMetrics(raw)
		if err == nil && len(reports) == 0 {
			t.Error("neither reports nor an error")
		}
	})
}
