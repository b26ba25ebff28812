package check

import (
	"fmt"
	"strconv"

	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleUniqueModels refuses a model id that is used twice.
func ruleUniqueModels(r *rules) {
	seen := r.unique(diag.DuplicateModel)
	for _, m := range r.models {
		seen.see(m.ID, m.at+"/id", "model id %q is used twice")
	}
}

// ruleUniqueBuckets refuses a bucket id that a model uses twice.
func ruleUniqueBuckets(r *rules) {
	for _, m := range r.models {
		seen := r.unique(diag.DuplicateBucket)
		for i := range m.buckets() {
			seen.see(m.buckets()[i].ID, m.bucketAt(i)+"/id", "bucket id %q is used twice in the model")
		}
	}
}

// ruleUniqueEngines refuses an engine id that a model uses twice.
func ruleUniqueEngines(r *rules) {
	for _, m := range r.models {
		seen := r.unique(diag.DuplicateEngine)
		for i := range m.engines {
			seen.see(m.engines[i].ID, m.engineAt(i)+"/id", "engine id %q is used twice in the model")
		}
	}
}

// ruleEngineURLs refuses URLs that are not the base of an engine, and one engine
// under two ids, in one model or in two.
func ruleEngineURLs(r *rules) {
	seen := r.unique(diag.DuplicateURL)
	for _, m := range r.models {
		for i := range m.engines {
			path, raw := m.engineAt(i)+"/url", m.engines[i].URL
			if raw == "" || !r.intact(path) {
				continue
			}
			normal, err := plan.NormalizeURL(raw)
			if err != nil {
				// The URL is not quoted: it may hold a password.
				r.add(diag.BadURL, path, fmt.Sprintf("the URL of engine %q %v", m.engines[i].ID, err)).Hint = "write it like http://10.0.0.1:30000"
				continue
			}
			f := seen.see(normal, path, "the URL %q is used by two engines")
			if f == nil {
				continue
			}
			f.Hint = "correct the URL, or remove one of the engines; one engine belongs to one model"
			if normal != raw {
				f.Message = fmt.Sprintf("the URL %q, which is %q, is used by two engines", raw, normal)
			}
		}
	}
}

// ruleRepeatedLabels refuses a label name that match_labels lists twice.
func ruleRepeatedLabels(r *rules) {
	for _, m := range r.models {
		for i := range m.buckets() {
			pd := m.buckets()[i].Groups.PD
			if pd == nil {
				continue
			}
			seen := r.unique(diag.RepeatedEntry)
			for j, name := range pd.MatchLabels {
				seen.see(name, m.bucketAt(i)+"/groups/pd/match_labels/"+strconv.Itoa(j), "label name %q is listed twice")
			}
		}
	}
}

// unique reports values that it sees a second time.
type unique struct {
	rules *rules
	code  diag.Code
	first map[string]string // path by value
}

func (r *rules) unique(code diag.Code) unique {
	return unique{rules: r, code: code, first: make(map[string]string)}
}

// see reports a value that was seen before, and returns the finding. The format
// takes the value. An empty value is a mistake of shape and not looked at.
func (u unique) see(value, path, format string) *diag.Finding {
	if value == "" {
		return nil
	}
	first, again := u.first[value]
	if !again {
		u.first[value] = path
		return nil
	}
	f := u.rules.add(u.code, path, fmt.Sprintf(format, value))
	u.rules.also(f, first, "first used here")
	return f
}
