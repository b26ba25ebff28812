package template_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"shunt/runtime/tokens/template"
)

func TestRefusals(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		_, err := template.Compile(source)
		e, ok := errors.AsType[*template.SyntaxError](err)
		if !ok || e.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", source, err, want)
		}
	}
	f("a\n{% include 'x' %}", `template:2:4: tag "include" is not supported`)
	f("{% extends 'x' %}", `template:1:4: tag "extends" is not supported`)
	f("{% do x %}", `template:1:4: tag "do" is not supported`)
	f("{{ x | xmlattr }}", `template:1:8: filter "xmlattr" is not supported`)
	f("{{ x is filter }}", `template:1:9: test "filter" is not supported`)
	f("{{ x.append(1) }}", `template:1:6: method "append" is not supported`)
	f("{{ cycler(1) }}", `template:1:4: function "cycler" is not supported`)
	f("{{ x | map('nope') }}", `template:1:8: filter "nope" is not supported`)
	f("{{ x | select(y) }}", `template:1:8: "select" by a name that is not written out is not supported`)
	f("{{ f(*x) }}", `template:1:6: unpacking of arguments is not supported`)
	f("{% macro m() %}{{ varargs }}{% endmacro %}", `template:1:19: "varargs" is not supported`)
	f("{% for x in y recursive %}{% endfor %}", `template:1:15: recursive loops are not supported`)
	f("{% for x in y %}", `template:1:17: want else or endfor before the end`)
	f("{% if x %}{% endfor %}", `template:1:14: tag "endfor" is not supported`)
	f("{% break %}", `template:1:4: break outside of a loop`)
	f("{{ 'a }}", `template:1:4: string without an end`)
	f("{{ a b }}", `template:1:6: want "}}", found "b"`)
	f("{{ a", `template:1:1: tag without an end`)
	f("{# a", `template:1:1: comment without an end`)
	f("{% raw %}", `template:1:1: raw block without an end`)
	f("{{ a ? b }}", `template:1:6: unexpected character '?'`)
	f("{{ '\\N{DASH}' }}", `template:1:5: escape \N is not supported`)
	f("{{ 99999999999999999999 }}", `template:1:4: number 99999999999999999999 is not supported`)
	f("{% set loop = 1 %}", `template:1:8: "loop" cannot be assigned to`)
	f("{{ "+strings.Repeat("(", 300)+"1"+strings.Repeat(")", 300)+" }}", "template:1:103: nested deeper than 200")
	f(strings.Repeat("{% if a %}", 300), "template:1:1987: nested deeper than 200")
	f(strings.Repeat("a", template.MaxSource+1), "template:1:1: template of 262145 bytes, 262144 at most")
}

func TestLimits(t *testing.T) {
	f := func(source string, want template.Kind, o template.Options) {
		t.Helper()
		_, err := render(t, source, new(template.Dict), o)
		e, ok := errors.AsType[*template.RenderError](err)
		if !ok || e.Kind != want {
			t.Errorf("%s\n got %v\nwant kind %d", source, err, want)
		}
	}
	f("{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}{% endfor %}{% endfor %}{% endfor %}", template.TooMuch, template.Options{})
	f("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", template.TooMuch, template.Options{})
	f("{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", template.TooMuch, template.Options{})
	f("{{ 'ab' * 9000000000000000000 }}", template.TooMuch, template.Options{})
	f("{{ ('ab' * 100000).replace('a', 'b' * 100000) }}", template.TooMuch, template.Options{})
	f("{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", template.TooMuch, template.Options{})
	f("{{ 'abc' }}", template.TooMuch, template.Options{MaxOutput: 2})
	f("{% for i in range(99) %}{{ i }}{% endfor %}", template.TooMuch, template.Options{MaxSteps: 100})
	f("{{ raise_exception('no') }}", template.Raised, template.Options{})
	f("{{ x.y }}", template.Failed, template.Options{})
	f("{{ 9223372036854775807 + 1 }}", template.Unsupported, template.Options{})
	f("{{ 'straße'.upper() }}", template.Unsupported, template.Options{})
	f("{{ strftime_now('%Y') }}", template.Unsupported, template.Options{})
	f("{{ range(9)|map('string') }}", template.Unsupported, template.Options{})
}

func TestLineOfFailure(t *testing.T) {
	_, err := render(t, "a\n{% if true %}\n{{ x.y }}{% endif %}", new(template.Dict), template.Options{})
	if want := "template line 3: 'x' is undefined"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compiled, err := template.Compile("{% for i in range(100000) %}{{ i }}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compiled.Render(ctx, new(template.Dict), template.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentRendering(t *testing.T) {
	compiled, err := template.Compile("{% macro m(x) %}{{ x }}{% endmacro %}{% set ns = namespace(n=0) %}{% for x in xs %}{% set ns.n = ns.n + x %}{{ m(x) }}{% endfor %}={{ ns.n }}")
	if err != nil {
		t.Fatal(err)
	}
	vars, err := template.Parse(`{"xs": [1, 2, 3]}`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				got, err := compiled.Render(t.Context(), vars.Dict(), template.Options{})
				if err != nil || got != "123=6" {
					t.Errorf("got %q, %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// FuzzCompile looks for sources and variables that make the interpreter panic or
// run away.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"{% for m in messages[::-1] if m.role %}{{ loop.index ~ m.content|trim }}{% else %}x{% endfor %}",
		"{%- set ns = namespace(a=[1]) -%}{% set ns.a = ns.a + [2] %}{{ ns.a|tojson(indent=2) }}",
		"{% macro m(a, b=1) %}{{ a.split(',')[-1] }}{% endmacro %}{% call m('x') %}{% endcall %}",
		"{% raw %}{{{% endraw %}{# #}{{ {'a': (1, 2.5)}['a'][0] ** 3 // 2 % 2 }}",
		"{% set x %}{% filter upper %}a{% endfilter %}{% endset %}{{ x is not none and 1 < 2 <= 3 }}",
		"{{ messages|map(attribute='role')|select('in', ['a'])|join(', ') }}{{ -1 if x else +2 }}",
	} {
		f.Add(s)
	}
	vars, err := template.Parse(`{"messages": [{"role": "user", "content": " é x,y "}, {"role": "tool", "content": null}], "n": 3, "d": {"a": [1.5, {"b": true}]}}`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source string) {
		compiled, err := template.Compile(source)
		if err != nil {
			return
		}
		_, _ = compiled.Render(t.Context(), vars.Dict(), template.Options{MaxSteps: 20_000, MaxOutput: 1 << 16, Now: time.Unix(0, 0)})
	})
}
