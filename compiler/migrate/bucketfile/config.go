package bucketfile

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// Config is a configuration file of the first versions. Sections that are absent
// have nil values.
type Config struct {
	Name string
	Host *Value[string]
	Port *Value[uint64]
	// LogLevel and LogFormat are of the section observability.
	LogLevel, LogFormat *Value[string]
	Models              []ConfigModel
	Discovery           Discovery
	// RequestTimeoutSecs is of the section proxy, StaleRequestTimeoutSecs of
	// active_load.
	RequestTimeoutSecs      *Value[uint64]
	StaleRequestTimeoutSecs *Value[uint64]
	Fields                  []Field
}

// ConfigModel is a model of a Config.
type ConfigModel struct {
	Origin        Origin
	ID            *Value[string]
	TokenizerPath *Value[string]
	Policy        *Value[string]
	// Breaker and CacheAware are nil when absent.
	Breaker    *Breaker
	CacheAware *CacheAware
}

// Breaker is the section circuit_breaker.
type Breaker struct{ Threshold, CoolDownSecs *Value[uint64] }

// CacheAware is the section cache_aware, whose thresholds have no successors.
type CacheAware struct {
	CacheThreshold      *Value[float64]
	BalanceAbsThreshold *Value[uint64]
	BalanceRelThreshold *Value[float64]
}

// Discovery is where engines come from: a file, or Kubernetes.
type Discovery struct {
	Backend                         *Value[string]
	Path                            *Value[string]
	PollIntervalMs                  *Value[uint64]
	Namespace                       *Value[string]
	LabelSelector                   *Value[string]
	PrefillSelector, DecodeSelector *Value[string]
}

// Worker is an engine of the file of static discovery.
type Worker struct {
	Engine
	ModelIDs *Value[[]string]
}

// ReadConfig reads a configuration file of the first versions: TOML if its name
// ends so, else YAML or JSON.
func ReadConfig(ctx context.Context, name string, data []byte) (Config, diag.List) {
	c := Config{Name: name}
	d, findings := parse(ctx, name, data, extensionOf(name, ".yaml"))
	if d == nil {
		return c, findings
	}
	c.Fields = d.fields
	o := d.object(d.tree.Root(), "", "server", "observability", "models", "discovery", "proxy", "active_load")
	o.need("server", "models", "discovery")
	s := d.object(o.field("server"), "/server", "host", "port")
	s.need("host", "port")
	c.Host, c.Port = s.text("host"), s.whole("port", math.MaxUint16)
	l := d.object(o.field("observability"), "/observability", "log_level", "log_format")
	c.LogLevel, c.LogFormat = l.text("log_level"), l.word("log_format", "text", "json")
	o.list("models", func(n *source.Node, pointer string) { c.Models = append(c.Models, d.model(n, pointer)) })
	d.models(o, c.Models)
	d.discovery(&c.Discovery, o.field("discovery"))
	c.RequestTimeoutSecs = d.object(o.field("proxy"), "/proxy", "request_timeout_secs").u64("request_timeout_secs")
	c.StaleRequestTimeoutSecs = d.object(o.field("active_load"), "/active_load", "stale_request_timeout_secs").u64("stale_request_timeout_secs")
	d.out.Sort()
	return c, d.out
}

// extensionOf is the syntax of a file by its name.
func extensionOf(name, other string) string {
	switch extension := strings.ToLower(filepath.Ext(name)); extension {
	case ".toml", ".json", ".yaml", ".yml":
		return extension
	}
	return other
}

func (d *decoder) model(n *source.Node, pointer string) ConfigModel {
	o := d.object(n, pointer, "id", "tokenizer_path", "policy", "circuit_breaker", "cache_aware")
	o.need("id", "tokenizer_path")
	m := ConfigModel{
		Origin: d.origin(n, pointer), ID: o.text("id"), TokenizerPath: o.text("tokenizer_path"),
		Policy: o.word("policy", "round_robin", "random", "power_of_two", "cache_aware_zmq"),
	}
	if n := o.field("circuit_breaker"); n != nil {
		b := d.object(n, o.at("circuit_breaker"), "threshold", "cool_down_secs")
		m.Breaker = &Breaker{b.whole("threshold", math.MaxUint32), b.u64("cool_down_secs")}
		b.positive(m.Breaker.Threshold, "threshold")
	}
	if n := o.field("cache_aware"); n != nil {
		a := d.object(n, o.at("cache_aware"), "cache_threshold", "balance_abs_threshold", "balance_rel_threshold")
		m.CacheAware = &CacheAware{a.number("cache_threshold"), a.u64("balance_abs_threshold"), a.number("balance_rel_threshold")}
	}
	return m
}

// models checks the models against each other.
func (d *decoder) models(o object, models []ConfigModel) {
	if n := o.field("models"); n != nil && n.Kind == source.List && len(n.Elems) == 0 {
		d.add(diag.ListLength, d.tree.NodePos(n), "/models", "the file has no models", "add one")
	}
	first := make(map[string]diag.Pos)
	for _, m := range models {
		if m.ID == nil {
			continue
		}
		if at, ok := first[m.ID.Value]; ok {
			d.related(diag.BucketName, m.ID, "the model "+quote(m.ID.Value)+" is there twice", "rename one of the two", at)
			continue
		}
		first[m.ID.Value] = posOf(m.ID)
	}
}

// discovery reads the section discovery, in which the backend names the section
// that counts.
func (d *decoder) discovery(out *Discovery, n *source.Node) {
	o := d.object(n, "/discovery", "backend", "static_file", "k8s")
	if n == nil {
		return
	}
	o.need("backend")
	out.Backend = o.word("backend", "static_file", "k8s")
	f := d.object(o.field("static_file"), "/discovery/static_file", "path", "poll_interval_ms")
	out.Path, out.PollIntervalMs = f.text("path"), f.u64("poll_interval_ms")
	k := d.object(o.field("k8s"), "/discovery/k8s", "namespace", "label_selector", "prefill_selector", "decode_selector")
	out.Namespace, out.LabelSelector = k.text("namespace"), k.text("label_selector")
	out.PrefillSelector, out.DecodeSelector = k.text("prefill_selector"), k.text("decode_selector")
	if out.Backend == nil {
		return
	}
	o.need(out.Backend.Value)
	for _, name := range []string{"static_file", "k8s"} {
		if v := o.field(name); v != nil && name != out.Backend.Value {
			d.add(diag.BucketDoubt, d.tree.NodePos(v), o.at(name), fmt.Sprintf("the section %s does nothing, because the backend is %s", name, out.Backend.Value), "remove the section or change the backend")
		}
	}
	if out.Backend.Value == "static_file" && f.node != nil {
		f.need("path")
	}
	if out.Backend.Value != "k8s" || k.node == nil {
		return
	}
	pd := out.PrefillSelector != nil || out.DecodeSelector != nil
	switch {
	case out.LabelSelector != nil && pd:
		d.add(diag.BucketShape, d.tree.NodePos(k.node), k.pointer, "label_selector and the selectors of the two stages exclude each other", "keep one kind")
	case out.LabelSelector == nil && !pd:
		d.add(diag.MissingField, d.tree.NodePos(k.node), k.at("label_selector"), "k8s has no selector", "add label_selector, or prefill_selector and decode_selector")
	case pd:
		k.need("prefill_selector", "decode_selector")
	}
}

// ReadWorkers reads the file of static discovery, which is TOML unless its name
// says otherwise.
func ReadWorkers(ctx context.Context, name string, data []byte) ([]Worker, []Field, diag.List) {
	d, findings := parse(ctx, name, data, extensionOf(name, ".toml"))
	if d == nil {
		return nil, nil, findings
	}
	var out []Worker
	o := d.object(d.tree.Root(), "", "workers")
	o.need("workers")
	ids, urls := make(map[string]diag.Pos), make(map[string]diag.Pos)
	o.list("workers", func(n *source.Node, pointer string) {
		w := d.object(n, pointer, "id", "url", "mode", "model_ids", "bootstrap_port")
		w.need("id", "url", "mode")
		v := Worker{Engine: Engine{
			Origin: d.origin(n, pointer), ID: w.text("id"), URL: w.text("url"), Role: w.word("mode", "plain", "prefill", "decode"),
			BootstrapPort: w.whole("bootstrap_port", math.MaxUint16),
		}, ModelIDs: w.texts("model_ids")}
		w.unique(v.ID, ids)
		w.unique(v.URL, urls)
		w.http(v.URL, "url")
		out = append(out, v)
	})
	d.out.Sort()
	return out, d.fields, d.out
}

// unique reports a text that an earlier engine has.
func (o object) unique(v *Value[string], seen map[string]diag.Pos) {
	if v == nil {
		return
	}
	if at, ok := seen[v.Value]; ok {
		o.related(diag.BucketEngines, v, quote(v.Value)+" is there twice", "remove one of the two", at)
		return
	}
	seen[v.Value] = posOf(v)
}

// http reports what is no URL of an engine.
func (o object) http(v *Value[string], name string) {
	if v == nil {
		return
	}
	u, err := url.Parse(v.Value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		o.add(diag.BadSpelling, posOf(v), o.at(name), quote(v.Value)+" is no http or https URL with a host", "write it like http://10.0.0.1:30000")
	}
}
