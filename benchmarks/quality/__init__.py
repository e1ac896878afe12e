"""What arrives: how many calls come out exactly, given back as text, or wrong.

    python -m benchmarks.quality --corpus raw|slips|expressions [--count N] [--show N]

Three corpora, made from a seed and from what is installed (no network):

- ``raw``: texts somebody else wrote (functions of installed packages, shell scripts, regular expressions, LaTeX,
  Windows paths, JSON and other documents) as argument values, written as chat templates write them, which is with
  quotes around and nothing escaped, and as escaping writers do;
- ``slips``: plain turns of two calls with one slip of punctuation;
- ``expressions``: any valid Python expression as the bad value between two good calls.

The same texts go through this parser and, where they can be imported, the stock parsers of vLLM and SGLang's detector.
"""
