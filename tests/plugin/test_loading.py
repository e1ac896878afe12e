"""Every way to load the plugin, and what is said when it cannot work."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import vllm
from vllm.parser.parser_manager import ParserManager

from tests.support import forked, served

PACKAGE = served.PLUGIN.parent
VLLM = Path(vllm.__file__).parent.parent
TAKES_MODULES = "import_plugin" in vars(sys.modules["vllm.utils.import_utils"])
SHOW = """
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager
for name in ("lfm2_fixed", "llama4_pythonic_fixed"):
    parser = ToolParserManager.get_tool_parser(name)
    assert ToolParserManager.get_tool_parser(name) is parser
    assert ParserManager.get_parser(tool_parser_name=name, enable_auto_tools=True).tool_parser_cls is parser
    import sys
    print(parser.__module__, parser.__name__, sys.modules[parser.__module__].__file__)
parser = ReasoningParserManager.get_reasoning_parser("lfm2_fixed")
assert ParserManager.get_parser(reasoning_parser_name="lfm2_fixed").reasoning_parser_cls is parser
print(parser.__module__, parser.__name__, sys.modules[parser.__module__].__file__)
"""


def in_vllm(code: str, *path: Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a process that has imported vLLM and finds ``path``."""
    return forked.run(textwrap.dedent(code), path, cwd, environment)


def python(code: str, *path: Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a new process that finds vLLM, and ``path`` before it."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, VLLM])), **environment}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def hidden(tmp_path: Path, package: str = "lfm2_fixed") -> Path:
    """A directory that keeps an installed package from being imported by name."""
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent(
            f"""
            import importlib.abc, sys
            class Hide(importlib.abc.MetaPathFinder):
                def find_spec(self, name, path, target=None):
                    if name == {package!r}:
                        raise ModuleNotFoundError("No module named {package!r}", name=name)
            sys.meta_path.insert(0, Hide())
            """
        )
    )
    return tmp_path


def copied(tmp_path: Path) -> Path:
    """A checkout elsewhere."""
    package = tmp_path / "a checkout" / "lfm2_fixed"
    return Path(shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__")))


def shown(result: subprocess.CompletedProcess[str]) -> list[str]:
    assert result.returncode == 0, result.stdout + result.stderr
    return [line for line in result.stdout.splitlines() if re.search("Fixed(Tool|Reasoning)Parser", line)]


def lines_of(package: Path) -> list[str]:
    plugin = package / "plugin"
    return [
        f"lfm2_fixed.plugin.parsers Lfm2FixedToolParser {plugin / 'parsers.py'}",
        f"lfm2_fixed.plugin.parsers Llama4PythonicFixedToolParser {plugin / 'parsers.py'}",
        f"lfm2_fixed.plugin.reasoning Lfm2FixedReasoningParser {plugin / 'reasoning.py'}",
    ]


def test_by_path_where_the_package_cannot_be_imported(tmp_path: Path) -> None:
    """From a checkout, executed twice as some versions do, the second time by a relative path: the same classes."""
    package = copied(tmp_path)
    code = f"""
    from vllm.tool_parsers import ToolParserManager
    ToolParserManager.import_tool_parser({str(package / "parser.py")!r})
    first = ToolParserManager.get_tool_parser("lfm2_fixed")
    ToolParserManager.import_tool_parser("a checkout/lfm2_fixed/parser.py")
    assert ToolParserManager.get_tool_parser("lfm2_fixed") is first
    """
    result = in_vllm(textwrap.dedent(code) + SHOW, hidden(tmp_path), cwd=tmp_path)
    assert shown(result) == lines_of(package)


def test_by_path_as_a_reasoning_parser(tmp_path: Path) -> None:
    """``--reasoning-parser-plugin``: what the engine's process loads, where no tool parser is asked for."""
    package = copied(tmp_path)
    code = f"""
    from vllm.reasoning import ReasoningParserManager
    ReasoningParserManager.import_reasoning_parser({str(package / "parser.py")!r})
    first = ReasoningParserManager.get_reasoning_parser("lfm2_fixed")
    ReasoningParserManager.import_reasoning_parser({str(package / "parser.py")!r})
    assert ReasoningParserManager.get_reasoning_parser("lfm2_fixed") is first
    """
    result = in_vllm(textwrap.dedent(code) + SHOW, hidden(tmp_path), cwd=tmp_path)
    assert shown(result) == lines_of(package)


def test_by_path_beside_another_copy(tmp_path: Path) -> None:
    """The copy whose path is given wins over one that was loaded before, through its entry point say."""
    package = copied(tmp_path)
    code = f"""
    from vllm.tool_parsers import ToolParserManager
    import lfm2_fixed.parser
    assert ToolParserManager.get_tool_parser("lfm2_fixed") is lfm2_fixed.parser.Lfm2FixedToolParser
    ToolParserManager.import_tool_parser({str(package / "parser.py")!r})
    """
    result = in_vllm(textwrap.dedent(code) + SHOW, PACKAGE.parent, cwd=tmp_path)
    assert shown(result) == lines_of(package)


def test_by_module_name_after_installation(tmp_path: Path) -> None:
    """``--tool-parser-plugin lfm2_fixed.parser``; the versions that take paths only get the installed path."""
    name = "lfm2_fixed.parser" if TAKES_MODULES else str(PACKAGE / "parser.py")
    code = f"""
    from vllm.tool_parsers import ToolParserManager
    ToolParserManager.import_tool_parser({name!r})
    """
    result = in_vllm(textwrap.dedent(code) + SHOW, PACKAGE.parent, cwd=tmp_path)
    assert shown(result) == lines_of(PACKAGE)


def test_by_entry_point_after_installation(tmp_path: Path) -> None:
    """No flag: vLLM finds the installed package itself, in every process."""
    site = tmp_path / "site"
    root = PACKAGE.parent
    source = tmp_path / "source"
    shutil.copytree(root / "lfm2_fixed", source / "lfm2_fixed", ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "setup.py", "LICENSE"):
        shutil.copy(root / file, source)
    (source / "README.md").write_text("lfm2-fixed\n")
    pip = [sys.executable, "-m", "pip", "-q", "install", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*pip, str(source)], check=True, capture_output=True, text=True, timeout=300)
    code = """
    import os, sys
    from vllm.plugins import load_general_plugins
    load_general_plugins()
    assert "lfm2_fixed.plugin" in sys.modules
    heavy = {name for name in sys.modules if name.startswith("lfm2_fixed.plugin.")}
    assert not heavy, "every process of a server runs this"
    """
    result = in_vllm(textwrap.dedent(code) + SHOW, site, cwd=tmp_path)
    assert shown(result) == lines_of(site / "lfm2_fixed")
    assert "lfm2-fixed" in {path.name for path in (site / "bin").iterdir()}
    assert "Failed to load" not in result.stdout + result.stderr


def test_loading_again_in_one_process() -> None:
    """The classes stay the same whichever way it is done again."""
    from vllm.tool_parsers import ToolParserManager

    import lfm2_fixed.plugin

    served.load()
    before = {name: ToolParserManager.get_tool_parser(name) for name in served.NAMES.values()}
    lfm2_fixed.plugin.register()
    served.load()
    assert {name: ToolParserManager.get_tool_parser(name) for name in served.NAMES.values()} == before
    assert before["lfm2_fixed"] is sys.modules["lfm2_fixed.plugin.parsers"].Lfm2FixedToolParser


def test_parser_file_alone(tmp_path: Path) -> None:
    """Without the rest of the package: one sentence that says what to do."""
    shutil.copy(served.PLUGIN, tmp_path / "parser.py")
    result = python("import parser", tmp_path, cwd=tmp_path)
    last = result.stderr.splitlines()[-1]
    assert result.returncode == 1
    assert last.startswith("ImportError: ")
    assert last.endswith("give the path of parser.py inside the package's directory.")


def test_without_vllm(tmp_path: Path) -> None:
    code = "import lfm2_fixed; lfm2_fixed.parse(''); import lfm2_fixed.parser"
    result = python(code, hidden(tmp_path, "vllm"), PACKAGE.parent, cwd=tmp_path)
    last = result.stderr.splitlines()[-1]
    assert result.returncode == 1
    assert last == (
        "ImportError: lfm2_fixed.parser is a plugin for vLLM, which is not installed here: install vllm 0.26.0 "
        "or newer, or use the engine-free API, `from lfm2_fixed import parse`."
    )


def other_vllm(tmp_path: Path, version: str) -> Path:
    """A vLLM that has no ``vllm.tool_parsers``: not yet, or no more."""
    package = tmp_path / "other" / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"__version__ = {version!r}\n")
    (package / "envs.py").touch()
    return package.parent


OTHERS = pytest.mark.parametrize(
    ("version", "sentence"),
    [
        (
            "0.9.2",
            r"lfm2_fixed needs vLLM 0\.26\.0 or newer, complete with its dependencies, but this vLLM \(0\.9\.2\) "
            r"lacks something \(.+\): upgrade vLLM\.",
        ),
        (
            "0.26.0.post1",
            r"lfm2_fixed needs vLLM 0\.26\.0 or newer, complete with its dependencies, but this vLLM "
            r"\(0\.26\.0\.post1\) lacks something \(.+\): reinstall vLLM\.",
        ),
        (
            "1.2.0rc1",
            r"This lfm2_fixed knows vLLM 0\.26\.0 to 0\.33\.0, and this newer vLLM \(1\.2\.0rc1\) lacks something "
            r"that it uses \(.+\): upgrade lfm2_fixed, or use vLLM 0\.33\.0\.",
        ),
        *(
            (
                unnumbered,
                r"This lfm2_fixed knows .+ this vLLM \(.+\), whose version does not say how new it is, lacks something "
                r"that it uses \(.+\): use vLLM 0\.33\.0, or upgrade lfm2_fixed if this is newer\.",
            )
            for unnumbered in ("dev", "0.1.dev5+g1a2b3c4d5")  # checkouts without releases, however new
        ),
    ],
)


@OTHERS
def test_with_another_vllm(tmp_path: Path, version: str, sentence: str) -> None:
    result = python("import lfm2_fixed.parser", other_vllm(tmp_path, version), PACKAGE.parent, cwd=tmp_path)
    last = result.stderr.splitlines()[-1]
    assert result.returncode == 1
    assert re.fullmatch("ImportError: " + sentence, last)


@OTHERS
def test_another_vllm_still_starts(tmp_path: Path, version: str, sentence: str) -> None:
    """The entry point must not break a server that uses other parsers."""
    code = "import lfm2_fixed.plugin; lfm2_fixed.plugin.register(); print('started')"
    result = python(code, other_vllm(tmp_path, version), PACKAGE.parent, cwd=tmp_path)
    assert result.stdout == "started\n"
    [line] = result.stderr.splitlines()
    assert re.search("The parsers of lfm2_fixed are not available: " + sentence + "$", line)


def refusal(make: Any) -> str:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        make()
    return str(caught.value)


def test_a_tokenizer_without_the_sentinels() -> None:
    parser = served.parser_class("lfm2")
    assert refusal(lambda: parser(served.tokenizer("plain"))) == (
        "The tokenizer has no <|tool_call_start|> and <|tool_call_end|> tokens, so its model cannot write calls in "
        "the lfm2 format: choose the --tool-call-parser made for it."
    )
    get_parser = ParserManager.get_parser
    if "tokenizer" in inspect.signature(get_parser).parameters:  # these versions say it when they start
        with pytest.raises(TypeError, match="The tokenizer has no <"):
            get_parser(tool_parser_name="lfm2_fixed", enable_auto_tools=True, tokenizer=served.tokenizer("plain"))
        get_parser(tool_parser_name="lfm2_fixed", enable_auto_tools=True, tokenizer=served.tokenizer("lfm2"))
    # Llama 4 writes bare lists too.
    assert served.parser_class("llama4")(served.tokenizer("plain")).tool_parser is not None


def test_a_wrong_stream_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LFM2_FIXED_STREAM", "calls")
    assert refusal(served.parser) == (
        "The environment variable LFM2_FIXED_STREAM is 'calls': set it to 'delta' (arguments are streamed as they "
        "are generated) or 'call' (each call is sent whole), or unset it."
    )
    monkeypatch.setenv("LFM2_FIXED_STREAM", "")
    served.parser()


@pytest.mark.parametrize("late", [False, True])
def test_one_line_says_what_was_loaded(tmp_path: Path, late: bool) -> None:
    """Once in a process, also where the plugin is loaded before vLLM configures its log (``late``), and again."""
    configure = "import vllm.logger; vllm.logger._configure_vllm_root_logger()"
    code = f"""
    import logging, sys
    {"import vllm.logger; logging.getLogger('vllm').handlers.clear()" if late else configure}
    from tests.support import served
    for _ in range(2):
        served.load()
    {configure if late else ""}
    for _ in range(2):
        served.parser(reasoning="lfm2_fixed")
    """
    result = in_vllm(code, PACKAGE.parent, cwd=tmp_path, VLLM_LOGGING_LEVEL="INFO")
    assert result.returncode == 0, result.stderr
    [line] = [line for line in (result.stdout + result.stderr).splitlines() if "loaded in vLLM" in line]
    assert re.search(
        r"INFO \d\d-\d\d .*lfm2_fixed \d+\.\d+\.\d+ \(.+\) loaded in vLLM " + re.escape(vllm.__version__), line
    )
    quiet = in_vllm(code, PACKAGE.parent, cwd=tmp_path, VLLM_LOGGING_LEVEL="WARNING")
    assert "loaded in vLLM" not in quiet.stdout + quiet.stderr


def test_a_malformed_call_is_logged_where_vllm_logs(tmp_path: Path) -> None:
    """One warning, without values, formatted as vLLM's own."""
    code = """
    import sys
    from tests.support import served
    request = served.chat()
    served.load()
    import vllm.logger
    vllm.logger._configure_vllm_root_logger()  # servers of newer versions do it late
    for _ in range(2):
        served.whole(served.S + "[get_weather(city=secret())]" + served.E, request)
    """
    result = in_vllm(code, PACKAGE.parent, cwd=tmp_path, VLLM_LOGGING_LEVEL="INFO")
    assert result.returncode == 0, result.stderr
    lines = [line for line in (result.stdout + result.stderr).splitlines() if "cannot be represented" in line]
    assert len(lines) == 2
    assert all(re.match(r"(\x1b\[\S*?m)?(\(.*?\))?\s*(\x1b\[\S*?m)?WARNING \d\d-\d\d", line) for line in lines), lines
    assert "secret" not in "".join(lines)
