"""usage: scripts/pictures.py [--check]

Draw the README's pictures: docs/repro.svg, the terminal of `lfm2-fixed repro` with its real output, and
docs/badges.svg, what is supported, from pyproject.toml and the code.

The first needs vLLM 0.33.0 and rich, and no engine:

    PYTHONPATH=$(scripts/vllm-sources 0.33.0) .venv-serve/bin/python scripts/pictures.py

--check draws nothing, and says with exit status 1 what of a picture is no longer true.  Tests do the same.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

REPRO = ROOT / "docs" / "repro.svg"
BADGES = ROOT / "docs" / "badges.svg"
COMMANDS = ["lfm2-fixed repro num/half", "lfm2-fixed repro --brief 'str/*' 'raw/*' 'turn/*'"]
"""One in full, and enough rows of the table to see the kinds; all 62 would make the picture too tall to be read."""
COLUMNS = 86
"""As narrow as the longest line that is not prose allows: the narrower, the larger the letters."""
SVG = "{http://www.w3.org/2000/svg}"

# rich's own format loads a font from another host, which a page with a strict policy refuses.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>The output of lfm2-fixed repro</title>
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""  # noqa: E501


def repro_terminal() -> tuple[str, str]:
    """The picture of the terminal and its text.  Raises what importing vLLM raises."""
    import logging
    import os

    from rich.console import Console

    class Terminal(Console):
        """Wraps long lines itself: a picture has no terminal that would do it."""

        def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
            super().print(*objects, **options)

    from lfm2_fixed.repro.readers import read, vllm_readers
    from lfm2_fixed.repro.report import print_report

    logging.disable(logging.CRITICAL)
    readers = vllm_readers()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Terminal(
            record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor", highlight=False
        )
        for command in COMMANDS:
            payloads, brief = chosen(command)
            readings = {name: {p.id: read(reader, p) for p in payloads} for name, reader in readers.items()}
            console.print(f"$ {command}", markup=False, style="bold")
            print_report(console, payloads, readings, details=not brief)
            console.print()
    text = console.export_text(clear=False)
    return console.export_svg(title="vLLM's own parsers against lfm2-fixed", code_format=FORMAT), text


def chosen(command: str) -> tuple[list[Any], bool]:
    """What a command line of ``lfm2-fixed repro`` shows: its payloads, and whether it is brief."""
    from fnmatch import fnmatch

    from lfm2_fixed.repro.payloads import PAYLOADS

    words = shlex.split(command)[2:]
    patterns = [word for word in words if not word.startswith("--")]
    return [p for p in PAYLOADS if any(fnmatch(p.id, pattern) for pattern in patterns)], "--brief" in words


def text_of(svg: str) -> list[str]:
    """The lines that a picture of a terminal shows, without blanks: it places words, and draws no blank."""
    lines: dict[float, dict[float, str]] = {}
    for element in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        if "y" in element.attrib and "clip-path" in element.attrib:
            row = lines.setdefault(float(element.attrib["y"]), {})
            row[float(element.attrib["x"])] = element.text or ""
    joined = ["".join(text for _, text in sorted(row.items())) for _, row in sorted(lines.items())]
    return [bare for line in joined if (bare := "".join(line.split()))]


def badges() -> str:
    """The row of badges: each is a fact that is read from where it is decided."""
    from lfm2_fixed.plugin.versions import NEWEST, OLDEST
    from lfm2_fixed.repro.payloads import PAYLOADS

    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pythons = re.findall(r"Python :: (3\.\d+)\"", project)
    licence = re.search(r'^license = "(.*)"', project, re.M)
    assert pythons and licence
    facts = [
        ("vLLM", f"{OLDEST} – {NEWEST}", "#1a6fb0"),
        ("Python", f"{pythons[0]} – {pythons[-1]}", "#1a6fb0"),
        ("dependencies", "none", "#2f7d32"),
        ("model outputs of repro", f"{len(PAYLOADS)} of {len(PAYLOADS)} right", "#2f7d32"),
        ("license", licence[1], "#5f6368"),
    ]
    x, parts = 0, []
    for name, value, colour in facts:
        # 7 px a letter of 12 px DejaVu or Verdana, and 8 px on either side.
        left, right = 7 * len(name) + 16, 7 * len(value) + 16
        parts.append(
            f'<rect x="{x}" width="{left + right}" height="20" rx="3" fill="#3c4043"/>'
            f'<path d="M{x + left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" fill="{colour}"/>'
            f'<text x="{x + left / 2:g}" y="14">{escape(name)}</text>'
            f'<text x="{x + left + right / 2:g}" y="14">{escape(value)}</text>'
        )
        x += left + right + 6
    body = "\n".join(parts)
    label = "; ".join(f"{name}: {value}" for name, value, _ in facts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x - 6}" height="20" viewBox="0 0 {x - 6} 20" role="img" '
        f'aria-label="{escape(label)}">\n'
        f'<g font-family="Verdana, \'DejaVu Sans\', sans-serif" font-size="11" fill="#fff" text-anchor="middle">\n'
        f"{body}\n</g>\n</svg>\n"
    )


def stale(*, terminal: bool = True) -> list[str]:
    """What is no longer true of the pictures in docs/, a sentence each."""
    found = []
    if BADGES.read_text(encoding="utf-8") != badges():
        found.append(f"{BADGES.name} shows other facts than the project has")
    if terminal:
        text = [bare for line in repro_terminal()[1].splitlines() if (bare := "".join(line.split()))]
        if text_of(REPRO.read_text(encoding="utf-8")) != text:
            found.append(f"{REPRO.name} shows another output than the command has")
    return found


def main(arguments: list[str]) -> int:
    """Draw or check; the exit status."""
    if arguments == ["--check"]:
        print("\n".join(found := stale()) or "the pictures are true")
        return 1 if found else 0
    if arguments:
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    BADGES.write_text(badges(), encoding="utf-8")
    REPRO.write_text(repro_terminal()[0], encoding="utf-8")
    print(f"{BADGES}\n{REPRO}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
