package flags_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/flags"
)

// parse parses words separated by spaces; "_" in front of a word stands for the
// empty word.
func parse(text string) *flags.Line {
	args := strings.Fields(text)
	for i := range args {
		if args[i] == "_" {
			args[i] = ""
		}
	}
	return flags.Parse(argv.FromArgs(args).Args)
}

// summary is every argument with the indexes of its elements and its codes, then
// the codes of the whole line.
func summary(l *flags.Line) string {
	var parts []string
	for i := range l.Given {
		g := &l.Given[i]
		p := fmt.Sprintf("%s%v", g.Name, g.Elements)
		for _, f := range g.Findings {
			p += " " + string(f.Code)
		}
		parts = append(parts, p)
	}
	for _, f := range l.Findings {
		parts = append(parts, string(f.Code))
	}
	return strings.Join(parts, ", ")
}

// TestHabits are those of the parser of the older router. The line lacks what is
// required, which SH0605 at the end says; SH0611 is the default of the drain.
func TestHabits(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := strings.TrimSuffix(summary(parse(text)), ", SH0605, SH0605, SH0611"); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
	f("--host a --port 1", "host[0 1], port[2 3]")
	f("--host=a --port=1", "host[0], port[1]")
	f("--host=a=b", "host[0]")
	f("--host= --log-level _", "host[0] SH0604, log-level[1 2]")                                               // an empty text is a text, but no host
	f("--service-discovery-namespace= --log-level _", "service-discovery-namespace[0] SH0606, log-level[1 2]") //
	f("--host - --port 1", "host[0 1], port[2 3]")                                                             // a minus alone is a value
	f("--port=", "port[0] SH0604")                                                                             // but no number
	f("--port +7", "port[0 1]")                                                                                // Rust takes a plus
	f("--port ++7", "port[0 1] SH0604")                                                                        //
	f("--port 65536", "port[0 1] SH0604")                                                                      //
	f("--port 1_000", "port[0 1] SH0604")                                                                      //
	f("--port 0x10", "port[0 1] SH0604")                                                                       //
	f("--port -1", "port[0] SH0603, 1[1] SH0603")                                                              // a minus begins an argument
	f("--port=-1", "port[0] SH0604")                                                                           //
	f("--port", "port[0] SH0603")                                                                              //
	f("--port --host a", "port[0] SH0603, host[1 2]")                                                          //
	f("--port 1 2", "port[0 1], [2] SH0603")                                                                   //
	f("--host a --host b", "host[0 1], host[2 3] SH0603")                                                      // scalars once
	f("--log-format Text", "log-format[0 1] SH0604")                                                           // the case counts
	f("--log-form text", "log-form[0 1] SH0601")                                                               // no abbreviation
	f("--log_format text", "log_format[0 1] SH0601")                                                           //
	f("--Host a", "Host[0 1] SH0601")                                                                          //
	f("-p 1", "p[0] SH0603, [1] SH0603")                                                                       // no short arguments
	f("--", "[0] SH0603")                                                                                      //
	f("-- --host a", "[0] SH0603, [1] SH0603, [2] SH0603")                                                     //
	f("--help -h -V --version", "help[0] SH0603, h[1] SH0603, V[2] SH0603, version[3] SH0603")
	f("--disable-input-ids-forwarding", "disable-input-ids-forwarding[0]")
	f("--disable-input-ids-forwarding=true", "disable-input-ids-forwarding[0] SH0603")
	f("--disable-input-ids-forwarding true", "disable-input-ids-forwarding[0], [1] SH0603")
	f("--cache-threshold 0.5 --dp-aware x", "cache-threshold[0 1] SH0602, dp-aware[2] SH0602, [3] SH0603")
	f("--nope a b --host c", "nope[0 1 2] SH0601, host[3 4]")
	f("--nope=a b", "nope[0] SH0601, [1] SH0603")
}

// TestLists: greedy lists take every word up to the next argument, comma lists
// one.
func TestLists(t *testing.T) {
	f := func(text, name, want, findings string) {
		t.Helper()
		l := parse("--model-id m " + text)
		var values []string
		for _, v := range l.Values(name) {
			values = append(values, fmt.Sprintf("%s@%d", v.Text, v.At))
		}
		if got := strings.Join(values, " "); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
		if got := strings.TrimSuffix(summary(l), ", SH0611"); got != "model-id[0 1], "+findings {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, findings)
		}
	}
	f("--worker-urls http://a http://b", "worker-urls", "http://a@3 http://b@4", "worker-urls[2 3 4]")
	f("--worker-urls http://a --port 1 --worker-urls http://b", "worker-urls", "http://a@3 http://b@7", "worker-urls[2 3], port[4 5], worker-urls[6 7]")
	f("--worker-urls=http://a http://b", "worker-urls", "http://a@2", "worker-urls[2], [3] SH0603")
	f("--worker-urls http://a,http://b", "worker-urls", "", "worker-urls[2 3] SH0604")
	f("--worker-urls http://a --filter overloaded,prefix_cache", "filter", "overloaded@5 prefix_cache@5",
		"worker-urls[2 3], filter[4 5] SH0606 SH0606")
	f("--worker-urls http://a --filter overloaded prefix_cache", "filter", "overloaded@5",
		"worker-urls[2 3], filter[4 5] SH0606, [6] SH0603")
	f("--worker-urls http://a --filter overloaded, --max-in-flight 1", "filter", "overloaded@5",
		"worker-urls[2 3], filter[4 5] SH0604, max-in-flight[6 7]")
}

func TestNumbers(t *testing.T) {
	f := func(text string, want float64, ok bool) {
		t.Helper()
		v := parse("--pressure-rel-threshold=" + text).Value("pressure-rel-threshold")
		if ok != (v != nil) || ok && v.Real != want {
			t.Errorf("%s: got %v", text, v)
		}
	}
	f("1e3", 1000, true)
	f("1.", 0, false) // read, and then not above 1
	f("2.", 2, true)
	f(".5e1", 5, true)
	f("+1.5", 1.5, true)
	f("0x1p4", 0, false)
	f("1_0", 0, false)
	f("inf", 0, false)
	f("NaN", 0, false)
	f("-nan", 0, false)
	f("1e999", 0, false)
	f("", 0, false)
	f("1,5", 0, false)
}

func TestOpenValues(t *testing.T) {
	args := []argv.Arg{
		{Text: "--port=$PORT", Open: []string{"PORT"}},
		{Text: "--model-id"}, {Text: "$MODEL", Open: []string{"MODEL"}},
		{Text: "$EXTRA", Open: []string{"EXTRA"}},
		{Text: "--$NAME=1", Open: []string{"NAME"}},
		{Text: "--worker-urls"}, {Text: "http://a"}, {Text: "$B", Open: []string{"B"}},
	}
	got := summary(flags.Parse(args))
	want := "port[0] SH0610, model-id[1 2] SH0610, [3] SH0610, $NAME[4] SH0610, worker-urls[5 6 7] SH0610, SH0611"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestHints are the ones that save most time.
func TestHints(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		l := parse(text)
		all := l.Findings
		for i := range l.Given {
			all = append(all, l.Given[i].Findings...)
		}
		if !slices.ContainsFunc(all, func(f diag.Finding) bool { return strings.Contains(f.Hint, want) }) {
			t.Errorf("%s: no hint with %q in\n%+v", text, want, all)
		}
	}
	f("--modle-id m", "did you mean --model-id?")
	f("--log-form text", "write --log-format")
	f("-host a", "write --host")
	f("--cache-candidate-ratio -0.1", "--cache-candidate-ratio=-0.1")
	f("--log-format JSON", "write json")
	f("--policy cache_awre", "did you mean cache_aware?")
	f("--policy cache_aware_zmq", "write --policy cache_aware")
	f("--policy prefix_cache", "write --policy cache_aware")
	f("--policy overloaded", "write --filter overloaded")
	f("--worker-urls=http://a http://b", "write --worker-urls http://a http://b instead")
	f("--worker-urls http://a,http://b", "separate the URLs with spaces")
	f("--worker-urls a:1", "write http://a:1")
	f("--filter overloaded prefix_cache", "write --filter overloaded,prefix_cache")
	f("--stable-pair true", "is a switch")
}

// TestTables: every name is there once, and every foreign argument says why and
// what to do.
func TestTables(t *testing.T) {
	seen := make(map[string]bool)
	own := 0
	for _, f := range flags.Table() {
		if seen[f.Name] {
			t.Errorf("%s is there twice", f.Name)
		}
		seen[f.Name] = true
		if !f.Neighbour {
			own++
		}
		if f.Kind == flags.Uint && f.Bits != 16 && f.Bits != 32 && f.Bits != 64 {
			t.Errorf("%s has %d bits", f.Name, f.Bits)
		}
	}
	if own != 56 {
		t.Errorf("%d arguments, want 56", own)
	}
	for _, f := range flags.ForeignTable() {
		if seen[f.Name] || f.Why == "" || f.Way == "" || f.Version == "" {
			t.Errorf("%s: %+v", f.Name, f)
		}
		seen[f.Name] = true
	}
}

func FuzzParse(f *testing.F) {
	f.Add("--model-id\x00m\x00--worker-urls\x00http://a\x00http://b")
	f.Add("--override-sampling-params\x00{\"n\":{\"min\":1,\"max\":2}}\x00--filter\x00overloaded,\x00--\x00-x")
	f.Add("--selector\x00a in (b,c),!d\x00--prefill-selector\x00a==b\x00--decode-selector\x00a=b")
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\x00")
		l := flags.Parse(argv.FromArgs(args).Args)
		seen := make([]int, len(args))
		for i := range l.Given {
			for _, e := range l.Given[i].Elements {
				seen[e]++
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Errorf("element %d is in %d arguments", i, n)
			}
		}
	})
}
