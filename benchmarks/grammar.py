"""What constrained calls cost beside vLLM's JSON constraint for the same tools: compile time and token masks.

    python -m benchmarks.grammar [--tokenizer tokenizer.json] [--tools 1 10 50] [--rounds 5]
    python -m benchmarks.grammar --schemas [FILE.jsonl]

Both grammars are compiled for the same vocabulary in one process, in turns; shown are the best of the
rounds (CPU time to build and compile, time per token for the masks) and the ratios.  Needs xgrammar and
tokenizers, which come with vLLM; CPU only.  Without ``--tokenizer`` a byte-level BPE is trained first, on this
project's own files and on words made up from a seed: the same on every machine.

``--schemas`` tries the grammar on tools (one ``{"name": …, "parameters": …}`` a line; by default those of
``tests/data/tools.jsonl``): how many valid calls it accepts, how many invalid ones in silence, what was relaxed,
and how long building takes.  Needs ``jsonschema``.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lfm2_fixed.grammar.tag import _build, structural_tag

START, END, STOP = "<|tool_call_start|>", "<|tool_call_end|>", "<|im_end|>"

_FIELDS: list[tuple[str, dict[str, Any], Any]] = [
    ("path", {"type": "string"}, "src/app/main.py"),
    ("query", {"type": "string", "description": "What to look for"}, "SELECT name FROM users WHERE age > 21"),
    ("limit", {"type": "integer", "minimum": 1, "maximum": 100}, 25),
    ("verbose", {"type": "boolean"}, True),
    ("unit", {"type": "string", "enum": ["celsius", "fahrenheit", "kelvin"]}, "celsius"),
    ("ratio", {"type": "number"}, 0.75),
    ("tags", {"type": "array", "items": {"type": "string"}}, ["alpha", "beta", "release candidate"]),
    (
        "options",
        {
            "type": "object",
            "properties": {
                "depth": {"type": "integer"},
                "mode": {"enum": ["fast", "safe"]},
                "note": {"type": "string"},
            },
            "required": ["mode"],
            "additionalProperties": False,
        },
        {"depth": 3, "mode": "safe", "note": "keep the <b>bold</b> parts"},
    ),
    ("day", {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}, "2026-11-30"),
    ("target", {"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
]
_VERBS = ["read", "write", "search", "list", "delete", "update", "create", "send", "fetch", "convert"]
_NOUNS = ["file", "user", "order", "message", "weather", "event", "record"]


def make_tools(count: int, **limits: Any) -> tuple[list[dict[str, Any]], list[tuple[str, dict[str, Any]]]]:
    """``count`` tools of three to seven parameters, and a call of each.  ``limits`` go into every plain string."""
    tools: list[dict[str, Any]] = []
    calls: list[tuple[str, dict[str, Any]]] = []
    for n in range(count):
        name = f"{_VERBS[n % 10]}_{_NOUNS[n % 7]}" + (f"_{n // 70}" if n >= 70 else "")
        fields = [_FIELDS[(n + k * 3) % len(_FIELDS)] for k in range(3 + n % 5)]
        properties = {
            key: {**schema, **limits} if schema.get("type") == "string" and len(schema) < 3 and limits else schema
            for key, schema, _ in fields
        }
        parameters = {"type": "object", "properties": properties, "required": [key for key, _, _ in fields[:2]]}
        tools.append({"type": "function", "function": {"name": name, "parameters": parameters}})
        calls.append((name, {key: value for key, _, value in fields}))
    return tools, calls


def forced_json(tools: list[dict[str, Any]]) -> str:
    """The schema that vLLM's ``tool_choice="required"`` forces on models without a grammar of their own."""
    return json.dumps(
        {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "anyOf": [
                    {
                        "properties": {
                            "name": {"type": "string", "enum": [tool["function"]["name"]]},
                            "parameters": tool["function"]["parameters"],
                        },
                        "required": ["name", "parameters"],
                    }
                    for tool in tools
                ],
            },
        }
    )


def vocabulary(path: str | None) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if path:
        return Tokenizer.from_file(path)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=65536,
        special_tokens=["<|pad|>", "<|startoftext|>", STOP, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(), trainer)
    return tokenizer


def _texts() -> Iterator[str]:
    """What the vocabulary is trained on: code and prose of this project, and made-up words to fill it up."""
    home = Path(__file__).resolve().parent.parent
    for folder in ("lfm2_fixed", "benchmarks", "docs"):
        for path in sorted((home / folder).rglob("*")):
            if path.suffix in (".py", ".md"):
                yield path.read_text(encoding="utf-8")
    chance = random.Random(1)
    syllables = [(a, b) for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "ai", "ou", "er", "in")]
    parts = [a + b for a, b in syllables]
    words = ["".join(chance.choices(parts, k=chance.randint(1, 4))) for _ in range(60_000)]
    for _ in range(4_000):
        line = chance.choices(words, k=60)
        yield " ".join(chance.choice([word, word, word.title(), f"{word}_{word[:2]}", f'"{word}"']) for word in line)


class Bench:
    def __init__(self, tokenizer: Any, rounds: int) -> None:
        import xgrammar

        self._xgrammar = xgrammar
        self._tokenizer = tokenizer
        self._rounds = rounds
        vocabulary = tokenizer.get_vocab()
        self._size = max(vocabulary.values()) + 1
        texts = [""] * self._size
        for text, number in vocabulary.items():
            texts[number] = text
        self.ids = vocabulary
        self._info = xgrammar.TokenizerInfo(
            texts,
            vocab_type=xgrammar.VocabType.BYTE_LEVEL,
            vocab_size=self._size,
            stop_token_ids=[vocabulary[STOP]] if STOP in vocabulary else None,
        )

    def compile(self, make: Callable[[Any], Any]) -> tuple[float, Any]:
        """Seconds of CPU time in all threads, and the grammar; nothing is cached."""
        compiler = self._xgrammar.GrammarCompiler(self._info, max_threads=8, cache_enabled=False)
        begun = time.process_time()
        grammar = make(compiler)
        return time.process_time() - begun, grammar

    def masks(self, grammar: Any, text: str) -> tuple[float, float]:
        """Seconds a token for mask and step together: the mean, and the slowest."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        mask = self._xgrammar.allocate_token_bitmask(1, self._size)
        best: list[float] = []  # by token, over the rounds
        for _ in range(self._rounds):
            matcher = self._xgrammar.GrammarMatcher(grammar)
            times = []
            for token in tokens:
                begun = time.perf_counter()
                matcher.fill_next_token_bitmask(mask)
                accepted = matcher.accept_token(token)
                times.append(time.perf_counter() - begun)
                assert accepted, f"refused: {self._tokenizer.id_to_token(token)!r} of {text!r}"
            best = list(map(min, best, times)) if best else times
        return statistics.mean(best), max(best)

    def compare(self, count: int, **limits: Any) -> dict[str, float]:
        tools, calls = make_tools(count, **limits)
        schema = forced_json(tools)
        python = START + "[" + ", ".join(f"{name}({arguments_of(args)})" for name, args in calls[:10]) + "]" + END
        as_json = json.dumps([{"name": name, "parameters": args} for name, args in calls[:10]])
        ours, theirs, built = [], [], []
        for _ in range(self._rounds):
            _build.cache_clear()
            begun = time.process_time()
            tag = structural_tag(tools, "required", token_ids=self.ids)
            built.append(time.process_time() - begun)
            seconds, our_grammar = self.compile(lambda compiler: compiler.compile_structural_tag(tag))  # noqa: B023
            ours.append(seconds)
            seconds, their_grammar = self.compile(lambda compiler: compiler.compile_json_schema(schema))
            theirs.append(seconds)
        our_mask, our_worst = self.masks(our_grammar, python)
        their_mask, their_worst = self.masks(their_grammar, as_json)
        return {
            "build": min(built),
            "compile": min(ours),
            "json compile": min(theirs),
            "mask": our_mask,
            "worst mask": our_worst,
            "json mask": their_mask,
            "json worst mask": their_worst,
        }


def arguments_of(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())


def optional_arguments(bench: Bench, count: int) -> tuple[float, float]:
    """Build and compile seconds for one tool with ``count`` optional parameters."""
    properties = {f"option_{n}": {"type": "integer"} for n in range(count)}
    tools = [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": properties}}}
    ]
    _build.cache_clear()
    begun = time.process_time()
    tag = structural_tag(tools, "required", token_ids=bench.ids)
    built = time.process_time() - begun
    seconds, _ = bench.compile(lambda compiler: compiler.compile_structural_tag(tag))
    return built, seconds


def schemas(path: Path | None, tries: int = 60) -> None:
    """Print what the grammar accepts of calls of the tools in ``path``, and how long it took to build."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serve"))  # the support of the tests uses it
    from lfm2_fixed.grammar import relaxed as reports
    from lfm2_fixed.grammar import work
    from tests.support import DATA, sampling
    from tests.support import tags as writing

    path = path or DATA / "tools.jsonl"
    known = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    reported: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: reported.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("lfm2_fixed.grammar").addHandler(handler)
    logging.getLogger("lfm2_fixed.grammar").propagate = False
    structural_tag(known[:1], "auto")  # imports
    counts = dict.fromkeys(["valid", "accepted", "invalid", "silent", "relaxed"], 0)
    times: list[float] = []
    for one in known:
        name, schema = one["name"], one["parameters"]
        tools = [{"type": "function", "function": one}]
        work.forget()
        _build.cache_clear()
        reports.forget()
        before = len(reported)
        begun = time.process_time()
        tag = structural_tag(tools, "required", token_ids=writing.IDS)
        times.append(time.process_time() - begun)
        relaxed = len(reported) > before
        counts["relaxed"] += relaxed
        grammar = writing.compiled(tag)
        validator = sampling.validator(schema)
        chance = random.Random(name)
        writer = writing.Writer(chance)
        for _ in range(tries):
            arguments = sampling.sample(schema, chance, schema)
            for value in [arguments, *(sampling.damaged(arguments, chance) for _ in range(3))]:
                valid = validator.is_valid(value)
                if not isinstance(value, dict) or (valid and value is not arguments):
                    continue  # damaged and valid all the same: mostly by what validators leave out, formats
                accepted = writing.accepts(grammar, f"{START}[{writer.call(name, value)}]{END}")
                counts["valid" if valid else "invalid"] += 1
                counts["accepted"] += valid and accepted
                counts["silent"] += accepted and not valid and not relaxed
    times.sort()
    print(f"{len(known)} tools, {counts['relaxed']} with something relaxed:")
    for message in sorted(set(reported)):
        print("  ", message)
    print(f"valid calls accepted: {counts['accepted']} of {counts['valid']}")
    print(f"invalid calls accepted in silence: {counts['silent']} of {counts['invalid']}")
    at = [times[int((len(times) - 1) * share)] * 1e3 for share in (0.5, 0.99, 1)]
    print(f"build: p50 {at[0]:.1f} ms, p99 {at[1]:.1f} ms, worst {at[2]:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json with LFM2's special tokens")
    parser.add_argument("--tools", type=int, nargs="+", default=[1, 10, 50], metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    parser.add_argument("--schemas", type=Path, nargs="?", const=Path(), metavar="FILE", help="try tools instead")
    options = parser.parse_args()
    if options.schemas is not None:
        schemas(options.schemas if options.schemas.name else None)
        return
    bench = Bench(vocabulary(options.tokenizer), options.rounds)
    cases: list[tuple[str, int, dict[str, Any]]] = [(f"{n} tools", n, {}) for n in options.tools]
    cases += [("1 tool, maxLength 40", 1, {"maxLength": 40}), ("1 tool, maxLength 400", 1, {"maxLength": 400})]
    results = {}
    print(f"{'':24} {'build':>8} {'compile':>9} {'JSON':>9} {'ratio':>6}  {'mask+step':>9} {'JSON':>9} {'ratio':>6}")
    for title, count, limits in cases:
        got = results[title] = bench.compare(count, **limits)
        milli = {name: seconds * 1e3 for name, seconds in got.items()}
        print(
            f"{title:24} {milli['build']:5.1f} ms {milli['compile']:6.1f} ms {milli['json compile']:6.1f} ms"
            f" {got['compile'] / got['json compile']:6.2f}  {milli['mask'] * 1e3:6.1f} µs"
            f" {milli['json mask'] * 1e3:6.1f} µs {got['mask'] / got['json mask']:6.2f}",
            flush=True,
        )
    print("\nOne tool whose parameters are all optional:")
    for count in (4, 12, 24, 48, 96):
        built, seconds = min(optional_arguments(bench, count) for _ in range(options.rounds))
        results[f"{count} optional"] = {"build": built, "compile": seconds}
        print(f"{count:4} parameters: build {built * 1e3:6.1f} ms, compile {seconds * 1e3:7.1f} ms", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
