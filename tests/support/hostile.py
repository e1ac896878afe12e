"""Texts that cost a careless reader more than their length: what law L7 is tried on."""

from __future__ import annotations

from tests.support.steps import Case
from tests.support.words import E, S

ARGUMENT = S + "[f(a='"
VALUE = S + "[f(a="
TOOLS = {"f": ["a", "b"], "get_weather": ["city"]}

CASES = {
    # A megabyte of one thing.
    "quotes": Case(ARGUMENT, "'"),
    "other-quotes": Case(ARGUMENT, '"'),
    "double-quotes": Case(S + '[f(a="x', '"'),
    "apostrophes": Case(ARGUMENT, "it's "),
    "brackets": Case(VALUE, "["),
    "brackets-in-string": Case(ARGUMENT, "["),
    "brackets-as-text": Case("", "[", dialect="llama4", tools=TOOLS),
    "spaced-brackets-as-text": Case("", " [", dialect="llama4", tools=TOOLS),
    "backslashes": Case(ARGUMENT, "\\"),
    "escaped-quotes": Case(ARGUMENT, "\\'"),
    "markers-begun": Case("", "<|"),
    "markers-begun-in-string": Case(ARGUMENT, "<|"),
    "markers-begun-in-list": Case(S + "[", "<|"),
    "digits": Case(VALUE, "1", "x", least=8205),  # over 4,000 digits are no number
    "digits-in-key": Case(VALUE + "{", "1", "x", least=8205),
    "commas": Case(VALUE + "1", ","),
    "commas-in-list": Case(S + "[", ","),
    "empty-strings": Case(VALUE, "''"),
    "empty-strings-held": Case(VALUE + "('", "''" * 16, "')]" + E),
    "empty-strings-apart": Case(VALUE, "'' "),
    "starts": Case("", S),
    "ends": Case("", E),
    "empty-blocks": Case("", S + E),
    "blocks-unclosed": Case("", S + "[f()]"),
    "blocks": Case("", S + "[f()]" + E),
    "starts-in-strings": Case("", S + "[f(a='it's "),
    # Quotes that could close.
    "closes-call": Case(ARGUMENT, "')"),
    "closes-list": Case(ARGUMENT, "')]"),
    "closes-list-space": Case(ARGUMENT, "')] "),
    "goes-on": Case(ARGUMENT, "', "),
    "goes-on-name": Case(ARGUMENT, "', b"),
    "goes-on-argument": Case(ARGUMENT, "', b=", tools=TOOLS),
    "sibling": Case(ARGUMENT, "'), "),
    "sibling-name": Case(ARGUMENT, "'), get_weather", tools=TOOLS),
    "sibling-call": Case(ARGUMENT, "'), g("),
    "sibling-open-string": Case(S + "[", "f(a='x, "),
    "element": Case(VALUE + "['x", "', '"),
    "element-closes": Case(VALUE + "['x", "']"),
    # Later quotes, behind which the list is passed to its end.
    "walks-that-fail": Case(VALUE + "['x'y", "', 'z"),
    "walks-that-close": Case(VALUE + "['x'y', ", "'it's', ", "'z'])]" + E, tools=TOOLS),
    "walks-containers": Case(VALUE + "[['x'y", "'], ['z"),
    "walks-containers-close": Case(VALUE + "[['x'y'], ", "['it's'], ", "['z']])]" + E, tools=TOOLS),
    "walks-expressions": Case(VALUE + "['x'y", "', foo(1, z), 'z"),
    "walks-other": Case(VALUE + "['x'y", "', @, 'z"),
    "walks-other-first": Case(VALUE + "[", "'x', @, ", "1])]" + E),
    "walks-arguments": Case(S + "[h(a='it's', ", "b='it's', ", "c=1)]" + E),
    "walks-arguments-fail": Case(S + "[h(a='it's", "', b=1, c='z"),
    "walks-calls": Case(S + "[", "f(a=['x'y', 'z', ", "1])]" + E, tools=TOOLS),
    "key": Case(VALUE + "{'x", "': '"),
    "expression": Case(VALUE, "'x' + "),
    "expression-brackets": Case(VALUE, "'x' + (1, "),
    "expressions-in-list": Case(VALUE + "[", "'x'.y, "),
    "comments-after-quotes": Case(VALUE + "[", "'x'#, "),
    "chains": Case(VALUE + "[", "'x' 'y' "),
    "triple-quotes": Case(VALUE + "'''", "'' "),
    "f-string": Case(VALUE + "f'", "{{"),
    # What comes back.
    "echo-nearly": Case("", S + "[f()]" + E + "[f()]x"),
    "echo-grows": Case(S + "[f(a='", "x", "')]" + E + "[f(a='xx"),
    "echo-again": Case(S + "[f()]" + E, "[f()]"),
    **{
        f"echo-{kind}-{length}": case
        for length, block in {
            "short": "[w(a=1)]",
            "string": f"[w(a='{'x' * 200}')]",
            "calls": f"[{'w(a=1), ' * 40}]",
        }.items()
        for kind, case in {
            "cut": Case("", S + block + E + block[:-1] + " "),
            "followed": Case("", S + block + E + block + " x"),
            "of-many": Case(S + block + E, block[:-1]),
        }.items()
    },
    # Many things.
    "calls": Case(S + "[", "f(a=1, b='x'), ", "]" + E),
    "calls-malformed": Case(S + "[", "f(a=foo()), ", "]" + E),
    "calls-json": Case(S + "[", '{"name": "f", "arguments": {"a": 1}}, ', "]" + E),
    "arguments-before-name": Case(S + '[{"arguments": {"a": "', "x'", '"}, "name": "f"}]' + E),
    "numbers": Case(VALUE + "[", "12, -7.5, ", "])]" + E),
    "tuples": Case(VALUE + "[", "(1, (2)), ", "])]" + E),
    "calls-lines": Case(S, "f(a=1, b='x')\n"),
    "calls-positional": Case(S + "[", "f('x', 1), ", "]" + E, tools=TOOLS),
    # What begins as it could be taken at once, and goes on otherwise.
    "calls-odd": Case(S + "[", "f(a=1, b=[1, {'k': [foo()]}]), ", "]" + E),
    "numbers-odd": Case(S + "[", "f(a=[" + "1," * 200 + "1x]), ", "]" + E),
    "lists-odd": Case(VALUE + "[", "[1, {'k': [2, (3)]}], ", "])]" + E),
    "deep-lists-odd": Case(VALUE + "[", "[" * 150 + "()" + "]" * 150 + ", ", "])]" + E),
    "deep-lists-open": Case(VALUE, "[1, ['", "])]" + E),
    "strings-odd": Case(VALUE + "[", "['" + "x" * 200 + "\\\n'], ", "])]" + E),
    "dotted-name": Case(S + "[", "a . "),
    "blanks": Case(VALUE, " \n"),
    "comments": Case(VALUE, "#\n"),
    "continuations": Case(VALUE, "\\\n"),
    "lists-after-lists": Case(S, "[f()], "),
    "closers-missing": Case(VALUE + "foo(", "(["),
    "closers-wrong": Case(VALUE + "foo(" + "([" * 50, ")"),
    "prose": Case("", "What a day. "),
    "prose-brackets": Case("", "See [f(x], [f(1, ", dialect="llama4", tools=TOOLS),
    "lists-of-lists": Case("", "[f()]\n", dialect="llama4", tools=TOOLS),
    # Lists that might begin, where a comment hides them from one another.
    "comments-in-prose": Case("x ", " [f(# ", dialect="llama4", tools=TOOLS),
    "comments-in-prose-first": Case("", "[f(# ", dialect="llama4", tools=TOOLS),
    "comments-in-prose-undeclared": Case("", "[g(# ", dialect="llama4", tools=TOOLS),
    "comments-in-prose-closed": Case("x ", " [f()# ", dialect="llama4", tools=TOOLS),
    "comments-in-prose-argument": Case("x ", " [f(a# ", dialect="llama4", tools=TOOLS),
    "comments-in-prose-lines": Case("x [f(#", "\n# [f(# [f()#", dialect="llama4", tools=TOOLS),
    "comments-in-prose-mixed": Case("x ", " [f(# [f()# [f(a# ", dialect="llama4", tools=TOOLS),
    "comments-in-prose-decided": Case("x ", " [f(# [f(# [f(# \n? ", dialect="llama4", tools=TOOLS),
    # Names of tools.
    "long-name": Case("x [", "n", dialect="llama4", tools={"n" * 60_000: []}),
    "long-names": Case("x [", "n", dialect="llama4", tools={"n" * size: [] for size in range(1, 60_000, 997)}),
    "long-name-in-block": Case(S, "n", tools={"n" * 60_000: []}),
    "many-names": Case("x", " [na", dialect="llama4", tools={f"name_{number}": [] for number in range(300)}),
    # Answers in JSON.
    "json-answer": Case("[", '{"a": [1, "b"]}, ', "]", dialect="llama4", tools=TOOLS),
    "json-calls": Case("", '{"name": "f", "parameters": {"a": "x"}}\n', dialect="llama4", tools=TOOLS),
    "json-arguments-first": Case('{"parameters": {"a": "', "x'", '"}, "name": "f"}', dialect="llama4", tools=TOOLS),
    "json-arguments-only": Case('{"parameters": {"a": ["', 'x", "', dialect="llama4", tools=TOOLS),
    "json-name": Case('{"name": "', "f", dialect="llama4", tools={"f" * 60_000: []}),
    "json-nested": Case('{"parameters": {"a": ', '{"parameters": {"a": ', dialect="llama4", tools=TOOLS),
    "json-arguments-in-string": Case(S + '[{"name": "f", "arguments": "{\\"a\\": [', "1, ", '1]}"}]' + E),
    "lone-objects": Case(S + "[", "f({'x': 1, 'y': ['z']}), ", "]" + E, tools={"f": {"a": "string"}}),
    "lone-object": Case(S + "[f({'x': 1", ", 'y': ['z']", "})]" + E, tools={"f": {"a": "string"}}),
    # Markers that are text, or nothing.
    "markers-quoted": Case("", f"`{S}` and '{E}' "),
    "markers-lone": Case("", f"a {S} b {E} "),
    "markers-lone-in-list": Case("", S + "[1, "),
    "markers-begin-names": Case("", S + "a" * 50 + " "),
    # Nested 150 levels deep, again and again.
    "deep-lists": Case(S + "[", "f(a=" + "[" * 150 + "]" * 150 + "), ", "]" + E, least=2052),
    "deep-parentheses": Case(S + "[", "f(a=" + "(" * 150 + "1" + ")" * 150 + "), ", "]" + E),
    "deep-dicts": Case(S + "[", "f(a=" + "{'k': " * 150 + "1" + "}" * 150 + "), ", "]" + E),
    "deep-strings": Case(VALUE + "[" * 150 + "'", "', '", "'" + "]" * 150 + ")]" + E, least=2052),
    "deep-quotes": Case(VALUE + "[{'k': " * 75 + "'", "']}]}, ", "'" + "}]" * 75 + ")]" + E),
}

HOSTILE = [
    "'", '"', "' ", "',", "', ", "', b", "', b=", "')", "') ", "'),", "'), ", "'), g", "'), g(", "')]", "')] ",
    "'],", "']", "'}", "':", "': ", "','", "''", "'' ", "'x'#", "'x'#\n", "'x' ", "'x' + ", "'a', ", "\\",
    "\\'", "\\\\", "\\x4", "\\u12", "\\ud83d", "\\N{", "\\N{A", "{", "}", "[", "]", "(", ")", ",", ", ", "1",
    "1,", "1, ", "0_", "1e", "a", "a=", "a=1,", "f(", "f(),", "f(x=1),", "f(x='", "f(x='a'),", "#", "#\n",
    "\n", " ", "\\\n", "<|", "<", "<|tool_call_", S, S + "[", S + "[f(", "]" + S, "None,", "-", "--", "**",
    "**{", "x.", "f'", "f'{", "b'", "r'", "'''", '"""', "'''a", "{'a': ", "{'a': '", "'a': 'b', ", "{1, ",
    "(1, ", "('", "(('", "['", "{('a'", ";", ";f()", "é", "世", "😀", "\x00", "\ud83d", '{"name": "f"},',
    '{"name": "f", "arguments": {"a": "', "%", "' % x", "' + '", "'.upper()", "' if ",
    "'x'y', ", "'a', @, ",
]  # fmt: skip
"""What repeated patterns are made of: whatever a reader may look at again and again."""

BODIES = [
    *("[f(x='", "[f(x=", "[", "[f(", "f(x=['", "[f(x={'a': '", "[f(x='a\n", "[f(x=('", "[f(x=foo(), y='"),
    *('[{"name": "f", "arguments": {"a": "', "[f(x=f'", "[f(x={", "[f(x=foo('", ""),
]
"""How a list of calls may have begun."""
BARE = ["[f(x", " [f(", "[f()", "\n[w(1", "[ ", "[f(a=1)]\n"]
TAILS = ["", "')]", "]", "'", "'})]"]
