package argv

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"shunt/compiler/diag"
)

// compose reads a docker-compose file.
func (r *reader) compose() []candidate {
	d, docs := r.documents()
	if r.findings.HasErrors() {
		return nil
	}
	if len(docs) != 1 {
		r.add(diag.NotAnInvocation, diag.Pos{File: r.name}, fmt.Sprintf("a compose file is one document, and this has %d", len(docs))).Hint = "say with --kind what the input is"
		return nil
	}
	services := field(docs[0], "services")
	if services == nil || services.Kind != yaml.MappingNode {
		r.add(diag.NotAnInvocation, d.pos(docs[0]), "the input has no services").Hint = "a compose file has services at its top"
		return nil
	}
	var out []candidate
	pairs(services, func(key, service *yaml.Node) {
		if len(out) >= maxDocuments {
			return
		}
		out = append(out, d.service(docs[0], key.Value, service)...)
	})
	return out
}

// service makes candidates of a service.
func (d *document) service(root *yaml.Node, name string, n *yaml.Node) []candidate {
	before := len(d.findings)
	env, vars, notes := d.serviceEnv(n)
	entrypoint := d.composeWords(field(n, "entrypoint"))
	words := append(entrypoint, d.composeWords(field(n, "command"))...)
	found := d.commands(words, len(entrypoint) > 0, image(str(field(n, "image"))), vars)
	own := append(diag.List{}, d.findings[before:]...)
	d.findings = d.findings[:before]
	for i := range found {
		f := &found[i]
		if len(found) > 1 {
			f.names = []string{name + ":" + f.names[0]}
		} else {
			f.names = []string{name}
		}
		f.pos = d.pos(n)
		f.env = slices.Concat(env, f.env)
		f.findings = slices.Concat(own, notes, f.findings)
		f.files = func() map[string]File { return d.composeFiles(root, n) }
	}
	return found
}

// composeWords reads a command as a list or as a text that is split at blanks
// outside of quotes. No shell reads it.
func (d *document) composeWords(n *yaml.Node) []*word {
	if n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		t := d.scalar(n)
		whole := &word{at: d.pos(n)}
		whole.addText(t, 0, len(t.value))
		return d.split(d.interpolate(whole), plainQuoting)
	}
	if n.Kind != yaml.SequenceNode {
		f := d.add(diag.WrongType, d.pos(n), "a command is an object, not a list or a text")
		f.Hint = "write a list of arguments or one text"
	}
	var out []*word
	for _, e := range elems(n) {
		out = append(out, d.interpolate(d.scalarWord(e)))
	}
	return out
}

// serviceEnv reads the environment of a service, which is a list or a mapping.
func (d *document) serviceEnv(n *yaml.Node) (env []Env, vars known, notes diag.List) {
	vars = known{values: make(map[string]*word)}
	set := func(name string, w *word, ok bool) {
		if !ok || diag.SecretName(name) {
			env = append(env, newEnv(name, "", false, w.at))
			return
		}
		vars.values[name] = w
		env = append(env, newEnv(name, string(w.buf), len(w.open) == 0, w.at))
	}
	list := field(n, "environment")
	for _, e := range elems(list) {
		w := d.interpolate(d.scalarWord(e))
		name, _, ok := strings.Cut(string(w.buf), "=")
		value := &word{at: w.at, open: w.open, notes: w.notes, some: true}
		if ok {
			value.addText(w.text(), len(name)+1, len(w.buf))
		}
		set(name, value, ok)
	}
	pairs(list, func(key, value *yaml.Node) {
		w := &word{at: d.pos(key), some: true}
		ok := value != nil && value.Kind == yaml.ScalarNode && value.ShortTag() != "!!null"
		if ok {
			w = d.interpolate(d.scalarWord(value))
		}
		set(key.Value, w, ok)
	})
	if file := field(n, "env_file"); file != nil {
		f := notes.Add(diag.New(diag.OutsideValues, d.pos(file), "", "the service gets variables from a file, which is not read"))
		f.Hint = "check whether a shell in the command uses any of them"
	}
	return env, vars, notes
}

// interpolate substitutes what Compose substitutes from the environment in which
// it runs and from .env, neither of which is known: only defaults and what the
// caller gives.
func (d *document) interpolate(w *word) *word {
	t := w.text()
	if !strings.Contains(t.value, "$") {
		return w
	}
	out := &word{at: w.at, some: w.some}
	start := 0
	for i := 0; i < len(t.value); i++ {
		if t.value[i] != '$' {
			continue
		}
		out.addText(t, start, i)
		start = i
		rest := t.value[i+1:]
		if strings.HasPrefix(rest, "$") {
			start, i = i+1, i+1
			continue
		}
		size := d.composeVariable(t, i, out)
		start += size
		i += max(size-1, 0)
	}
	out.addText(t, start, len(t.value))
	return out
}

// composeVariable substitutes the variable at a dollar and returns how much of
// the text it is.
func (d *document) composeVariable(t *text, i int, out *word) int {
	rest := t.value[i+1:]
	body, size, braces := "", 0, strings.HasPrefix(rest, "{")
	if braces {
		end := matchingBrace(rest)
		if end < 0 {
			return 0
		}
		body, size = rest[1:end], end+2
	} else {
		body = leadingName(rest)
		size = len(body) + 1
	}
	name := leadingName(body)
	if name == "" {
		return 0
	}
	operator := body[len(name):]
	value, given := d.options.Vars[name]
	if !d.grow(&word{builder: builder{buf: []byte(value)}}) {
		return size
	}
	switch colon := strings.HasPrefix(operator, ":"); {
	case given && !(colon && value == "" && strings.HasPrefix(operator, ":-")) && !strings.Contains(firstTwo(operator), "+"):
		out.addFixed(value, t.pos(i))
	case strings.HasPrefix(operator, ":-") || strings.HasPrefix(operator, "-"):
		skip := strings.IndexByte(operator, '-') + 1
		from := i + 2 + len(name) + skip
		out.addText(t, from, i+size-1)
		if strings.Contains(operator[skip:], "$") {
			out.leaveOpen(t.value[i : i+size])
		}
		f := out.notes.Add(diag.New(diag.DefaultTaken, t.pos(i), "", fmt.Sprintf("%s has its default, for nothing in this input sets $%s", hideLong(t.value[i:i+size]), name)))
		f.Hint = "check what the environment and .env give it"
	default:
		out.addText(t, i, i+size)
		if operator == "" || strings.HasPrefix(operator, ":?") || strings.HasPrefix(operator, "?") {
			out.leaveOpen(name)
		} else {
			out.leaveOpen(t.value[i : i+size])
		}
	}
	return size
}

func firstTwo(s string) string { return s[:min(len(s), 2)] }

func matchingBrace(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// leadingName returns the name of a variable at the start of a text.
func leadingName(s string) string {
	i := 0
	for i < len(s) && (s[i] == '_' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || i > 0 && s[i] >= '0' && s[i] <= '9') {
		i++
	}
	return s[:i]
}

// composeFiles returns the configs and host files of a service.
func (d *document) composeFiles(root, service *yaml.Node) map[string]File {
	out := make(map[string]File)
	configs := elems(field(service, "configs"))
	for _, c := range configs[:min(len(configs), maxFiles)] {
		source, target := str(c), "/"+str(c)
		if c = resolve(c); c != nil && c.Kind == yaml.MappingNode {
			source = str(field(c, "source"))
			if target = str(field(c, "target")); target == "" {
				target = "/" + source
			}
		}
		config := at(root, "configs", source)
		if content := field(config, "content"); content != nil && content.Kind == yaml.ScalarNode {
			out[path.Clean(target)] = d.file(content, "configs/"+source)
		} else if host := str(field(config, "file")); host != "" {
			out[path.Clean(target)] = File{Host: host}
		}
	}
	for _, v := range elems(field(service, "volumes")) {
		host, target := str(field(v, "source")), str(field(v, "target"))
		if text := str(v); text != "" {
			parts := strings.SplitN(text, ":", 3)
			if len(parts) < 2 {
				continue
			}
			host, target = parts[0], parts[1]
		}
		if strings.ContainsAny(host, "/.") && target != "" {
			out[path.Clean(target)] = File{Host: host}
		}
	}
	return out
}
