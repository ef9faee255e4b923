"""Renders templates with Jinja 2, as the library does that chat templates come from.

It reads JSON from the standard input, {"templates": [...], "cases": [...]}, and writes a list: for every template the texts of all cases, or null
where the template is refused.
"""

import copy
import datetime
import json
import sys

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    return datetime.datetime(2024, 7, 4, 15, 6, 9).strftime(format)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = strftime_now
asked = json.load(sys.stdin)
answers = []
for text in asked["templates"]:
    texts = []
    for case in asked["cases"]:
        try:
            texts.append(environment.from_string(text).render(**copy.deepcopy(case)))
        except Exception:
            texts.append(None)
    answers.append(texts)
json.dump(answers, sys.stdout)
