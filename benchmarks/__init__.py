"""What a delta costs: the parsers here, vLLM's and SGLang's, measured side by side.

    python -m benchmarks --help           the table, the JSON and the plot
    python -m benchmarks.server --help    in real servers: how long others wait
    python -m benchmarks.worst --help     a search for the text that costs most, without a clock

See ``docs/performance.md``.
"""
