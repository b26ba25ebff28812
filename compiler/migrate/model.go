package migrate

import (
	"fmt"
	"strings"

	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// model writes the one model that the older router serves.
func (m *migration) model() {
	if v := m.line.Value("model-id"); v != nil {
		l := m.source("model-id")
		if plan.Printable(v.Text) {
			m.put(m.at+"/id", text(v.Text), l)
		} else {
			l.find(diag.LegacyNoEquivalent, "the model id has characters that do not print", "name the model with characters that print")
		}
	}
	m.tokenizer()
	m.sampling()
	m.breaker()
	m.writeEngines()
	m.settings()
	m.policies()
}

// needsTokens reports whether the routing depends on the tokens of prompts.
func (m *migration) needsTokens() bool {
	return m.uses("cache_aware") || m.bounded()
}

// tokenizer writes who turns prompts into tokens. The older router downloads a
// tokenizer; a configuration names files, or asks the engines.
func (m *migration) tokenizer() {
	path, forward := m.source("tokenizer-path"), m.source("disable-input-ids-forwarding")
	off := m.line.Has("disable-input-ids-forwarding")
	if off {
		forward.raise(Renamed)
	}
	if !m.usable("tokenizer-path") || !m.line.Has("tokenizer-path") && m.line.Value("model-id") == nil {
		return
	}
	name := m.line.Text("tokenizer-path", m.line.Text("model-id", ""))
	switch choice := m.options.Tokenizer; {
	case choice == "none":
		path.change(Tokenization, "there is no tokenizer, as was asked for; lengths are estimated from the size of the body")
		forward.change(Tokenization, "nothing is forwarded without a tokenizer")
	case choice != "" && choice != "engine":
		path.change(Tokenization, "the tokenizer is read from %s, as was asked for", choice)
		m.tokenizerFile(choice, path, forward, off)
	case choice == "" && isFile(name):
		if !strings.HasPrefix(name, "/") {
			path.change(Tokenization, "the path is relative to the configuration file, and not to the working directory")
		}
		m.tokenizerFile(name, path, forward, off)
	case m.needsTokens():
		m.put(m.at+"/tokenizer/engine", &node{}, path)
		path.change(Tokenization, "tokenizers are not downloaded, so the engines are asked for the tokens of a prompt; download %q and say --tokenizer PATH to tokenize in the router", name)
		if off {
			forward.note("ids of the engines are not forwarded in any case")
		} else {
			forward.change(Tokenization, "the engines' own ids are not sent back to them, since they compute them anyway")
		}
	default:
		path.change(Tokenization, "tokenizers are not downloaded, and the routing needs no tokens; download %q and say --tokenizer PATH to forward token ids", name)
		if off {
			forward.note("nothing is forwarded without a tokenizer")
		} else {
			forward.change(Tokenization, "without a tokenizer no ids are forwarded, and the engines compute them")
		}
	}
}

// tokenizerFile writes a tokenizer of files. When neither routing nor engines
// use its tokens, there is none.
func (m *migration) tokenizerFile(name string, path, forward *Line, off bool) {
	if off && !m.needsTokens() {
		path.raise(Carried)
		path.note("no tokenizer is written, because ids are not forwarded and the routing needs no tokens")
		return
	}
	if !plan.Printable(name) || name == "" {
		path.find(diag.LegacyNoEquivalent, "the path of the tokenizer has characters that do not print, or none", "name a folder with a tokenizer.json")
		return
	}
	m.put(m.at+"/tokenizer/path", text(name), path)
	if off {
		m.put(m.at+"/tokenizer/forward_input_ids", boolean(false), forward)
	} else {
		forward.note(sameDefault)
	}
}

// isFile reports whether the name of a tokenizer is a path. Anything else may be
// the name of a repository.
func isFile(name string) bool {
	return strings.HasPrefix(name, "/") || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || strings.HasSuffix(name, "tokenizer.json")
}

// sampling writes what requests may choose.
func (m *migration) sampling() {
	at := m.at + "/sampling"
	params, mode := m.source("override-sampling-params"), m.source("sampling-param-conflict")
	if !m.line.Has("override-sampling-params") {
		params.note("requests keep their parameters")
		mode.note("nothing depends on it")
		return
	}
	for _, p := range m.line.Sampling() {
		n := &node{}
		if p.Value != nil {
			n = real(*p.Value)
		} else {
			n.put("min", real(*p.Min))
			n.put("max", real(*p.Max))
		}
		m.put(at+"/params/"+p.Name, n, params)
		n.comment = fmt.Sprintf("--override-sampling-params (%s)", params.Pos)
	}
	switch {
	case !m.line.Has("sampling-param-conflict"):
		mode.note(sameDefault)
	case m.usable("sampling-param-conflict"):
		m.put(at+"/conflict", text(m.line.Text("sampling-param-conflict", "")), mode)
	}
}

// breaker writes when an engine is left alone. Without arguments the engines of
// the older router had the same breaker as those of a configuration.
func (m *migration) breaker() {
	at := m.at + "/breaker"
	threshold, pause := m.source("cb-threshold"), m.source("cb-cool-down-secs")
	if !m.line.Has("cb-threshold") {
		threshold.note("an engine had the default breaker, 3 failures and 30 s, and has it still")
		pause.note(sameDefault)
		return
	}
	if v := m.line.Value("cb-threshold"); v != nil {
		m.put(at+"/threshold", number(v.Number), threshold)
	}
	switch v := m.line.Value("cb-cool-down-secs"); {
	case !m.line.Has("cb-cool-down-secs"):
		pause.note(sameDefault)
	case v == nil:
	case v.Number == 0:
		m.put(at+"/cool_down", text("1ms"), pause)
		pause.change(Timeouts, "the shortest duration is 1ms, which is written instead of 0 s")
	default:
		n, l, _ := m.seconds("cb-cool-down-secs", 30)
		m.put(at+"/cool_down", duration(n), l)
	}
}
