package argv

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"shunt/compiler/diag"
)

// manifests are the objects of a stream.
type manifests struct {
	*document
	// configs are the ConfigMaps by namespace/name.
	configs map[string]*yaml.Node
	found   []candidate
	visits  int
}

// object is where a container stands.
type object struct {
	kind, name, namespace string
	// spec is the mapping that has the containers, which also has the volumes.
	spec *yaml.Node
}

// kubernetes reads a stream of manifests.
func (r *reader) kubernetes() []candidate {
	d, docs := r.documents()
	m := &manifests{document: d, configs: make(map[string]*yaml.Node)}
	if r.findings.HasErrors() {
		return nil
	}
	objects := m.objects(docs)
	for _, o := range objects {
		if str(field(o, "kind")) == "ConfigMap" {
			m.configs[str(at(o, "metadata", "namespace"))+"/"+str(at(o, "metadata", "name"))] = o
		}
	}
	known := false
	for _, o := range objects {
		kind := str(field(o, "kind"))
		known = known || kind != ""
		if kind != "ConfigMap" && kind != "Secret" {
			m.search(o, object{kind: kind, name: str(at(o, "metadata", "name")), namespace: str(at(o, "metadata", "namespace"))}, 0)
		}
	}
	if len(m.found) == 0 {
		m.nothing(docs, known)
	}
	return m.found
}

// config returns the ConfigMap that a pod of a namespace means. Manifests mostly
// name no namespace and get one when they are applied.
func (m *manifests) config(namespace, name string) *yaml.Node {
	if c := m.configs[namespace+"/"+name]; c != nil {
		return c
	}
	return m.configs["/"+name]
}

// nothing explains an input without containers.
func (m *manifests) nothing(docs []*yaml.Node, known bool) {
	var first *yaml.Node
	if len(docs) > 0 {
		first = docs[0]
	}
	what, hint := "the input has no containers", "give the Deployment, StatefulSet or Pod that runs the router"
	if !known {
		what, hint = "the input is no Kubernetes manifest, for it has no kind", "say with --kind what it is"
		if field(first, "models") != nil || field(first, "discovery") != nil {
			what, hint = "the input is a configuration file of an older router and not a manifest", "name it as the configuration file and not as the invocation"
		}
		if field(first, "buckets") != nil {
			what, hint = "the input is a bucket file and not a manifest", "name it with --bucket-config next to the invocation"
		}
	}
	m.add(diag.NotAnInvocation, m.pos(first), what).Hint = hint
}

// objects lists the objects of the stream, with those in lists.
func (m *manifests) objects(docs []*yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for _, d := range docs {
		d = resolve(d)
		items := field(d, "items")
		if items == nil || !strings.HasSuffix(str(field(d, "kind")), "List") {
			out = append(out, d)
			continue
		}
		for _, e := range elems(items) {
			if len(out) >= maxDocuments {
				return out
			}
			out = append(out, resolve(e))
		}
	}
	return out
}

// search looks for containers anywhere in an object, so that it finds them in
// every kind that has pods in it.
func (m *manifests) search(n *yaml.Node, o object, depth int) {
	n = resolve(n)
	if m.visits++; n == nil || depth > maxDepth || m.visits > maxVisits {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for _, list := range [...]string{"containers", "initContainers"} {
			for _, c := range elems(field(n, list)) {
				o.spec = n
				m.container(resolve(c), o, list)
			}
		}
		pairs(n, func(key, value *yaml.Node) {
			if key.Value != "containers" && key.Value != "initContainers" && key.Value != "metadata" {
				m.search(value, o, depth+1)
			}
		})
	case yaml.SequenceNode:
		for _, e := range n.Content {
			m.search(e, o, depth+1)
		}
	}
}

// container makes a candidate of a container.
func (m *manifests) container(c *yaml.Node, o object, list string) {
	if m.visits++; c == nil || c.Kind != yaml.MappingNode || m.visits > maxVisits {
		return
	}
	before := len(m.findings)
	env, vars, notes := m.environment(c, o.namespace)
	var words []*word
	command := m.list(c, "command")
	for _, n := range slices.Concat(command, m.list(c, "args")) {
		words = append(words, m.references(m.argument(n), vars))
	}
	name := str(field(c, "name"))
	found := m.mountedScript(words, c, o, vars)
	if found == nil {
		found = m.commands(words, len(command) > 0, image(str(field(c, "image"))), vars)
	}
	// What is wrong in other containers is nobody's concern.
	own := append(diag.List{}, m.findings[before:]...)
	m.findings = m.findings[:before]
	for i := range found {
		f := &found[i]
		if len(f.args) > 0 && slices.Contains(words, f.args[0]) {
			unexpanded(f.args, &f.findings)
		}
		inner := ""
		if len(found) > 1 {
			inner = ":" + f.names[0]
		}
		name += inner
		f.names = []string{name, o.name + "/" + name, strings.ToLower(o.kind) + "/" + o.name + "/" + name}
		if o.namespace != "" {
			f.names = append(f.names, o.namespace+"/"+f.names[2])
		}
		name = strings.TrimSuffix(name, inner)
		if f.pos = m.pos(c); list == "initContainers" && !f.sure {
			f.likely = false
		}
		f.findings = slices.Concat(own, notes, f.findings)
		f.env = slices.Concat(env, f.env)
		f.grace, _ = strconv.ParseUint(str(field(o.spec, "terminationGracePeriodSeconds")), 10, 31) // 0 then
		f.files = func() map[string]File { return m.mounted(c, o) }
		m.found = append(m.found, *f)
	}
}

// list returns the elements of command or args, which must be a list.
func (m *manifests) list(c *yaml.Node, name string) []*yaml.Node {
	n := field(c, name)
	if n != nil && n.Kind != yaml.SequenceNode && n.ShortTag() != "!!null" {
		f := m.add(diag.WrongType, m.pos(n), name+" is no list, and Kubernetes takes only a list of strings")
		f.Hint = "write each argument as an element of its own"
	}
	return elems(n)
}

// mountedScript reads the script that a container runs from a mounted ConfigMap
// of the stream.
func (m *manifests) mountedScript(words []*word, c *yaml.Node, o object, vars known) []candidate {
	at := 0
	if len(words) > 0 && slices.Contains(shells(), base(string(words[0].buf))) {
		for at = 1; at < len(words) && strings.HasPrefix(string(words[at].buf), "-"); at++ {
			if strings.Contains(string(words[at].buf), "c") {
				return nil
			}
		}
	}
	if at >= len(words) || !strings.Contains(string(words[at].buf), "/") {
		return nil
	}
	f, ok := m.mounted(c, o)[path.Clean(string(words[at].buf))]
	if !ok || f.text == nil {
		return nil
	}
	return m.shell(f.text, words[at:], vars.exported()).script()
}

// argument makes a word of an element of command or args. Kubernetes takes
// nothing but strings there.
func (m *manifests) argument(n *yaml.Node) *word {
	w := m.scalarWord(n)
	if v := resolve(n); v != nil && v.Kind == yaml.ScalarNode && v.ShortTag() != "!!str" {
		f := m.add(diag.WrongType, w.at, fmt.Sprintf("the argument %s is no string, and Kubernetes takes only strings", hideLong(v.Value)))
		f.Hint = "put it into quotes"
	}
	return w
}

// shellVariable is what a shell takes for a variable.
var shellVariable = regexp.MustCompile(`\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)`)

// unexpanded warns of variables that Kubernetes passes on as they are.
func unexpanded(words []*word, list *diag.List) {
	for _, w := range words {
		if v := shellVariable.FindString(string(w.buf)); v != "" {
			f := list.Add(diag.New(diag.ShellTrap, w.at, "", fmt.Sprintf("the router gets %s as it is written, for Kubernetes knows only $(NAME) and no shell reads it", v)))
			f.Hint = "write $(NAME), or render the manifest first if something else replaces it"
		}
	}
}

// commands makes candidates of the words of a container. Without a command the
// image has the program, and all words are its arguments.
func (r *reader) commands(words []*word, command bool, image string, vars known) []candidate {
	if len(words) > 0 {
		if script, params, ok := shellScript(words); ok {
			return r.shell(script.text(), params, vars.exported()).script()
		}
		if c, ok := r.command(words); ok && (c.sure || command) {
			return []candidate{c}
		}
	}
	c := candidate{names: []string{"command"}, args: words, sure: routerName.MatchString(image)}
	for _, w := range words {
		c.likely = c.likely || isLikely(w)
	}
	if command && len(words) > 0 {
		c.program, c.args, c.sure = string(words[0].buf), words[1:], false
	}
	return []candidate{c}
}

// exported gives a script the variables of its container.
func (k known) exported() map[string]variable {
	out := make(map[string]variable)
	for name, w := range k.values {
		out[name] = variable{word: *w}
	}
	return out
}

// environment reads the variables of a container.
func (m *manifests) environment(c *yaml.Node, namespace string) (env []Env, vars known, notes diag.List) {
	vars = known{values: make(map[string]*word), hidden: make(map[string]bool)}
	for name, value := range m.options.Vars {
		w := &word{}
		w.addFixed(value, diag.Pos{})
		vars.values[name] = w
	}
	for _, from := range elems(field(c, "envFrom")) {
		notes = append(notes, m.envFrom(from, namespace, vars)...)
	}
	for _, e := range elems(field(c, "env")) {
		name := str(field(e, "name"))
		value := field(e, "value")
		if value == nil {
			value = m.fromConfigMap(field(e, "valueFrom"), namespace)
		}
		if name == "" {
			continue
		}
		// The namespace of the pod is in its manifest, unless somebody else says it.
		if namespace != "" && str(at(e, "valueFrom", "fieldRef", "fieldPath")) == "metadata.namespace" {
			w := &word{at: m.pos(e), some: true}
			w.addFixed(namespace, w.at)
			vars.values[name] = w
			env = append(env, newEnv(name, namespace, true, w.at))
			continue
		}
		if value == nil && field(e, "valueFrom") != nil || diag.SecretName(name) {
			if _, given := m.options.Vars[name]; !given {
				delete(vars.values, name)
			}
			env = append(env, newEnv(name, "", false, m.pos(e)))
			continue
		}
		w := &word{at: m.pos(e), some: true}
		if value != nil && value.Kind == yaml.ScalarNode {
			t := m.scalar(value)
			w.at = m.pos(value)
			w.addText(t, 0, len(t.value))
			w = m.references(w, vars)
		}
		vars.values[name] = w
		env = append(env, newEnv(name, string(w.buf), len(w.open) == 0, m.pos(e)))
	}
	return env, vars, notes
}

// envFrom reads all variables of a ConfigMap of the stream, and notes those that
// are not in it.
func (m *manifests) envFrom(from *yaml.Node, namespace string, vars known) (notes diag.List) {
	prefix := str(field(from, "prefix"))
	name := str(at(from, "configMapRef", "name"))
	if config := m.config(namespace, name); name != "" && config != nil {
		pairs(field(config, "data"), func(key, value *yaml.Node) {
			if value != nil && value.Kind == yaml.ScalarNode && !diag.SecretName(key.Value) {
				w := &word{at: m.pos(value), some: true}
				t := m.scalar(value)
				w.addText(t, 0, len(t.value))
				vars.values[prefix+key.Value] = w
			}
		})
		return nil
	}
	what := fmt.Sprintf("the ConfigMap %q", name)
	if name == "" {
		what = fmt.Sprintf("the Secret %q", str(at(from, "secretRef", "name")))
	}
	f := notes.Add(diag.New(diag.OutsideValues, m.pos(from), "", "the container gets variables from "+what+", which is not read"))
	f.Hint = "check whether the arguments use any of them"
	return notes
}

// fromConfigMap returns the value of a variable that a ConfigMap of the stream
// has.
func (m *manifests) fromConfigMap(from *yaml.Node, namespace string) *yaml.Node {
	config := m.config(namespace, str(at(from, "configMapKeyRef", "name")))
	return at(config, "data", str(at(from, "configMapKeyRef", "key")))
}

// maxFiles bounds the mounts and the files of a container.
const maxFiles = 1000

// mounted returns the files that volumes put into a container.
func (m *manifests) mounted(c *yaml.Node, o object) map[string]File {
	volumes := make(map[string]*yaml.Node)
	for _, volume := range elems(field(o.spec, "volumes")) {
		volumes[str(field(volume, "name"))] = volume
	}
	out := make(map[string]File)
	mounts := elems(field(c, "volumeMounts"))
	for _, mount := range mounts[:min(len(mounts), maxFiles)] {
		if volume := volumes[str(field(mount, "name"))]; volume != nil && len(out) < maxFiles {
			m.volume(volume, mount, o.namespace, out)
		}
	}
	return out
}

// volume adds the files of one mounted volume.
func (m *manifests) volume(volume, mount *yaml.Node, namespace string, out map[string]File) {
	target, sub := str(field(mount, "mountPath")), str(field(mount, "subPath"))
	if host := str(at(volume, "hostPath", "path")); host != "" {
		out[target] = File{Host: path.Join(host, sub)}
		return
	}
	sources := []*yaml.Node{volume}
	sources = append(sources, elems(at(volume, "projected", "sources"))...)
	for _, s := range sources {
		ref := field(s, "configMap")
		name := str(field(ref, "name"))
		config := m.config(namespace, name)
		if config == nil || name == "" {
			continue
		}
		paths := make(map[string]string)
		for _, item := range elems(field(ref, "items")) {
			paths[str(field(item, "key"))] = str(field(item, "path"))
		}
		pairs(field(config, "data"), func(key, value *yaml.Node) {
			file := key.Value
			if p, ok := paths[file]; ok {
				file = p
			} else if len(paths) > 0 {
				return
			}
			if value == nil || value.Kind != yaml.ScalarNode || sub != "" && sub != file || len(out) >= maxFiles {
				return
			}
			at := path.Join(target, file)
			if sub != "" {
				at = path.Clean(target)
			}
			out[at] = m.file(value, "configmap/"+name+"/"+key.Value)
		})
	}
}

// file is a file whose content is a scalar of the input.
func (m *document) file(value *yaml.Node, name string) File {
	t := m.scalar(value)
	f := File{Name: m.name, whole: m.data, text: t}
	if len(t.spans) == 1 && t.spans[0].fixed {
		f.Name = m.name + "#" + name
	}
	return f
}
