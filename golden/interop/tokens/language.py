"""Writes what Jinja for Python answers for small templates, one for each feature.

Usage: language.py > runtime/tokens/template/testdata/language.json; needs jinja2.
The unit tests compare with that file, so that they need neither Python nor a
network. An answer is the text, or null where Jinja fails.
"""
import datetime
import json
import sys

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARS = {
    "s": "  Hello, Wörld! 👩‍👩‍👧 \n", "word": "abcabc", "n": 7, "f": 2.5, "big": 123456789012345678901234567890, "t": True, "nothing": None,
    "xs": [3, 1, 2], "words": ["b", "A", "c", "a"], "empty": [], "d": {"z": 1, "a": [1, {"k": "v\"'<>&é\u2028"}], "items": "key", "n": None},
    "people": [{"name": "Ann", "age": 30, "on": True}, {"name": "bob", "age": 25, "on": False}, {"name": "Cy", "age": 30}],
    "lines": "one\n\n two\r\nthree\n", "floats": [1.0, 1e16, 1e-5, 0.1, 123456.789, -0.0, 1e100], "quote": "it's \"so\"\n\\ \t\x07\xad\u200b é",
}

CASES = r"""
{{ s }}|{{ s|trim }}|{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip('\n ') }}|{{ 'xxaxx'.strip('x') }}
{{ s|length }} {{ xs|length }} {{ d|count }} {{ nothing_here|length }} {{ nothing|length }}
{{ n + 1 }} {{ n - 9 }} {{ n * 2 }} {{ n / 2 }} {{ n // 2 }} {{ -n // 2 }} {{ n % 3 }} {{ -n % 3 }} {{ n ** 2 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ n / 0 }}
{{ 'a' + 'b' ~ 1 ~ none ~ true ~ 2.0 }} {{ 'ab' * 3 }} {{ [1] * 2 + [3] }} {{ (1,) + (2, 3) }}
{{ 'a' + 1 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 'a' }} {{ [1] == [1] }} {{ none == missing }} {{ missing == other }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }}
{{ 1 < 'a' }}
{{ 2 in xs }} {{ 5 not in xs }} {{ 'bc' in word }} {{ 'z' in d }} {{ 1 in missing }} {{ 'a' in nothing }}
{{ not n }} {{ not missing }} {{ n and 'x' }} {{ 0 or '' or 'y' }} {{ n if t else 0 }} {{ 'x' if false }} {{ 'a' if n > 9 else 'b' if n > 8 else 'c' }}
{{ xs[0] }} {{ xs[-1] }} {{ xs[9] }} {{ word[1] }} {{ word[-1] }} {{ d['z'] }} {{ d.z }} {{ d['items'] }} {{ d.a[1].k }} {{ d.missing }} {{ d['a'][0] }}
{{ missing.x }}
{{ d.missing.x }}
{{ xs[1:] }} {{ xs[:-1] }} {{ xs[::-1] }} {{ word[1:4] }} {{ word[::2] }} {{ word[-2:] }} {{ word[5:1:-2] }} {{ xs[10:] }} {{ (1,2,3)[1:] }} {{ word[none:2] }} {{ xs[-10:10] }} {{ xs[10::-1] }}
{{ d }} {{ xs }} {{ [none, true, 1.5, 'q', "it's"] }} {{ (1,) }} {{ () }} {{ {} }} {{ quote }} {{ [quote] }}
{{ floats }} {{ 1e3 }} {{ 1_000 }} {{ big }} {{ [big] }} {{ 10 ** 3 }} {{ 3.0 * 2 }}
{{ d|tojson }}
{{ d|tojson(indent=2) }}
{{ d|tojson(indent=0) }}
{{ d|tojson(ensure_ascii=true) }} {{ s|tojson(true) }} {{ quote|tojson }} {{ quote|tojson(ensure_ascii=true) }}
{{ d|tojson(separators=(',', ':')) }} {{ d|tojson(separators=[', ', ' = '], sort_keys=true) }} {{ d|tojson(indent=4, separators=(',', ': ')) }}
{{ floats|tojson }} {{ big|tojson }} {{ true|tojson }} {{ none|tojson }} {{ []|tojson(indent=2) }} {{ {}|tojson(indent=2) }} {{ [[], [1, []]]|tojson(indent=1) }} {{ (1, 2)|tojson }}
{{ missing|tojson }}
{% for x in xs %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ loop.previtem }}/{{ loop.nextitem }}={{ x }};{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'añ👩' %}[{{ c }}]{% endfor %}{% for x in missing %}x{% else %}none{% endfor %}
{% for x in xs if x > 1 %}{{ loop.length }}{{ x }}{% else %}no{% endfor %}{% for x in xs if x > 5 %}y{% else %}no{% endfor %}
{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% set a = 1 %}{% for x in xs %}{{ a }}{% set a = x %}{{ a }}{% endfor %}{{ a }}
{% set ns = namespace(a=1, b='x') %}{% for x in xs %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.missing is defined }}
{% set x.a = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = xs %}
{% set block %}in {{ n }}{% endset %}[{{ block }}]{% set up | upper | trim %} x{{ word }} {% endset %}[{{ up }}]
{% if n > 9 %}a{% elif n > 5 %}b{% else %}c{% endif %}{% if missing %}d{% endif %}{% if d %}e{% endif %}{% if '' %}f{% elif [] %}g{% endif %}
{% macro m(a, b=2, c='x' ~ a) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c=4) }}{{ m(b=5, a=6) }}{{ m() }}
{% macro m(a) %}{% if a %}{{ a }}{{ m(a - 1) }}{% endif %}{% endmacro %}{{ m(3) }}{% set v = m(2) %}{{ v|length }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}[{{ caller() }}{{ a }}{{ caller() }}]{% endmacro %}{% call m(1) %}in{{ n }}{% endcall %}
{% macro m() %}{% for x in xs %}{{ caller(x, x * 2) }}{% endfor %}{% endmacro %}{% call(a, b) m() %}{{ a }}:{{ b }} {% endcall %}
{% macro outer() %}{{ n }}{{ late }}{% endmacro %}{% set late = 'L' %}{{ outer() }}
{% filter upper %}abc{{ n }}{% endfilter %}{% filter replace('a', 'b') | upper %}aXa{% endfilter %}
{% with a = 1, b = n %}{{ a }}{{ b }}{% set a = 5 %}{{ a }}{% endwith %}{{ a }}
{% raw %}{{ not }} {% this %}{% endraw %}|{%- raw -%}  x {{ y }}  {%- endraw -%} z
a {# comment {{ x }} #} b {#- c -#} d
{{ word.upper() }} {{ 'ABC'.lower() }} {{ 'hello wOrld-foo (bar'.title() }} {{ 'hello wOrld-foo (bar'|title }} {{ 'hELLO'|capitalize }} {{ 'élan'.capitalize() }} {{ word|upper|lower }}
{{ word.split('b') }} {{ ' a  b c '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ ' a  b c '.split(none, 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ''.split() }} {{ ''.split('x') }} {{ 'a b'.split(' ')[-1] }}
{{ 'a'.split('') }}
{{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ word.replace('b', 'X') }} {{ word.replace('b', 'X', 1) }} {{ 'ab'.replace('', '-') }} {{ word|replace('a', '') }} {{ word|replace('a', 'Q', 1) }}
{{ word.startswith('ab') }} {{ word.endswith('x') }} {{ word.startswith(('x', 'a')) }} {{ word.find('c') }} {{ word.rfind('c') }} {{ 'éa'.find('a') }} {{ word.find('q') }} {{ word.count('a') }} {{ '-'.join(words) }} {{ 'a-b'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'ab'.removeprefix('a') }} {{ 'ab'.removesuffix('b') }}
{{ '12'.isdigit() }} {{ ''.isdigit() }} {{ 'a1'.isalpha() }} {{ 'é'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' \n'.isspace() }}
{{ words|join(', ') }} {{ xs|join }} {{ people|join('/', attribute='name') }} {{ words|first }} {{ words|last }} {{ empty|first }} {{ xs|sort }} {{ xs|sort(reverse=true) }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ people|sort(attribute='age')|map(attribute='name')|list }}
{{ words|unique|list }} {{ ['a', 'A', 'b']|unique|list }} {{ xs|reverse|list }} {{ 'abc'|reverse }} {{ xs|min }} {{ xs|max }} {{ xs|sum }} {{ people|sum(attribute='age') }} {{ words|map('upper')|list }} {{ people|map(attribute='on')|list }} {{ people|map(attribute='on', default='-')|join(',') }}
{{ people|selectattr('on')|map(attribute='name')|join }} {{ people|rejectattr('on')|map(attribute='name')|join }} {{ people|selectattr('age', 'eq', 30)|list|length }} {{ people|selectattr('on', 'defined')|list|length }} {{ xs|select('odd')|list }} {{ xs|reject('equalto', 1)|list }} {{ xs|select('in', [1, 2])|list }} {{ [0, 1, '']|select|list }}
{% if empty|selectattr('x') %}generator{% endif %}{% set g = xs|map('string') %}{{ g|join }}{{ g|join }}
{{ xs|map('string')|length }}
{{ d|items|list }} {{ d|dictsort|list }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.get('z') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.items is defined }} {{ d.keys()|length }} {{ missing|items|list }} {{ {'b': 1, 'A': 2, 'c': 0}|dictsort(by='value') }} {{ {'b': 1, 'A': 2}|dictsort(reverse=true) }}
{{ missing|default('x') }} {{ ''|default('x') }} {{ ''|default('x', true) }} {{ none|default('x') }} {{ none|d('x', boolean=true) }} {{ missing|default }} {{ d.q|default('y') }}
{{ '12'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ 2.9|int }} {{ '3.7'|int }} {{ '1.5'|float }} {{ 'x'|float }} {{ true|int }} {{ -3|abs }} {{ 2.567|round(2) }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.1|round(method='ceil') }} {{ 5|string }} {{ 3|float }} {{ none|string }}
{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent(2, blank=true) }}|{{ lines|indent('> ', first=true, blank=true) }}|{{ 'x'|indent }}
{{ n is defined }} {{ missing is defined }} {{ missing is undefined }} {{ none is none }} {{ n is none }} {{ n is not none }} {{ s is string }} {{ n is number }} {{ true is number }} {{ n is integer }} {{ true is integer }} {{ f is float }} {{ true is boolean }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ d is mapping }} {{ xs is sequence }} {{ s is sequence }} {{ d is sequence }} {{ xs is iterable }} {{ n is iterable }} {{ missing is iterable }} {{ missing is sequence }} {{ range is callable }}
{{ 3 is odd }} {{ 3 is even }} {{ 9 is divisibleby(3) }} {{ 9 is divisibleby 4 }} {{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 2 is gt 1 }} {{ 2 is in [1, 2] }} {{ none is sameas none }} {{ 'abc' is lower }} {{ 'aB' is upper }} {{ '' is lower }} {{ 'x' is string and n is number }} {{ not n is string }} {{ n is not string and true }}
{{ range(3)|list }} {{ range(1, 7, 2)|list }} {{ range(3, 0, -1)|list }} {{ range(5)|length }} {{ dict(a=1, b=2) }} {% for i in range(2) %}{{ i }}{% endfor %}
{{ raise_exception('no ' ~ n) }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %b %B %a %A %j %y %p %I %% %d') }}
{{ "a\tb\n\\ \x41 \u00e9 \U0001F600 \' \" \q" }} {{ 'it' "'s" ' one' }}
{{ -n|abs }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 10 - 2 - 3 }} {{ 'a' ~ 1 + 2 }} {{ not 1 == 2 }} {{ 2 * 3 % 4 }} {{ +5 }} {{ - 3 }}
{{ n.x }} {{ s.foo is defined }} {{ xs.foo is defined }} {{ none.foo is defined }} {{ d.update is defined }} {{ s['upper'] is defined }} {{ d['get'] is defined }}
{{ 'a' 'b' if 1 else 2 }} {{ [1, 2,] }} {{ (1, 2)[0] }} {{ {'a': {'b': 1}}.a.b }} {{ {'a': 1}['a'] }} {{ [[1, 2], [3]][0][1] }}
{% set loop_messages = xs %}{% for m in loop_messages[::-1] %}{{ m }}{% endfor %}{% for m in (xs if t else empty) %}{{ m }}{% endfor %}
{% for a in xs %}{% for b in words %}{{ loop.index }}{{ a }}{{ b }}{% endfor %}{{ loop.index }}{% endfor %}
{% for x in xs %}{% set f %}{{ x }}{{ loop.index }}{% endset %}{{ f }}{% endfor %}{{ f }}
{% generation %}abc{{ n }}{% endgeneration %}
{{ true and true }} {{ True }} {{ False }} {{ None }} {{ none }} {{ missing }} {{ t }}
{{ xs[0:2][1] }} {{ word[0:1]|upper ~ word[1:] }} {{ words[1:]|join(',') }} {{ 'a' < 'B' }} {{ [1, 'a', none]|tojson }}
{% for k, v in [[1, 2], (3, 4)] %}{{ k + v }} {% endfor %}{% for k, v in [[1]] %}{% endfor %}
{{ xs.index(1) }} {{ xs.count(3) }} {{ word.count('bc') }} {{ xs|tojson|length }}
{{ word|trim('ac') }} {{ '  x '|trim|length }} {{ missing|trim }} {{ 5|trim }} {{ none|upper }} {{ missing ~ 'x' }}
{{ missing + 'x' }}
{{ 'x' in ['x'] and 'y' not in ['x'] }} {{ 1 if missing is defined and missing.x else 2 }} {{ (missing or {}).x }} {{ d.a | length > 1 }} {{ d.a|length - 1 }}
"""

WHITESPACE = [
    "a\n  {% if true %}\n    b\n  {% endif %}\nc\n",
    "a\n  {%+ if true %}\n  b\n  {%- endif +%}\n c",
    "a\n\n  {%- if true -%}\n\n  b \n {%- endif %}\n\nc\n\n",
    "  {# c #}\n  x {# d #}\n{#- e -#}\n  y\n",
    "a {{- 1 -}} b {{ 2 }}\nc\n  {{ 3 }}\n",
    "{% for x in [1, 2] %}\n  {{ x }}\n{% endfor %}\n",
    "\t{% set x = 1 %}\t\n{{ x }}",
    "x{% if true %} {% endif %}\n{% if true %}y{% endif %}\n  z",
    "a\r\n{% if true %}\r\nb\r{% endif %}\r\nc\r\n",
    "  {% raw %}\n  {{ x }}\n  {% endraw %}\n d",
    "{{ 'a\nb' }}\n\n", "\n{{ 1 }}\n\n", "", "\n", "a", "{{'}}'}}{% if '%}' %}x{% endif %}", "{ {{ '{' }} { %", "{{ {'a': {'b': 2}}['a']['b']}}",
    "\u00a0{% if true %}x{% endif %}\n\u3000{% if true %}y{% endif %}",
]

NOW = datetime.datetime(2026, 3, 5, 14, 7, 9)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise TemplateError(message)


def main():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    cases = []
    for source in [c for c in CASES.split("\n") if c] + WHITESPACE:
        text, error = None, ""
        try:
            # The extension for training data is not part of Jinja: its tags only mark.
            plain = source.replace("{% generation %}", "").replace("{% endgeneration %}", "")
            text = env.from_string(plain).render(**VARS)
        except Exception as err:
            error = type(err).__name__
        cases.append({"template": source, "text": text, "error": error})
    json.dump({"now": NOW.isoformat() + "Z", "vars": VARS, "cases": cases}, sys.stdout, ensure_ascii=False, indent=1)
    print()


main()
