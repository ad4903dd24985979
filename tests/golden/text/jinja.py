#!/usr/bin/env python3
"""Writes jinja.json: what transformers' own environment makes of templates, a construct each. Usage: jinja.py (with transformers and jinja2)."""
import json, pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template

MESSAGES = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": " Hi, wörld 🙂 "},
            {"role": "assistant", "content": "Hello.", "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2.0, "c": None, "d": "x\"y"}}]}]

CASES = r"""
text and a value|a {{ 1 }} b
a line end behind a tag goes|{% if true %}\nx\n{% endif %}\ny
blanks before a tag go|a\n   {% if true %}x{% endif %}
blanks before a value stay|a\n   {{ 1 }}
plus keeps blanks|a\n   {%+ if true +%}\nx{% endif %}
minus takes line ends|a \n {%- if true -%} \n x \n {%- endif -%} \n b
minus of a value|a \n {{- 1 -}} \n b
a comment and its line end|a\n  {# c {{ x }} #}\nb
a tight comment|a {#- c -#} b
raw|{% raw %}{{ x }} {% if %}{# c #}{% endraw %}!
tight raw|a {%- raw -%} {{ x }} {%- endraw -%} b
the last line end goes|a\n\n
braces in a value|{{ {'a': {'b': 1}}.a.b }}
if|{% if 0 %}a{% elif '' %}b{% elif [] %}c{% else %}d{% endif %}
for|{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ m.role }} {% endfor %}
for with a test and else|{% for m in messages if m.role == 'x' %}y{% else %}none{% endfor %}
for over pairs|{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}
for over nested pairs|{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}
parts of a loop|{% for x in 'abc' %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.cycle('-', '+') }} {% endfor %}
loops in loops|{% for a in [1, 2] %}{% for b in [a, a] %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}
break and continue|{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
a loop has names of its own|{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 5 %}{{ x }};{% endfor %}{{ x }}
an if has none|{% if true %}{% set x = 1 %}{% endif %}{{ x }}
a namespace|{% set ns = namespace(n=0, t='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.t = ns.t ~ m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.t }}{{ ns.x is defined }}
set of several|{% set a, b = 1, [2] %}{{ a }}{{ b }}
set of a block|{% set a %}x{{ 1 }}{% endset %}{{ a * 2 }}
set of a block with a filter|{% set a | upper | trim %} x {% endset %}[{{ a }}]
filter block|{% filter upper %}a{{ 'b' }}{% endfilter %}
with|{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}
macro|{% macro m(a, b='x', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}{{ m(b=3, a=4) }}{{ m() }}
macro with more|{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}
macro sees what is set later|{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}
macro that calls itself|{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}
call|{% macro m(a) %}<{{ caller(a) }}>{% endmacro %}{% call(x) m('y') %}{{ x }}!{% endcall %}
generation|a{% generation %}b{% endgeneration %}c
print|{% print 1 + 1 %}
precedence|{{ 1 + 2 * 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ~ 3 * 2 }} {{ 2 ~ 3 ~ 4 }} {{ not 1 == 2 }} {{ 1 or 0 and 0 }} {{ (1 + 2) * 3 }}
division|{{ 7 / 2 }} {{ 8 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** -1 }}
comparisons in a chain|{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 2 >= 2 == 2 }} {{ [1, 2] < [1, 3] }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }}
in|{{ 1 in [1] }} {{ 'a' in 'ba' }} {{ 'role' in messages[0] }} {{ 2 not in (1, 3) }} {{ 1 in missing }}
and and or give values|{{ 0 or 'x' }} {{ 'a' and 'b' }} {{ '' and 1 }} {{ none or missing or 3 }}
if in a value|{{ 1 if true else 2 }} {{ 1 if false else 2 if false else 3 }} [{{ 1 if false }}]
literals|{{ [1, 2.50, 'a', true, None, (1,), (), {}] }} {{ 1_000 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 'a' 'b' "c" }} {{ {'a': 1, 2: [3]} }} {{ (1, 2) }} {{ True }} {{ 1, 2 }}
escapes|{{ 'a\\nb\\tc\\\\d\\'e\\x41\\u20ac\\101\\q' }}
quotes that Python prints|{{ ["a", "it's", 'a"b', 'a"b\\'c', '\\n\\x07é\\u2028\\u00a0'] }}
floats|{{ [1.0, 0.1, 1e15, 1e16, 0.0001, 0.00001, 123456789.125, 1e100, 2.0 ** 70, -0.0] }}
items|{{ messages[0].role }} {{ messages[0]['role'] }} {{ messages[-1].role }} {{ [1, 2].1 }} {{ 'äöü'[1] }} {{ messages[0].nothing }} {{ [1][5] }} {{ 'a'[9] }}
a method stands before a key|{{ {'items': 1}.items is callable }} {{ {'items': 1}['items'] }} {{ {'a': 1}['get']('a') }}
slices|{{ 'abcdef'[1:4] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[-2:] }} {{ 'abcdef'[4:1:-2] }} {{ [1, 2, 3][:-1] }} {{ [1, 2, 3][5:] }} {{ (1, 2, 3)[1:] }} {{ 'äöü'[:2] }} {{ range(5)[1:3] | list }}
something undefined|[{{ missing }}] {{ missing is defined }} {{ missing == other }} {{ missing | length }} {% for x in missing %}{% endfor %}{{ missing ~ 'a' }} {{ not missing }}
tests|{{ 'a' is string }} {{ {} is mapping }} {{ [] is sequence }} {{ {} is sequence }} {{ 'a' is iterable }} {{ 1 is iterable }} {{ 1 is number }} {{ true is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ none is none }} {{ false is false }} {{ 0 is false }} {{ true is boolean }}
more tests|{{ 3 is odd }} {{ 4 is even }} {{ 6 is divisibleby(3) }} {{ 6 is divisibleby 4 }} {{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 2 is gt 1 }} {{ 1 is in [1, 2] }} {{ 'a' is lower }} {{ 'A' is upper }} {{ 1 is not none }} {{ messages is sameas messages }} {{ 'upper' is filter }} {{ 'odd' is test }}
strip and split|{{ '[' ~ ' a '.strip() ~ 'xxaxx'.strip('x') ~ ' a '.lstrip() ~ ' a '.rstrip() ~ ']' }} {{ ' a  b '.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b c '.split(none, 1) }} {{ ' a  b c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }}
finding|{{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'abc'.find('x') }} {{ 'äbc'.index('b') }} {{ 'aaa'.count('a') }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.find('', 9) }}
replacing|{{ 'aXbX'.replace('X', '') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'abc'.replace('', '-') }} {{ 'prefix'.removeprefix('pre') }} {{ 'file.txt'.removesuffix('.txt') }}
letters|{{ 'aBc dÉ'.upper() }} {{ 'ABC DÉ'.lower() }} {{ "they're here".title() }} {{ 'hELLO wORLD'.capitalize() }} {{ 'aBc'.swapcase() }} {{ 'straße'.upper() }} {{ 'ΟΔΟΣ'.lower() }}
what letters are|{{ 'a1'.isalnum() }} {{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'ab'.islower() }} {{ 'AB'.isupper() }} {{ 'é'.isascii() }} {{ ''.isdigit() }}
lines|{{ 'a\\nb\\r\\nc\\n'.splitlines() }} {{ 'a\\nb'.splitlines(true) }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }}
padding|{{ 'ab'.center(7, '*') }} {{ 'abc'.center(6, '*') }} {{ 'ab'.ljust(4, '.') }} {{ 'ab'.rjust(4, '.') }} {{ '-7'.zfill(4) }} {{ ','.join(['a', 'b']) }}
format by percent|{{ '%s is %d and %.2f%%' % ('a', 3, 2.5) }} {{ '%05d|%-5s|%x|%+d' % (42, 'a', 255, 1) }} {{ '%(a)s' % {'a': 1} }} {{ '%s' % [1] }} {{ '%r' % 'a' }}
format by braces|{{ '{} {}'.format('a', 1) }} {{ '{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=2) }} {{ '{:>5}|{:<4}|{:^5}|{:03d}|{:.1f}|{:,}'.format('a', 'b', 'c', 7, 2.25, 1234567) }} {{ '{{}}'.format() }} {{ '{0[a]}'.format({'a': 1}) }} {{ '{!r}'.format('a') }}
dicts|{{ {'a': 1}.items() }} {{ {'a': 1}.keys() | list }} {{ {'a': 1}.values() | list }} {{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 2) }} {{ {'a': 1, 'a': 2} }} {{ dict(a=1, b=2) }} {{ dict([('x', 1)]) }} {{ {'a': 1} == {'a': 1.0} }}
lists|{{ [1, 2] + [3] }} {{ [0] * 3 }} {{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }} {{ (1,) + (2,) }} {{ [1] == [1.0] }} {{ [1] == (1,) }}
tojson|{{ messages[2] | tojson }} {{ {'a': [1, {'b': none}], 'c': {}, 'd': []} | tojson(indent=2) }} {{ {'b': 1, 'a': 'é🙂'} | tojson(sort_keys=true, ensure_ascii=true) }} {{ [1, 2] | tojson(separators=(',', ':')) }} {{ '</s>&\\x7f\\x01\\u2028' | tojson }} {{ [1.0, 1e22, true] | tojson }} {{ {1: 2, none: 3, true: 4} | tojson }} {{ (1, 2) | tojson }}
filters of texts|{{ ' a ' | trim }} {{ 'xax' | trim('x') }} {{ 'a' | upper }} {{ 'A' | lower }} {{ "they're (big) b-c" | title }} {{ 'aB' | capitalize }} {{ 'aa' | replace('a', 'b', 1) }} {{ 'a\\nb\\n\\nc' | indent(2) }} {{ 'a\\nb' | indent('> ', true) }} {{ 'hello world foo bar' | truncate(12) }} {{ 'a b_c' | wordcount }} {{ 'ab' | reverse }} {{ 'a b/ü' | urlencode }} {{ 'ab' | center(6) }}| {{ '%s!' | format('a') }} {{ 1 | string }}
escaping|{{ '<a href="x">&\\'' | e }} {{ '<i>' + ('<b>' | safe) }} {{ ('<b>' | safe) ~ '<' }} {{ '<b>' | safe | e }}
filters of numbers|{{ '42.9' | int }} {{ 'x' | int(7) }} {{ ' 12 ' | int }} {{ 'ff' | int(0, 16) }} {{ '2.5' | float }} {{ 'x' | float }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 3.14159 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.19 | round(1, 'floor') }} {{ -5 | abs }} {{ 7 | round }} {{ 2.675 | round(2) }}
default|{{ missing | default('a') }} {{ '' | default('b') }}{{ '' | d('c', true) }} {{ none | default('d') }} {{ missing | d }}
filters of lists|{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A', 'a'] | sort(case_sensitive=true, reverse=true) }} {{ [1, 2, 2, 1] | unique | list }} {{ [1, 5, 3] | max }} {{ [1, 5, 3] | min }} {{ [1, 2.5] | sum }} {{ [1, 2] | first }} {{ [1, 2] | last }} {{ [] | first }} {{ [1, 2, 3] | batch(2, 'x') | list }} {{ [1, 2, 3, 4] | slice(3) | list }} {{ [1, 2] | reverse | list }} {{ 'abc' | list }} {{ [1, none, 'a'] | join('-') }} {{ {'b': 1, 'a': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(false, 'value') }} {{ {'a': 1} | items | list }} {{ {'a': 1} | length }} {{ 'ä' | count }}
map and select|{{ messages | map(attribute='role') | list }} {{ messages | map(attribute='x', default=0) | list }} {{ ['a', 'b'] | map('upper') | join }} {{ ['a,b'] | map('replace', ',', ';') | first }} {{ [0, 1, none, 2] | select | list }} {{ [1, 2, 3] | select('odd') | list }} {{ [1, 2, 3] | reject('gt', 1) | list }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | selectattr('tool_calls') | map(attribute='role') | list }} {{ messages | rejectattr('tool_calls', 'defined') | list | length }} {{ messages[2:] | map(attribute='tool_calls.0.name') | list }}
groups|{% for role, all in [{'r': 'a', 'n': 1}, {'r': 'b', 'n': 2}, {'r': 'a', 'n': 3}] | groupby('r') %}{{ role }}{{ all | map(attribute='n') | list }}{% endfor %} {{ ([{'r': 'a'}] | groupby('r') | first).grouper }}
a stream gives its items once|{% set s = messages | selectattr('role') %}{{ s | list | length }}{{ s | list | length }}{% if s %}yes{% endif %} {% set t = [1, 2, 3] | select %}{{ t | first }}{{ t | list }}
range|{{ range(3) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }} {{ range(3) | length }} {{ range(3)[1] }}
cycler and joiner|{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }} {% set j = joiner('; ') %}{{ j() }}x{{ j() }}y
arguments from lists and dicts|{{ range(*[1, 4]) | list }} {{ dict(**{'a': 1}) }} {% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1], **{'b': 2}) }}
a tool's schema|{% macro t(s, d=0) %}{% if s.type == 'object' %}{ {%- for k, v in s.properties.items() %}{{ '\\n' ~ '  ' * (d + 1) ~ k }}: {{ t(v, d + 1) }}{% endfor %}{{ '\\n' ~ '  ' * d }}}{% elif s.type == 'array' %}{{ t(s['items'], d) }}[]{% else %}{{ s.type }}{% endif %}{% endmacro %}{{ t({'type': 'object', 'properties': {'a': {'type': 'array', 'items': {'type': 'string'}}, 'b': {'type': 'object', 'properties': {'c': {'type': 'number'}}}}}) }}
"""


def main():
    cases = []
    for line in CASES.strip().split("\n"):
        name, _, template = line.partition("|")
        template = template.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\")
        cases.append({"name": name, "template": template, "text": _compile_jinja_template(template).render(messages=MESSAGES, tools=None, documents=None,
                                                                                                           add_generation_prompt=False, bos_token="<s>")})
    out = {"messages": MESSAGES, "cases": cases}
    pathlib.Path(__file__).with_name("jinja.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
