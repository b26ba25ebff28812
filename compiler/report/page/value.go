package page

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"shunt/compiler/report"
	"shunt/schema/plan"
)

// value words a value of a plan. The name is its pointer below what it belongs
// to.
func (b *builder) value(name string, v report.Value) valueView {
	name = strings.NewReplacer("/", " ", "~1", "/", "~0", "~").Replace(name)
	out := valueView{
		Name: name, Value: words(name, v.Value), Origin: v.Origin,
		Written: v.Origin != "default" && v.Origin != "derived",
	}
	if i := strings.LastIndexByte(v.Origin, ':'); i >= 0 && out.Written {
		if file, ok := b.files[v.Origin[:i]]; ok {
			out.Origin = file + v.Origin[i:]
			if b.one && !b.small {
				out.Origin = "line " + v.Origin[i+1:]
			}
		}
	}
	return out
}

// shortFiles are the last parts of the paths of sources, where they tell them
// apart. The page has the whole paths once.
func shortFiles(sources []plan.Source) map[string]string {
	count := make(map[string]int)
	for _, s := range sources {
		count[path.Base(s.Path)]++
	}
	out := make(map[string]string)
	for _, s := range sources {
		if base := path.Base(s.Path); count[base] == 1 {
			out[s.Path] = base
		}
	}
	return out
}

// words writes a value of JSON for people: texts without quotes, lists with
// commas, times and sizes also in larger units.
func words(name string, raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return "off"
		}
		return text
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		if len(list) == 0 {
			return "none"
		}
		return strings.Join(list, ", ")
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return string(raw)
	}
	switch {
	case strings.HasSuffix(name, "_ms"):
		return duration(n)
	case strings.HasSuffix(name, "_bytes"):
		return size(n)
	}
	return grouped(n)
}

// duration writes milliseconds in the largest unit that holds them exactly.
func duration(ms int64) string {
	for _, u := range []struct {
		of   int64
		name string
	}{{3_600_000, "h"}, {60_000, "min"}, {1000, "s"}} {
		if ms != 0 && ms%u.of == 0 {
			return fmt.Sprintf("%s %s", grouped(ms/u.of), u.name)
		}
	}
	return grouped(ms) + " ms"
}

func size(bytes int64) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if bytes != 0 && bytes%(1<<u.shift) == 0 {
			return fmt.Sprintf("%s %s", grouped(bytes>>u.shift), u.name)
		}
	}
	return grouped(bytes) + " bytes"
}
