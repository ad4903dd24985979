#!/usr/bin/env python3
"""Chat templates against transformers: random and written conversations, with tools, documents, thoughts and odd characters, are written by
transformers' apply_chat_template and by weft with Megatron's three templates, templates of our own that use what Jinja has, and any *.jinja
of directories given with --templates. Compared are the text, the ids, what {% generation %} marks, and who refuses which conversation.
Needs: pip install transformers tokenizers jinja2. Usage: chat.py [--weft build/release/weft] [--templates DIR ...]
[--megatron SFT_TOKENIZER.PY]"""
import argparse, json, pathlib, random, re, subprocess, sys, tempfile

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--weft", default="build/release/weft")
ARGS.add_argument("--templates", nargs="*", default=[])
ARGS.add_argument("--megatron", help="its sft_tokenizer.py, with the templates themselves; left out: what they do in words of our own")
ARGS.add_argument("--rounds", type=int, default=20)
ARGS.add_argument("--seed", type=int, default=1)
ARGS.add_argument("--verbose", action="store_true")
ARGS = ARGS.parse_args()
RANDOM = random.Random(ARGS.seed)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place — today's.\nSecond line with \"quotes\" & <tags>.",
    "parameters": {"type": "object", "required": ["place"], "properties": {
        "place": {"type": "string", "description": "Città, e.g. Zürich"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "array", "items": {"type": "integer"}, "description": "which"}, "exact": {"type": "boolean", "default": True},
        "limit": {"type": "number", "default": 1.5}, "more": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}}},
    "return": {"type": "object", "description": "what it is like"}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {
    "type": "object", "properties": {"a": {"type": "number", "description": "one"}, "b": {"type": "number", "description": "other"}}, "required": ["a", "b"]}}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def call(name, arguments, id="call_abc123"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(content, id="call_abc123", name="get_weather"):
    return {"role": "tool", "tool_call_id": id, "name": name, "content": content}


ASKED = [user("How is the weather in Zürich?"), assistant("", tool_calls=[call("get_weather", {"place": "Zürich", "days": [1, 2], "exact": False,
         "limit": 2.0, "unit": None})]), answer('{"sky": "grey", "degrees": 7.5}')]
CONVERSATIONS = [
    {"messages": [user("Hello")]},
    {"messages": [system("You are kind."), user("Hello")]},
    {"messages": [user("Hello"), assistant("Hi there."), user("  Who are you?  \n")]},
    {"messages": [system("Be brief.\n"), user("Hello"), assistant("Hi."), user("And?"), assistant(" Nothing more. ")]},
    {"messages": [user(""), assistant(""), user("x")]},
    {"messages": [system(""), user("中文 🙂 naïve <b>&amp;</b> 'quoted' \"twice\" \\n {{ x }} {% y %}"), assistant("\u2028 \u00a0 ok\t")]},
    {"messages": [user("2 + 2?"), assistant("<think>\nEasy.\n</think>\n\n4"), user("3 + 3?")]},
    {"messages": [user("2 + 2?"), assistant("4", reasoning_content="Easy."), user("3 + 3?"), assistant("6", thinking="Again.")]},
    {"messages": [user("/no_think a"), assistant("b"), user("c /think")], "chat_template_kwargs": {"enable_thinking": False}},
    {"messages": [user("a")], "chat_template_kwargs": {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}},
    {"messages": [system("S"), user("a")], "chat_template_kwargs": {"date_string": "26 Jul 2024", "custom_tools": None, "builtin_tools": ["wolfram_alpha"]}},
    {"messages": [user("How is the weather in Zürich?")], "tools": [WEATHER]},
    {"messages": [system("Use tools."), user("Weather?")], "tools": [WEATHER, ADD]},
    {"messages": ASKED, "tools": [WEATHER]},
    {"messages": [system("Use tools.")] + ASKED + [assistant("It is grey."), user("Thanks")], "tools": [WEATHER, ADD]},
    {"messages": [user("Both"), assistant(None, tool_calls=[call("get_weather", {"place": "Bern"}, "call_one_1"), call("add", {"a": 1, "b": -2.5}, "call_two_2")]),
                  answer("7", "call_one_1"), answer("-1.5", "call_two_2", "add"), assistant("Done.")], "tools": [WEATHER, ADD]},
    {"messages": [user("As text"), assistant("Let me see.", tool_calls=[call("add", '{"a": 1, "b": 2}')]), answer("3", name="add")], "tools": [ADD]},
    {"messages": [user("Nine"), assistant("", tool_calls=[call("add", {"a": 1, "b": 2}, "abcdef123")]), answer("3", "abcdef123", "add")], "tools": [ADD]},
    {"messages": [user([{"type": "text", "text": "In parts"}, {"type": "text", "text": "and another"}]), assistant([{"type": "text", "text": "yes"}])]},
    {"messages": [user([{"type": "image"}, {"type": "text", "text": "What is this?"}])]},
    {"messages": [user("a"), user("b")]},
    {"messages": [assistant("first")]},
    {"messages": [user("a"), assistant("b"), system("late"), user("c")]},
    {"messages": [{"role": "developer", "content": "Dev."}, user("a")]},
    {"messages": [{"role": "ipython", "content": {"a": 1}}, {"role": "odd", "content": "x"}]},
    {"messages": [user("By papers?")], "documents": [{"title": "One", "text": "First."}, {"title": "Two", "text": "Second: \"x\"."}]},
    {"messages": [user("Numbers"), assistant("", tool_calls=[call("add", {"a": 1e22, "b": 1e-7, "c": 123456789.125, "d": [], "e": {}, "f": "\u0001\u007f"})])], "tools": [ADD]},
]

# What templates in the wild use, and what they could.
OURS = {
    "generation": """{%- for m in messages -%}
<|{{ m.role }}|>
{%- if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}
{% else %}{{ m.content }}
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}
""",
    "blocks": """  {# comment #}
 {% set ns = namespace(n=0, last=none) %}
{% macro part(role, words='', *, end=eos_token) %}{% endmacro %}
""".replace(", *, end=eos_token", "") + """{% macro line(role, words='-', depth=1) -%}
{{ '  ' * depth }}[{{ role }}] {{ words }} {{ varargs }} {{ kwargs }}
{%- if caller %} ({{ caller(role | upper) }}){% endif %}
{%- endmacro %}
{% for m in messages if m.role != 'system' %}
   {% set ns.n = ns.n + 1 %}
    {{ line(m.role, m.content, 2, 'more', x=1) }}
  {%- call(big) line(m['role'], depth=loop.index) %}{{ big }} of {{ loop.length }}{% endcall %}
  {% if loop.first %}first{% elif loop.last %}last{% else %}{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}{% endif %}
  {{ loop.previtem.role if loop.previtem is defined else 'none before' }} {{ loop.cycle('a', 'b', 'c') }}
  {% if loop.index > 3 %}{% break %}{% endif +%}
  {% if loop.index is even %}{% continue %}{% endif %}
  odd
{% else %}
nobody
{% endfor %}
{% filter upper | trim %}  shouted {{ ns.n }}  {% endfilter %}
{% set block | replace('a', 'b') %}banana {{ ns.n }}{% endset %}{{ block }}
{% with a = 1, b = [1, 2] %}{{ a }}{{ b }}{% endwith %}
{% raw %}{{ raw }} {% if %}{% endraw %}
{{- '  tight  ' -}}
   after
""",
    "values": """{{ [1, 2.0, 1e100, 1e-5, 0.1, -3, true, none, 'a', "it's", 'a"b\\'c', '\\n\\t\\x07é\\u2028🙂'] }}
{{ {'a': 1, 'b': [1, (1,), ()], 3: none} }} {{ (1, 'x') }} {{ messages[0] }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1_000 + 0 }} {{ 10 / 5 }}
{{ 1 < 2 < 3 }} {{ 3 > 2 >= 2 != 1 }} {{ 'a' in 'abc' }} {{ 1 not in [1, 2] }} {{ 'role' in messages[0] }} {{ not 1 == 2 and 3 or 4 }} {{ 0 or '' or 'x' }}
{{ 'abcdef'[1:4] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[-3:] }} {{ [1, 2, 3, 4][::2] }} {{ [1, 2, 3][-1] }} {{ 'äöü'[1] }} {{ messages[1:] | length }} {{ messages[:-1] | length }}
{{ 'a' ~ 1 ~ none ~ 2.50 ~ [1] ~ true ~ missing }} {{ 'a' 'b' }} {{ 'x' if missing }} {{ missing | default('d') }} {{ '' | default('e', true) }} {{ 3 is odd }} {{ 4 is divisibleby 2 }}
{{ 'x' is string }} {{ {} is mapping }} {{ [] is sequence }} {{ {} is sequence }} {{ 'x' is iterable }} {{ 1 is number }} {{ 1.0 is float }} {{ true is integer }} {{ none is none }} {{ missing is defined }} {{ missing is not defined }}
{{ 'a' is in ['a'] }} {{ 1 is eq 1 }} {{ 2 is gt 1 }} {{ 'A' is upper }} {{ 'a' is lower }} {{ range is callable }} {{ messages is sameas messages }} {{ true is true }} {{ 1 is true }} {{ 1 == true }} {{ 1 == 1.0 }}
{{ range(3) | list }} {{ range(5, 0, -2) | list }} {{ dict(a=1, **{'b': 2}) }} {{ dict([('x', 1)]) }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ 'ab' * 2 }} {{ [0] * 3 }} {{ -2 ** 2 }} {{ +5 }} {{ - -5 }}
{{ 1e16 }} {{ 1e15 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 100000.0 }} {{ 1.5e300 * 1e10 }} {{ 3.14159 }}
""",
    "texts": """{% set s = '  Hello, wörld! hello  ' %}[{{ s.strip() }}] [{{ s.lstrip() }}] [{{ s.rstrip(' o') }}] [{{ s.strip(' Ho') }}] {{ s.split() }} {{ s.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b c '.split(none, 1) }} {{ ' a  b c '.rsplit(none, 1) }}
{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ s.strip().capitalize() }} {{ s.swapcase() }} {{ s.find('l') }} {{ s.rfind('l') }} {{ s.find('zz') }} {{ s.count('l') }} {{ s.index('wör') }} {{ s.replace('l', 'L', 2) }} {{ 'abc'.replace('', '-') }}
{{ 'a\\nb\\r\\nc\\n'.splitlines() }} {{ 'a\\nb'.splitlines(true) }} {{ 'x'.join(['a', 'b']) }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.startswith('b', 1) }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }}
{{ 'ab'.center(7, '*') }} {{ 'ab'.ljust(5) }}| {{ 'ab'.rjust(5) }} {{ '-7'.zfill(4) }} {{ 'prefix'.removeprefix('pre') }} {{ 'a1'.isalnum() }} {{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'Ab'.isascii() }}
{{ '%s is %d and %.2f%%' % ('a', 3, 2.5) }} {{ '%05d|%-5s|%x' % (42, 'a', 255) }} {{ '{} {1} {a}'.replace('{} ', '').format('x', 'y', a=3) }} {{ '{} {}'.format(1, 'b') }} {{ '{:>5}|{:<4}|{:^5}|{:03d}|{:.1f}|{:,}'.format('a', 'b', 'c', 7, 2.25, 1234567) }} {{ '%(a)s' % {'a': 1} }} {{ '{a[b]} {a.b}'.replace(' {a.b}', '').format(a={'b': 1}) }}
{{ 'straße ΟΔΟΣ ǆ ﬁ İ'.upper() }} {{ 'STRASSE ΟΔΟΣ ΣΑΣ İ'.lower() }} {{ "they're bill's".title() }} {{ 'ǆabc'.capitalize() }} {{ "they're (big) b-c" | title }} {{ 'a b' | capitalize }}
""",
    "filters": """{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }} {{ [1, 2] | sort(reverse=true) }} {{ messages | sort(attribute='role') | map(attribute='role') | list }} {{ {'b': 1, 'a': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }}
{{ messages | map(attribute='role') | join(', ') }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('tool_calls', 'defined') | map(attribute='content') | first }} {{ [1, 0, 2, none] | select | list }} {{ [1, 2, 3] | select('odd') | list }} {{ [1, 2, 3] | reject('gt', 1) | list }} {{ ['a', 'b'] | map('upper') | list }} {{ [{'a': 1}, {}] | map(attribute='a', default=0) | list }}
{{ 'a<b>&"\\'' | e }} {{ ('<b>' | safe) ~ '<' }} {{ '<i>' + ('<b>' | safe) }} {{ 'x' | indent }} {{ 'a\\nb\\n\\nc' | indent(2) }} {{ 'a\\nb' | indent(width='> ', first=true) }} {{ 'a\\n\\nb' | indent(1, blank=true) }} {{ 'abc' | reverse }} {{ [1, 2] | reverse | list }} {{ [1, 2, 2, 1] | unique | list }} {{ [1, 2, 3] | batch(2, 'x') | list }} {{ [1, 2, 3, 4] | slice(3) | list }}
{{ [1, 5, 3] | max }} {{ [1, 5, 3] | min }} {{ [1, 2.5] | sum }} {{ messages | groupby('role') | map(attribute='grouper') | list }} {% for role, all in messages | groupby('role') %}{{ role }}:{{ all | length }} {% endfor %} {{ '42.9' | int }} {{ 'x' | int(7) }} {{ ' 12 ' | int }} {{ 'ff' | int(0, 16) }} {{ '2.5' | float }} {{ 'x' | float }} {{ 2.5 | round }} {{ 3.14159 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ -5 | abs }} {{ 'a b_c' | wordcount }} {{ 'hello world foo bar' | truncate(12) }} {{ 'ab' | length }} {{ 'ä' | length }} {{ {'a': 1} | items | list }} {{ 'a b/ü' | urlencode }} {{ '%s' | format(3) }} {{ none | string }} {{ 'abc' | first }} {{ 'abc' | last }} {{ [] | first }}|{{ {'x': 1}.items() | list }} {{ {'x': 1}.keys() | list }} {{ {'x': 1}.values() | sum }} {{ {'x': 1}.get('y') }} {{ {'x': 1}.get('y', 2) }} {{ {'items': 1}.items is callable }} {{ {'items': 1}['items'] }}
{{ messages | tojson }} {{ {'a': [1, {'b': none}], 'c': {}} | tojson(indent=2) }} {{ {'b': 1, 'a': 'é\\u2028🙂'} | tojson(sort_keys=true, ensure_ascii=true) }} {{ [1, 2] | tojson(separators=(',', ':')) }} {{ '</script>&\\x7f\\x01' | tojson }} {{ [1.0, 1e22, true, 'a"b'] | tojson }} {{ [] | tojson(indent=4) }} {{ {1: 2, none: 3} | tojson }}
{{ {'x': 1}.items() }} {{ {'x': 1}.keys() }} {{ {'x': 1}.values() }} {% set j = joiner('; ') %}{% for m in messages %}{{ j() }}{{ m.role }}{% endfor %} {% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}
{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %} {% for c in 'añb' %}<{{ c }}>{% endfor %} {% set a, b = 1, 2 %}{{ a }}{{ b }} {% set st = messages | selectattr('role') %}{{ st | list | length }}{{ st | list | length }} {{ '_' is defined }}
""",
    "scopes": """{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + i %}{{ x }} {% endfor %}{{ x }} {% if true %}{% set x = 9 %}{% endif %}{{ x }}
{% macro m() %}{{ x }}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}{% set x = 7 %}{{ m() }} {% for i in [] %}{% else %}{% set x = 3 %}{{ x }}{% endfor %}{{ x }}
{% for a in [[1, 2], [3]] %}{% for b in a %}{{ loop.index }}{{ b }}{% if b == 1 %}{% continue %}{% endif %}!{% endfor %}{{ loop.index }}{% endfor %} {% for i in range(10) if i is odd %}{% if i > 6 %}{% break %}{% endif %}{{ i }}{{ loop.last }}{% endfor %}
{% macro r(n) %}{% if n > 0 %}{{ n }}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(5) }} {% macro d(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ d(1) }}{{ d(1, b=2) }} {% set f %}{% for m in messages %}{{ m.role[0] }}{% endfor %}{% endset %}{{ f }}{{ f | length }}
{% set ns = namespace(a=1) %}{% for i in range(3) %}{% set ns.a = ns.a * 2 %}{% endfor %}{{ ns.a }} {{ ns.b is defined }} {% macro g() %}{{ caller() if caller else 'no' }}{% endmacro %}{{ g() }}{% call g() %}yes{% endcall %}
""",
}
REFUSED = {  # by both
    "raises": "{% if messages | length > 1 %}{{ raise_exception('Only one, ' ~ messages | length) }}{% endif %}one",
    "undefined": "{{ messages[0].nothing.more }}", "adds": "{{ 'a' + 1 }}", "appends": "{% set a = [] %}{{ a.append(1) }}", "calls": "{{ messages() }}",
    "unknown": "{{ 1 | nofilter }}", "slices": "{{ messages[0][1:] }}", "open": "{% if true %}", "tag": "{% frob %}", "unpacks": "{% set a, b = [1] %}", "order": "{{ 1 < 'a' }}",
    "json": "{{ missing | tojson }}", "underscore": "{% set n = namespace() %}{% set n._x = 1 %}", "range": "{{ range(1000000) | list }}",
}


def random_conversation():
    words = ["hello", "Zürich", "<b>", "\n", " ", "  ", "{{", "'", '"', "\\", "🙂", "<think>", "</think>", "/think", "/no_think", "\t", "中", "&", "\r\n", "<s>"]
    text = lambda: "".join(RANDOM.choice(words) for _ in range(RANDOM.randrange(0, 8)))
    messages = [system(text())] if RANDOM.random() < 0.4 else []
    for _ in range(RANDOM.randrange(1, 4)):
        messages += [user(text()), assistant(text(), **({"reasoning_content": text()} if RANDOM.random() < 0.2 else {}))]
    return {"messages": messages if RANDOM.random() < 0.5 else messages[:-1]}


CONVERSATIONS += [random_conversation() for _ in range(ARGS.rounds)]


def tokenizer_in(folder, template):
    made = Tokenizer(models.BPE(vocab={c: k for k, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.add_special_tokens(list(TOKENS.values()))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, chat_template=template, **TOKENS)
    tokenizer.save_pretrained(folder)
    return tokenizer


def line_of(conversation):
    return json.dumps(conversation, ensure_ascii=False) + "\n"


def theirs(tokenizer, template, conversation, answer_next):
    kwargs = conversation.get("chat_template_kwargs", {})
    given = {k: conversation.get(k) for k in ("tools", "documents")}
    try:
        text = tokenizer.apply_chat_template(conversation["messages"], chat_template=template, add_generation_prompt=answer_next, tokenize=False, **given, **kwargs)
        out = {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False), "answers": []}
        if re.search(r"{%-?\s*generation", template):
            messages = [{k: v for k, v in m.items() if v is not None} for m in conversation["messages"]]
            _, [spans] = render_jinja_template(conversations=[messages], chat_template=template, return_assistant_tokens_mask=True,
                                               add_generation_prompt=answer_next, **given, **kwargs, **TOKENS)
            out["answers"] = [[len(text[:a].encode()), len(text[:b].encode())] for a, b in spans]
        return out
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def weft(folder, flags, lines):
    done = subprocess.run([ARGS.weft, "tokenizer", "chat", "--tokenizer", str(folder), "--jsonl", *flags], input="".join(lines), capture_output=True, text=True)
    return [json.loads(l) for l in done.stdout.split("\n")[:-1]] if done.returncode == 0 else done.stderr.strip()


def ours(folder, flags, conversations):
    lines = [line_of(c) for c in conversations]
    all_at_once = weft(folder, flags, lines)
    if not isinstance(all_at_once, str):
        return all_at_once
    return [one if isinstance(one := weft(folder, flags, [line]), str) else one[0] for line in lines]


def compare(name, template, named=(), must_refuse=False):
    same = refused = 0
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tokenizer_in(folder, template)
        for answer_next in (False, True):
            flags = [*(["--answer-next"] if answer_next else []), *named]
            for conversation, mine in zip(CONVERSATIONS, ours(folder, flags, CONVERSATIONS)):
                yours = theirs(tokenizer, template, conversation, answer_next)
                if isinstance(mine, str) and isinstance(yours, str):
                    refused += 1
                    if ARGS.verbose:
                        print(f"  refused: weft   {mine}\n           theirs {yours}")
                elif mine == yours:
                    same += 1
                else:
                    wrong.append((conversation, mine, yours))
    if must_refuse and refused == 0:
        wrong.append(("", "nothing refused", ""))
    print(f"{name}: {same} equal, {refused} refused by both" + (f", {len(wrong)} DIFFER" if wrong else ""), flush=True)
    for conversation, mine, yours in wrong[:None if ARGS.verbose else 1]:
        print(f"  of {json.dumps(conversation, ensure_ascii=False)[:300]}\n  weft   {shown(mine)}\n  theirs {shown(yours)}")
        if not isinstance(mine, str) and not isinstance(yours, str) and mine["text"] != yours["text"]:
            k = next((k for k, (a, b) in enumerate(zip(mine["text"], yours["text"])) if a != b), min(len(mine["text"]), len(yours["text"])))
            print(f"  from character {k}:\n    weft   {mine['text'][max(k - 60, 0):k + 60]!r}\n    theirs {yours['text'][max(k - 60, 0):k + 60]!r}")
    return not wrong


def shown(said):
    return said if isinstance(said, str) else repr(said["text"])[:400] + f" {said['answers']}"


def plain(words):
    return words.replace("/think", "").replace("/no_think", "").strip()


# What Megatron's templates write of a message, by its role; of others nothing.
MEGATRON = {
    "nemotron-h-aligned": {"system": lambda w: f"<SPECIAL_10>System\n{w.strip()}\n", "assistant": lambda w: f"{w.strip()}\n",
                           "user": lambda w: f"<SPECIAL_11>User\n{w.strip()}\n<SPECIAL_11>Assistant\n"},
    "nemotron-nano-v2": {"system": lambda w: f"<SPECIAL_10>System\n{plain(w)}\n", "user": lambda w: f"<SPECIAL_11>User\n{plain(w)}\n",
                         "assistant": lambda w: f"<SPECIAL_11>Assistant\n{w.strip()}\n<SPECIAL_12>\n"},
}


def compare_megatron(name):
    if ARGS.megatron:
        source = pathlib.Path(ARGS.megatron).read_text()
        template = eval(re.search(rf'^{name.replace("-", "_")}_\w*template = ("""[\s\S]*?""")', source, re.M)[1])
        return compare(f"megatron {name}", template, ["--chat-template", name])
    if name == "identity":
        return compare("megatron identity", "{% for message in messages %}{{ message.content }}{% endfor %}", ["--chat-template", name])
    said = [c for c in CONVERSATIONS if all(isinstance(m.get("content"), str) for m in c["messages"])]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer_in(folder, "")
        texts = [line if isinstance(line, str) else line["text"] for line in ours(folder, ["--chat-template", name], said)]
    wrong = [(c, t) for c, t in zip(said, texts) if t != "".join(MEGATRON[name].get(m["role"], lambda w: "")(m["content"]) for m in c["messages"])]
    print(f"megatron {name}: {len(said) - len(wrong)} equal" + (f", {len(wrong)} DIFFER: {wrong[0]}" if wrong else ""), flush=True)
    return not wrong


def main():
    wrong = []
    for name in (*MEGATRON, "identity"):
        if not compare_megatron(name):
            wrong.append(name)
    for name, template in OURS.items():
        if not compare(name, template):
            wrong.append(name)
    for name, template in REFUSED.items():
        if not compare(f"refused {name}", template, must_refuse=True):
            wrong.append(name)
    for folder in ARGS.templates:
        for path in sorted(pathlib.Path(folder).glob("*.jinja")):
            if not compare(path.name, path.read_text()):
                wrong.append(path.name)
    if wrong:
        sys.exit(f"different: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
