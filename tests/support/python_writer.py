"""Call lists that CPython reads, in many styles, and tools that declare them: functions of a seed."""

from __future__ import annotations

import json
import random
import unicodedata
from typing import Any

from tests.support.words import NAMES, ODD_NAMES, ODD_PARAMETERS, PARAMETERS, WORDS, E


class PythonWriter:
    """Writes call lists that CPython reads, in many styles."""

    def __init__(self, rng: random.Random, *, blanks: bool = True, odd: bool = False) -> None:
        self.rng = rng
        self.blanks = blanks and rng.random() < 0.5
        self.odd = odd
        self.plain_strings = rng.random() < 0.15

    # -- tokens

    def gap(self) -> str:
        """Blanks between two tokens."""
        rng = self.rng
        if not self.blanks or rng.random() < 0.6:
            return ""
        return rng.choice(
            [" ", "  ", "\n", "\t", " \\\n", "# it's\n", '# "\n', "# )]\n", "\n# x, y=1\n ", " \f", "\\\n"]
        )

    def comma(self) -> str:
        """A comma with blanks around."""
        return self.gap() + "," + (self.gap() or self.rng.choice([" ", " ", ""]))

    def word(self) -> str:
        """A string's value."""
        rng = self.rng
        value = "".join(rng.choice(WORDS) for _ in range(rng.choice((1, 1, 1, 2, 3, 5))))
        if rng.random() < 0.1:
            value += "".join(
                chr(rng.choice((rng.randrange(1, 128), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000))))
                for _ in range(3)
            )
        return value.replace("\r", "").replace(E, "")

    def string(self) -> str:
        """A string in source form: one literal or several adjacent ones."""
        if self.plain_strings:
            return repr(self.word())
        count = self.rng.choice((1, 1, 1, 1, 1, 2, 3))
        between = self.rng.choice(("", " ", " ", "\n")) if not self.blanks else None
        parts = [self.literal(self.word()) for _ in range(count)]
        text = parts[0]
        for part in parts[1:]:
            gap = self.gap() if between is None else between
            if not gap and part[0] not in "'\"":
                gap = " "  # `''r''` is fine, but a quote followed by the same quote may make a triple one
            if not gap and part[0] == text[-1]:
                gap = " "
            text += gap + part
        return text

    def literal(self, value: str) -> str:
        """One literal for ``value`` (or nearly: the oracle reads the text, not the value)."""
        rng = self.rng
        style = rng.random()
        if style < 0.25:
            return repr(value)
        if style < 0.4:
            return json.dumps(value, ensure_ascii=rng.random() < 0.3 and value.isascii())
        quote = rng.choice(("'", '"', "'''", '"""'))
        prefix = rng.choice(("", "", "", "u", "U", "r", "R", "f", "F", "rf", "fR", "Fr"))
        raw, fstring = "r" in prefix.lower(), "f" in prefix.lower()
        if fstring:
            value = value.replace("{", "{{").replace("}", "}}")
        if raw:
            # What a raw literal cannot hold is left out.
            value = value.replace("\x00", "").replace(quote[0], "")
            if len(quote) == 1:
                value = value.replace("\n", "")
            if (len(value) - len(value.rstrip("\\"))) % 2:
                value += "."
            if rng.random() < 0.2:  # both characters stay, and neither ends the literal
                value += "\\" + rng.choice(("\n", quote[0], "\\", "\ny"))
            return prefix + quote + value + quote
        text = "".join(self.character(char, quote, fstring) for char in value)
        if not fstring and rng.random() < 0.2:
            text += rng.choice(("\\\n", "\\d", "\\/", "\\ ", "\\8", "\\0", "\\1011", "\\e", "\\$"))
        return prefix + quote + text + quote

    def character(self, char: str, quote: str, fstring: bool) -> str:
        """One character inside a literal, as itself or as one of its escapes."""
        rng, code = self.rng, ord(char)
        must = char in ("\\", quote[0], "\x00") or (char == "\n" and len(quote) == 1)
        if fstring and char in "{}":
            return char
        if not must and rng.random() < 0.9:
            return char
        forms = [f"\\U{code:08x}"]
        if code < 0x10000:
            forms.append(f"\\u{code:04X}")
        if code < 0x100:
            forms += [f"\\x{code:02x}", f"\\{code:03o}"]
        if char in "\a\b\f\n\r\t\v":
            forms += ["\\" + "abfnrtv"["\a\b\f\n\r\t\v".index(char)]] * 4
        if char in "\\'\"":
            forms += ["\\" + char] * 6
        name = unicodedata.name(char, "")
        if name:
            forms.append(f"\\N{{{rng.choice((name, name.lower()))}}}")
        return rng.choice(forms)

    def number(self) -> str:
        """A number in one of Python's forms."""
        rng = self.rng
        digits = str(rng.choice((0, 1, 7, 9, 10, 255, rng.randrange(10**6), rng.randrange(10**25))))
        kind = rng.randrange(12)
        if kind < 4:
            text = digits
        elif kind == 4:
            text = f"{int(digits):_}"
        elif kind == 5:
            text = rng.choice((hex, oct, bin))(int(digits))
            text = rng.choice((text, text.upper(), text[:2] + "_" + text[2:]))
        elif kind == 6:
            text = rng.choice(("00", "0_0", "0", "0000"))
        elif kind == 7:
            text = digits + "." + rng.choice(("", "0", "5", "25", "000001", "1_0"))
        elif kind == 8:
            text = "." + digits
        elif kind == 9:
            text = digits[:4] + rng.choice(("e5", "E+3", "e-7", "e1_0", ".5e2", ".e0", "e16", "e-400", "e22"))
        elif kind == 10:
            text = repr(rng.choice((rng.random(), rng.uniform(-1e20, 1e20), rng.random() * 1e-10)))
        else:
            text = "0" * rng.randrange(3) + digits + rng.choice((".5", "e1"))
        if text[0] not in "-+" and rng.random() < 0.25:
            text = rng.choice("-+") + rng.choice(("", "", " ")) + text
        return text

    def key(self) -> str:
        """A dict key."""
        if self.rng.random() < 0.8:
            return self.string()
        return self.rng.choice((self.number, lambda: self.rng.choice(("True", "None", "false", "(1)", "('k')"))))()

    def value(self, depth: int = 0) -> str:
        """A literal."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.42:
            return self.string()
        if kind < 0.58:
            return self.number()
        if kind < 0.68:
            return rng.choice(("True", "False", "None", "true", "false", "null"))
        if depth > 3:
            return rng.choice(("[]", "()", "{}", "[ ]", "{\n}"))
        if kind < 0.72:
            return "(" + self.gap() + self.value(depth + 1) + self.gap() + ")"
        opener, closer = rng.choice(("[]", "[]", "()", "{}", "{}", "{}"))
        count = rng.choice((0, 1, 1, 2, 3))
        if opener == "{" and count and rng.random() < 0.75:
            items = [
                self.key() + self.gap() + ":" + (self.gap() or rng.choice((" ", ""))) + self.value(depth + 1)
                for _ in range(count)
            ]
        elif opener == "{" and count:
            items = [rng.choice((self.string, self.number))() for _ in range(count)]
        else:
            items = [self.value(depth + 1) for _ in range(count)]
        text = self.comma().join(items)
        if items and (rng.random() < 0.2 or (opener == "(" and count == 1)):
            text += self.gap() + ","
        return opener + self.gap() + text + self.gap() + closer

    # -- calls

    def call(self, tools: dict[str, list[str]] | None = None) -> str:
        """A call whose arguments are literals."""
        rng = self.rng
        name = rng.choice(ODD_NAMES if self.odd and rng.random() < 0.4 else NAMES)
        parameters = list(PARAMETERS) + (ODD_PARAMETERS if self.odd else [])
        rng.shuffle(parameters)
        chosen = parameters[: rng.choice((0, 1, 1, 2, 2, 3, 4))]
        arguments: list[str] = []
        if tools and tools.get(name) and rng.random() < 0.5:
            given = rng.randrange(len(tools[name]) + 1)
            arguments += [self.value() for _ in range(given)]
            chosen = [parameter for parameter in chosen if parameter not in tools[name][:given]]
        for parameter in chosen:
            arguments.append(parameter + self.gap() + "=" + self.gap() + self.value())
        if rng.random() < 0.08:
            items = ", ".join(f"{self.literal(f'key{i}')}: {self.value(2)}" for i in range(rng.randrange(3)))
            arguments.append("**" + self.gap() + "{" + items + "}")
        text = self.comma().join(arguments)
        if arguments and rng.random() < 0.15:
            text += self.gap() + ","
        return f"{name}({self.gap()}{text}{self.gap()})"

    def calls(self, tools: dict[str, list[str]] | None = None, most: int = 4) -> str:
        """A list of calls with its brackets."""
        count = self.rng.choice([n for n in (1, 1, 1, 2, 2, 3, 4) if n <= most])
        text = self.comma().join(self.call(tools) for _ in range(count))
        if self.rng.random() < 0.1:
            text += self.gap() + ","
        return f"[{text}{self.gap()}]"


def make_tools(rng: random.Random) -> dict[str, list[str]] | None:
    """Declared tools: none, or some of the names with some parameters."""
    if rng.random() < 0.4:
        return None
    names = rng.sample(NAMES, rng.randrange(1, 7))
    return {name: rng.sample(PARAMETERS, rng.randrange(5)) for name in names}


def typed(rng: random.Random) -> dict[str, Any] | None:
    """Declared tools, half of the time with the types of their parameters: they decide about a lone object."""
    tools = make_tools(rng)
    if tools is None or rng.random() < 0.5:
        return tools
    kinds = ("string", "string", "object", "array", "integer", {})
    return {name: {parameter: rng.choice(kinds) for parameter in parameters} for name, parameters in tools.items()}
