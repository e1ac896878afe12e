"""What generated texts are made of: names, words of prose and code, and the grammar's own atoms."""

S, E = "<|tool_call_start|>", "<|tool_call_end|>"
PYTHON_START, PYTHON_END = "<|python_start|>", "<|python_end|>"

NAMES = ["f", "g", "w", "get_weather", "_x", "r", "u", "fr", "b", "a.b", "x1", "Set", "print", "search.web_v2"]
ODD_NAMES = ["max-results", "import", "mcp/get", "1st", "a:b", "None", "wetter_für", "ﬁnd", "a.b-c", "class", "true"]
PARAMETERS = ["a", "b", "x", "path", "content", "n", "q", "r", "f", "lat", "_k", "u"]
ODD_PARAMETERS = ["from", "max-n", "in", "größe", "1st", "lambda", "True", "a.b"]

WORDS = [
    "a", "x", "hello world", "It's late", 'say "hi"', "", " ", "\n", "\t", "{alpha: 1}", "[1, 2]", "f(x=1)",
    "), g(y=2)]", ")]", "])", "\\", "\\d+", "C:\\dir\\", "\\n", "\\x41", "'", '"', "''", "'''", '""', '"""',
    "#", "# no comment", ",", ":", "=", "a=1, b=2", "==", "**", "<", "<|", "<|tool_call", "<|tool_call_end",
    "<|im_", "|>", "é", "世界", "😀", "e\u0301", "\u2028", "\x00", "\x07", "\x1b[31m", "\x7f", "\u00a0", "\ufeff",
    "{", "}", "{{", "sed -n '1,9p' f", "awk '{print $1}' d.csv", "import os\nprint('x')\n",
    '{"k": "v", "l": [1, null]}', "don't", "%s", "http://x/y?z=1&w=2", "x" * 60, "0", "1e5", "None",
]  # fmt: skip

ATOMS = [
    "'", '"', "'''", '"""', "\\", "\\'", '\\"', "\\\\", "\\n", "\\x4", "\\u12", "\\ud83d", "\\ude00", "\\N{",
    "\\N{BULLET}", "\\\n", "[", "]", "(", ")", "{", "}", ",", ", ", ":", ";", "=", "==", "**", "*", "+", "-",
    " ", "\n", "\t", "#", "# x\n", "f", "f(", "f(x=", "g(", "w(a='", "a", "a=", "x=", "b=1", "name", "name(",
    ".", "1", "0", "07", "1e5", "1.", "0x", "_", "e", "j", "True", "null", "None", "r", "rb", "u", "f'", "b'",
    S, E, S + "[", "]" + E, S + "[f(", "<|tool_call_", "<|", "<", "|>", "<|im_end|>", '{"name": "',
    '"arguments": ', '{"', "é", "😀", "\ud83d", "\ude00", "\x00", "it's", "), g(y=", ")]", "')]", "'),",
    "', b=", "\r\n", "foo()", "[]", "()",
]  # fmt: skip
LLAMA_ATOMS = [
    *ATOMS,
    PYTHON_START,
    PYTHON_END,
    PYTHON_START + "[",
    "<|eom|>",
    "<|eot|>",
    "<|python_",
    "[f(",
    "[w(a=",
    "\n[w(",
]
