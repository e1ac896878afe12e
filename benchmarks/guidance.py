"""What llguidance, the engine behind vLLM's Rust front end, takes for a grammar in Lark, beside the same tools as JSON.

    python -m benchmarks.guidance [--tokenizer FILE] [--rounds 5]

As :mod:`benchmarks.grammar` does it for xgrammar: the same vocabulary, one process, the best of the rounds, CPU time.
Each round has a new matcher, as each request has: what a matcher remembers it has learnt in its own answer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

from lfm2_fixed.grammar import lark
from lfm2_fixed.grammar.answer import _build

from .grammar import END, START, arguments_of, forced_json, make_tools, vocabulary


class Bench:
    def __init__(self, tokenizer: Any, rounds: int) -> None:
        from llguidance import LLTokenizer

        self.ids = tokenizer.get_vocab()
        self._tokenizer = tokenizer
        self._size = max(self.ids.values()) + 1
        self._engine = LLTokenizer(tokenizer.to_str(), n_vocab=self._size)
        self._rounds = rounds

    def costs(self, grammar: str, text: str) -> tuple[float, float, float]:
        """Seconds to compile; for the mask and the step of a token, the mean and the slowest."""
        from llguidance import LLMatcher
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        mask = allocate_token_bitmask(1, self._size)
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        compiled = float("inf")
        best: list[float] = []
        for _ in range(self._rounds):
            begun = time.process_time()
            matcher = LLMatcher(self._engine, grammar, log_level=0)
            compiled = min(compiled, time.process_time() - begun)
            times = []
            for token in tokens:
                begun = time.thread_time()
                fill_next_token_bitmask(matcher, mask, 0)
                taken = matcher.consume_token(token)
                times.append(time.thread_time() - begun)
                assert taken, matcher.get_error()[:500]
            best = list(map(min, best, times)) if best else times
        return compiled, statistics.mean(best), max(best)

    def compare(self, count: int, **limits: Any) -> dict[str, tuple[float, float, float]]:
        """Of our grammar and of JSON's: the costs, for up to ten calls."""
        from llguidance import LLMatcher

        tools, calls = make_tools(count, **limits)
        _build.cache_clear()
        ours = str(lark(tools, "required", token_ids=self.ids))
        text = START + "[" + ", ".join(f"{name}({arguments_of(values)})" for name, values in calls[:10]) + "]" + END
        theirs = LLMatcher.grammar_from_json_schema(forced_json(tools))
        as_json = json.dumps([{"name": name, "parameters": values} for name, values in calls[:10]])
        return {"lark": self.costs(ours, text), "json": self.costs(theirs, as_json)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json with LFM2's special tokens")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    bench = Bench(vocabulary(options.tokenizer), options.rounds)
    cases: list[tuple[str, int, dict[str, Any]]] = [(f"{n} tools", n, {}) for n in (1, 10, 50)]
    cases += [(f"1 tool, maxLength {n}", 1, {"maxLength": n}) for n in (40, 400)]
    for title, count, limits in cases:
        for notation, (compiled, mean, slowest) in bench.compare(count, **limits).items():
            print(
                f"{title:24} {notation}  compile {compiled * 1e3:5.1f} ms, mask and step {mean * 1e6:4.0f} µs"
                f", slowest {slowest * 1e6:5.0f} µs",
                flush=True,
            )


if __name__ == "__main__":
    main()
