"""The corpus of expressions: CPython's grammar as the bad value between two good calls.

Random syntax trees, written by ``ast.unparse``, with string literals of every style put in afterwards, and read back
by CPython: what does not parse is not an example.  Nor is an operator between two strings that no program means
(``'a' - 'b'``): the contract reads that as text, since shell commands are full of it.  Strings come first more often
than chance would have it, since a quote is where a reader must decide what it sees.
"""

from __future__ import annotations

import ast
import io
import random
import tokenize
import warnings
from collections.abc import Callable, Iterator

from .example import END, START, Example, dump
from .python import read_by_python

_NAMES = ("x", "y", "self", "data", "path", "np", "None", "true", "f", "os")
_WORDS = (
    "a", "hello world", "it", "", "a, b", "k: v", "f(x)", "[1]", ")", "]", "it's", 'say "x"', "\n", "\\d", "a=1",
    "%s", "), bash(command=", "b'", "#", "{x}", "if", "end", "é", ", 'z", "')", "x\ny",
)  # fmt: skip
_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.FloorDiv, ast.MatMult, ast.BitOr, ast.BitAnd)
_SHIFTS = (ast.BitXor, ast.LShift, ast.RShift)
_COMPARE = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_PLACEHOLDER = "ztext{}z"
MAX_LENGTH = 400  # characters; longer ones say nothing new


class _Trees:
    """Random expressions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.strings = 0

    def expression(self, depth: int = 0) -> ast.expr:
        rng = self.rng
        if depth > 3 or rng.random() < 0.15 * depth:
            return self._leaf()
        makers: tuple[Callable[[int], ast.expr], ...] = (
            self._binary, self._binary, self._compare, self._boolean, self._unary, self._choice, self._call,
            self._attribute, self._subscript, self._subscript, self._slice, self._lambda, self._comprehension,
            self._container, self._dict, self._format, self._named, self._starred, self._keyword_call, self._yield,
        )  # fmt: skip
        return rng.choice(makers)(depth + 1)

    def first(self, depth: int) -> ast.expr:
        """The operand that comes first: a string more often than not."""
        return self._string() if self.rng.random() < 0.6 else self.expression(depth)

    def _string(self) -> ast.expr:
        self.strings += 1
        return ast.Name(_PLACEHOLDER.format(self.strings), ast.Load())

    def _name(self) -> str:
        return self.rng.choice(_NAMES[:6])

    def _leaf(self) -> ast.expr:
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return self._string()
        if kind < 0.65:
            return ast.Name(self._name(), ast.Load())
        return ast.Constant(rng.choice((0, 1, 5, 2.5, 1j, True, None, ..., b"x", 10**20)))

    def _binary(self, depth: int) -> ast.expr:
        operator = self.rng.choice(_BINARY + _SHIFTS)
        return ast.BinOp(self.first(depth), operator(), self.expression(depth))

    def _compare(self, depth: int) -> ast.expr:
        count = self.rng.choice((1, 1, 2))
        return ast.Compare(
            self.first(depth),
            [self.rng.choice(_COMPARE)() for _ in range(count)],
            [self.expression(depth) for _ in range(count)],
        )

    def _boolean(self, depth: int) -> ast.expr:
        operator = self.rng.choice((ast.And, ast.Or))
        return ast.BoolOp(operator(), [self.first(depth), self.expression(depth)])

    def _unary(self, depth: int) -> ast.expr:
        operator = self.rng.choice((ast.Not, ast.USub, ast.UAdd, ast.Invert))
        return ast.UnaryOp(operator(), self.expression(depth))

    def _choice(self, depth: int) -> ast.expr:
        return ast.IfExp(self.expression(depth), self.first(depth), self.expression(depth))

    def _call(self, depth: int) -> ast.expr:
        function = ast.Attribute(self.first(depth), self.rng.choice(("join", "format", "upper", "split")), ast.Load())
        return ast.Call(function, [self.expression(depth) for _ in range(self.rng.randrange(3))], [])

    def _keyword_call(self, depth: int) -> ast.expr:
        keywords = [ast.keyword(self.rng.choice(("sep", "x", "path")), self.expression(depth))]
        if self.rng.random() < 0.3:
            keywords.append(ast.keyword(None, self.expression(depth)))
        return ast.Call(ast.Name(self._name(), ast.Load()), [self.first(depth)], keywords)

    def _attribute(self, depth: int) -> ast.expr:
        return ast.Attribute(self.first(depth), self._name(), ast.Load())

    def _subscript(self, depth: int) -> ast.expr:
        return ast.Subscript(self.first(depth), self.expression(depth), ast.Load())

    def _slice(self, depth: int) -> ast.expr:
        def bound() -> ast.expr | None:
            return self.expression(depth + 1) if self.rng.random() < 0.5 else None

        made: ast.expr = ast.Slice(bound(), bound(), bound() if self.rng.random() < 0.3 else None)
        if self.rng.random() < 0.3:
            made = ast.Tuple([made, ast.Slice(None, None, None)], ast.Load())
        return ast.Subscript(self.first(depth), made, ast.Load())

    def _lambda(self, depth: int) -> ast.expr:
        names = self.rng.sample(("a", "b"), self.rng.randrange(3))
        defaults = [self.expression(depth)] if names and self.rng.random() < 0.4 else []
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, defaults)
        return ast.Lambda(arguments, self.expression(depth))

    def _comprehension(self, depth: int) -> ast.expr:
        loop = ast.comprehension(
            ast.Name(self._name(), ast.Store()),
            self.expression(depth),
            [self.expression(depth)] if self.rng.random() < 0.4 else [],
            0,
        )
        maker = self.rng.choice((ast.ListComp, ast.SetComp, ast.GeneratorExp))
        if self.rng.random() < 0.25:
            return ast.DictComp(self.first(depth), self.expression(depth), [loop])
        return maker(self.first(depth), [loop])

    def _container(self, depth: int) -> ast.expr:
        elements = [self.first(depth), *(self.expression(depth) for _ in range(self.rng.randrange(3)))]
        maker = self.rng.choice((ast.List, ast.Tuple, ast.Set))
        return ast.Set(elements) if maker is ast.Set else maker(elements, ast.Load())

    def _dict(self, depth: int) -> ast.expr:
        count = self.rng.choice((1, 2))
        keys: list[ast.expr | None] = [self.first(depth) for _ in range(count)]
        if self.rng.random() < 0.2:
            keys[-1] = None
        return ast.Dict(keys, [self.expression(depth) for _ in range(count)])

    def _format(self, depth: int) -> ast.expr:
        return ast.JoinedStr([ast.Constant("a "), ast.FormattedValue(ast.Name(self._name(), ast.Load()), -1, None)])

    def _named(self, depth: int) -> ast.expr:
        return ast.NamedExpr(ast.Name(self._name(), ast.Store()), self.expression(depth))

    def _starred(self, depth: int) -> ast.expr:
        return ast.List([ast.Starred(self.first(depth), ast.Load()), self.expression(depth)], ast.Load())

    def _yield(self, depth: int) -> ast.expr:
        if self.rng.random() < 0.5:
            return ast.Await(self.expression(depth))
        return ast.Yield(self.first(depth))


def literal(rng: random.Random) -> str:
    """One string literal, or several adjacent ones, in any of Python's styles."""
    parts = []
    for _ in range(rng.choice((1, 1, 1, 1, 2))):
        word = rng.choice(_WORDS)
        style = rng.randrange(6)
        if style < 3:
            parts.append(repr(word))
        elif style == 3:
            parts.append(dump(word))
        elif style == 4:
            quote = rng.choice(('"""', "'''"))
            parts.append(quote + word.replace("\\", "\\\\").replace(quote[0], "\\" + quote[0]) + quote)
        else:
            prefix = rng.choice(("r", "b", "u", "f", "Rb", "F"))
            word = "".join(char for char in word if char not in "\\'\"{}\n" and char.isascii())
            quote = rng.choice("'\"")
            parts.append(prefix + quote + word + quote)
    return rng.choice((" ", " ", "\n")).join(parts) if len(parts) > 1 else parts[0]


def expression(rng: random.Random) -> str:
    """The source of one expression, as CPython reads it back."""
    while True:
        trees = _Trees(rng)
        tree = trees.expression()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                source = ast.unparse(ast.fix_missing_locations(ast.Expression(tree)))
                for number in range(1, trees.strings + 1):
                    source = source.replace(_PLACEHOLDER.format(number), literal(rng))
                if len(source) <= MAX_LENGTH and rng.random() < 0.3:
                    source = source.replace(" ", "") if _reads(source.replace(" ", "")) else source
                if len(source) <= MAX_LENGTH and _reads(source) and _is_meant(source):
                    return source
        except (ValueError, RecursionError):
            continue


# Between two strings these are expressions (``*`` is not: strings are multiplied by numbers only).
_MEANT = frozenset(["+", "%", "==", "!=", "<", "<=", ">", ">=", ",", ":", "=", "(", "[", "{", ")", "]", "}", "."])


def _is_meant(source: str) -> bool:
    """Whether no operator stands between two strings that cannot."""
    try:
        tokens = [
            token for token in tokenize.generate_tokens(io.StringIO(f"({source})").readline) if token.string.strip()
        ]
    except (tokenize.TokenError, IndentationError):
        return False
    return all(
        middle.string in _MEANT or middle.type != tokenize.OP
        for first, middle, last in zip(tokens, tokens[1:], tokens[2:])
        if first.type == last.type == tokenize.STRING
    )


def _reads(source: str) -> bool:
    """Whether it is one argument of a call."""
    try:
        tree = ast.parse(f"[f(x={source})]", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(tree, ast.List) and len(tree.elts) == 1 and len(tree.elts[0].keywords) == 1  # type: ignore[attr-defined]


def examples(count: int, seed: int, declared: bool | None) -> Iterator[Example]:
    """``count`` turns of three calls, the middle one with the expression.  Half of them with declared tools."""
    rng = random.Random(f"expressions {seed}")
    made = 0
    while made < count:
        source = expression(rng)
        place = rng.randrange(5)
        call = (
            f"write_file(path='a', content={source})",
            f"write_file(content={source}, path='b')",
            f"bash(command={source})",
            f"edit(path='a', edits=['b', {source}, 'c'])",
            f"save(title='t', meta={{'k': {source}, 'n': 'x'}})",
        )[place]
        python = read_by_python(f"[{call}]")
        before = ("search(pattern='a b', limit=3)", ("search", dump({"pattern": "a b", "limit": 3})))
        behind = ("get_weather(city='Paris')", ("get_weather", dump({"city": "Paris"})))
        made += 1
        yield Example(
            text=f"{START}[{before[0]}, {call}, {behind[0]}]{END}",
            row=("argument", "argument", "argument", "list", "dict")[place],
            target=python[0] if python else None,
            siblings=(before[1], behind[1]),
            declared=rng.random() < 0.5 if declared is None else declared,
        )
