package tokens

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"shunt/runtime/tokens/bpe"
	"shunt/runtime/tokens/template"
)

// Files are the paths of a model's files.
type Files struct {
	// Tokenizer is the tokenizer.json. Required.
	Tokenizer string
	// Config is the tokenizer_config.json, which holds the names of special
	// tokens and mostly the chat template. Empty stands for none.
	Config string
	// Template is a chat template on its own, which goes before that of the
	// config. Empty stands for none.
	Template string
}

// maxFile bounds each file, in bytes. Real ones have up to 30 MB.
const maxFile = 128 << 20

// Find returns the files of a model: path is its folder or its tokenizer.json,
// beside which the others have their usual names.
func Find(path string) (Files, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Files{}, err
	}
	f := Files{Tokenizer: path}
	if info.IsDir() {
		f.Tokenizer = filepath.Join(path, "tokenizer.json")
	}
	dir := filepath.Dir(f.Tokenizer)
	if f.Config, err = ifThere(filepath.Join(dir, "tokenizer_config.json")); err != nil {
		return Files{}, err
	}
	f.Template, err = ifThere(filepath.Join(dir, "chat_template.jinja"))
	return f, err
}

// ifThere returns a path, or "" if there is nothing.
func ifThere(path string) (string, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, err
}

// Load reads a model's tokenizer and chat template. A tokenizer that cannot be
// used is an error. A template that is missing or refused is not: the model then
// estimates, and TemplateError tells why.
func Load(f Files, o Options) (*Model, error) {
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	text, err := readFile(f.Tokenizer)
	if err != nil {
		return nil, err
	}
	m := &Model{options: o, special: new(template.Dict), templates: make(map[string]*template.Template)}
	if m.tokenizer, err = bpe.New(text, bpe.Options{MaxBytes: o.MaxBytes, CacheWords: o.CacheWords}); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Tokenizer, err)
	}
	sources := make(map[string]string)
	if f.Config != "" {
		if err := m.readConfig(f.Config, sources); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Config, err)
		}
	}
	if f.Template != "" {
		clear(sources)
		if sources[""], err = readFile(f.Template); err != nil {
			return nil, err
		}
	}
	m.compile(sources)
	return m, nil
}

// readFile reads a file whole, unless it is too large to be what it should be.
func readFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s: %d bytes, %d at most", path, info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// readConfig reads the special tokens, and the chat templates by name: the file
// has one as a text, or several as a list of objects with name and template.
func (m *Model) readConfig(path string, sources map[string]string) error {
	text, err := readFile(path)
	if err != nil {
		return err
	}
	v, err := template.Parse(text)
	if err != nil {
		return err
	}
	config := v.Dict()
	if config == nil {
		return errors.New("no object")
	}
	m.special = specialTokens(config)
	chat, _ := config.Get("chat_template")
	if s, ok := chat.Text(); ok {
		sources[""] = s
	}
	list, _ := chat.Items()
	for _, item := range list {
		d := item.Dict()
		if d == nil {
			return errors.New("chat_template: no list of objects")
		}
		name, _ := d.Get("name")
		source, _ := d.Get("template")
		n, ok := name.Text()
		s, okSource := source.Text()
		if !ok || !okSource {
			return errors.New("chat_template: an entry without name or template")
		}
		if n == "default" {
			n = ""
		}
		sources[n] = s
	}
	return nil
}

// compile takes over the templates that can be used. One refused means that all
// are: which one counts depends on the request.
func (m *Model) compile(sources map[string]string) {
	for _, name := range []string{"", "tool_use"} {
		source, ok := sources[name]
		if !ok {
			continue
		}
		t, err := template.Compile(source)
		if err != nil {
			m.refused = err
			return
		}
		m.templates[name] = t
	}
	if m.templates[""] == nil {
		m.refused = errors.New("the model has no chat template")
	}
}
