"""What a release is made of: sdist, wheel, the index's page, the changelog, the workflows and the issue form."""

from __future__ import annotations

import datetime
import email
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from lfm2_fixed import __version__
from tests.support import ROOT

HOSTING = (".ci/", ".github/", ".gitignore")
"""Under version control, and no part of a release."""
BUILT = ("PKG-INFO", "setup.cfg", "lfm2_fixed.egg-info/")
"""What setuptools adds to an sdist."""


def tracked() -> list[str]:
    """The project's files: what is under version control, or all that an unpacked sdist has."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
        return [name for name in listed.split("\0") if name and (ROOT / name).exists()]
    files = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
    hidden = "." if (ROOT / "PKG-INFO").exists() else ""
    return [name for name in files if not name.startswith((*BUILT, hidden)) and "__pycache__" not in name]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy, so that nothing that lies about here gets in."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def dist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is built from it; without a network."""
    into = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), str(checkout)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=into)
    assert done.returncode == 0, done.stdout + done.stderr
    return into


@pytest.fixture(scope="module")
def metadata(dist: Path) -> Any:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"lfm2_fixed-{__version__}.dist-info/METADATA"))


def test_the_sdist_is_whole(dist: Path) -> None:
    """Tests with their helpers, scripts and documentation: all of it, and nothing else."""
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    assert {name for name in files if not name.startswith(BUILT)} == {
        name for name in tracked() if not name.startswith(HOSTING)
    }


def test_the_wheel_holds_the_package_alone_and_runs(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name for name in names if not name.startswith(f"lfm2_fixed-{__version__}.dist-info/")}
    assert package == {name for name in tracked() if name.startswith("lfm2_fixed/")}
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    said = subprocess.run(
        [str(tmp_path / "bin" / "lfm2-fixed"), "--version"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert said.stdout == f"lfm2-fixed {__version__}\n", said.stderr
    entry_points = (tmp_path / f"lfm2_fixed-{__version__}.dist-info" / "entry_points.txt").read_text()
    assert "[vllm.general_plugins]\nlfm2_fixed = lfm2_fixed.plugin:register" in entry_points


def test_an_index_takes_it(dist: Path) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, dist.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout


def test_the_index_page_leads_back_to_the_repository(metadata: Any) -> None:
    urls = dict(entry.split(", ", 1) for entry in metadata.get_all("Project-URL"))
    assert set(urls) == {"Repository", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(urls["Repository"]) for url in urls.values())
    assert metadata["Author"] == "lfm2-fixed contributors"
    assert [entry for entry in metadata.get_all("Requires-Dist") if "extra ==" not in entry] == []
    targets = re.findall(r"(?:\]\(|src=\")([^)\"]+)[)\"]", metadata.get_payload())
    assert len(targets) > 8
    for target in targets:
        begin = re.match(rf"{re.escape(urls['Repository'])}/(blob|raw)/v{re.escape(__version__)}/([^#]+)", target)
        assert begin and (ROOT / begin[2]).is_file(), target
        assert (begin[1] == "raw") == begin[2].endswith(".svg"), "a picture, not the page that shows it"


# --- the one command -----------------------------------------------------------------------------------------------


def loaded() -> Any:
    """scripts/release as a module."""
    loader = importlib.machinery.SourceFileLoader("release_script", str(ROOT / "scripts" / "release"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    script = importlib.util.module_from_spec(spec)
    loader.exec_module(script)
    return script


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """scripts/release, in a repository with a remote of its own; what it builds is not built."""
    script = loaded()
    root = tmp_path / "work"
    (root / "lfm2_fixed").mkdir(parents=True)
    (root / "lfm2_fixed" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (root / "pyproject.toml").write_text('[project.urls]\nRepository = "https://example.org/someone/lfm2-fixed"\n')
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (unreleased)\n\n- New.\n\n## 1.1.0 (2026-01-02)\n")
    monkeypatch.setattr(script, "ROOT", root)
    monkeypatch.setattr(script, "build", lambda into: [])
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "x@example.org")
    git(tmp_path, "init", "-q", "--bare", "remote")
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", str(tmp_path / "remote"))
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    return script


def git(where: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=where, check=True, capture_output=True, text=True).stdout


def test_a_release_is_one_command(release: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main([]) == 0, capsys.readouterr().err
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    pushed = git(tmp_path / "remote", "show", "v1.2.0:CHANGELOG.md")
    assert f"## 1.2.0 ({today})\n" in pushed and "(unreleased)" not in pushed
    assert git(release.ROOT, "status", "--porcelain") == ""
    assert release.main([]) == 1 and "was released" in capsys.readouterr().err


@pytest.mark.parametrize(
    "origin",
    [
        "https://example.org/some-one/lfm2-fixed",
        "https://token@example.org/some-one/lfm2-fixed.git",
        "git@example.org:some-one/lfm2-fixed.git",
        "ssh://git@example.org:22/some-one/lfm2-fixed",
    ],
)
def test_where_the_project_is_says_its_origin(release: Any, origin: str) -> None:
    # Before the first release, whatever the file says by now.
    project = re.sub("/[^/]+/lfm2-fixed", "/OWNER/lfm2-fixed", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    host = re.search(r'^Repository = "https://([^/]+)/OWNER/lfm2-fixed"$', project, re.M)
    assert host
    placed = release.placed(project, origin.replace("example.org", host[1]))
    assert f'Repository = "https://{host[1]}/some-one/lfm2-fixed"' in placed and "/OWNER/" not in placed
    assert release.placed(placed, "anything") == placed
    with pytest.raises(release.NotReady, match="write it there"):
        release.placed(project, origin)  # at another host
    with pytest.raises(release.NotReady, match="write it there"):
        release.placed(project, f"https://{host[1]}/some-one/a-fork-of-it")


def test_the_place_is_released_with_the_rest(
    release: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (release.ROOT / "pyproject.toml").write_text('Repository = "https://example.org/OWNER/lfm2-fixed"\n')
    git(release.ROOT, "commit", "-qam", "No place yet")
    git(release.ROOT, "remote", "set-url", "origin", "https://example.org/someone/lfm2-fixed.git")
    git(release.ROOT, "remote", "set-url", "--push", "origin", str(tmp_path / "remote"))
    assert release.main([]) == 0, capsys.readouterr().err
    assert "example.org/someone/lfm2-fixed" in git(tmp_path / "remote", "show", "v1.2.0:pyproject.toml")


@pytest.mark.parametrize(
    "file, text, said",
    [
        ("pyproject.toml", 'Repository = "https://example.org/OWNER/lfm2-fixed"\n', "does not tell who that is"),
        ("CHANGELOG.md", "# Changelog\n\n## 1.1.0 (2026-01-02)\n", "does not begin with version 1.2.0"),
        ("new.py", "", "changes that are not committed"),
    ],
)
def test_what_is_not_ready_is_not_released(
    release: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, text: str, said: str
) -> None:
    (release.ROOT / file).write_text(text)
    assert release.main([]) == 1 and said in capsys.readouterr().err
    assert (release.ROOT / file).read_text() == text
    assert git(tmp_path / "remote", "tag") == "" and git(release.ROOT, "tag") == ""


def test_a_missing_tool_is_named_before_anything_is_built(tmp_path: Path) -> None:
    script = loaded()
    lacks = importlib.metadata.PackageNotFoundError
    (tmp_path / "kept").touch()
    with (
        mock.patch("importlib.metadata.distribution", side_effect=lacks),
        pytest.raises(script.NotReady, match="build"),
    ):
        script.build(tmp_path)
    assert (tmp_path / "kept").exists()


def test_a_build_that_fails_leaves_nothing(release: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(into: Path) -> list[Path]:
        raise subprocess.CalledProcessError(1, ["twine"])

    monkeypatch.setattr(release, "build", fails)
    assert release.main([]) == 1
    assert git(release.ROOT, "status", "--porcelain") == "" and git(release.ROOT, "tag") == ""
    assert release.main(["--biuld"]) == 2


def test_the_changelog_has_dates_and_begins_with_this_version(release: Any) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = release.HEADING.findall(changelog)
    assert len(headings) == len(re.findall(r"^## ", changelog, re.M)) and headings[0][0] == __version__
    assert [day for _, day in headings[1:]] == sorted((day for _, day in headings[1:]), reverse=True)
    assert "unreleased" not in [day for _, day in headings[1:]]


# --- what the hosting reads ----------------------------------------------------------------------------------------

hosted = pytest.mark.skipif(not (ROOT / ".github").exists(), reason="an sdist has no .github")


@hosted
def test_the_workflows_run_what_is_here() -> None:
    flows = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    assert set(flows) == {"tests", "publish"}
    supported = re.findall(r'Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert flows["tests"]["jobs"]["quick"]["strategy"]["matrix"]["python"] == supported
    steps = [step for flow in flows.values() for job in flow["jobs"].values() for step in job["steps"]]
    scripts = {word for step in steps if "run" in step for word in step["run"].split() if "/" in word}
    assert scripts == {"./test.sh", "scripts/release"} and all((ROOT / name).exists() for name in scripts)
    publish = flows["publish"]
    assert publish[True] == {"push": {"tags": ["v*"]}}, "YAML reads the key `on` as true"
    assert publish["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "password" not in str(publish) and "secrets" not in str(publish)


@hosted
def test_the_issue_form_asks_for_what_matters() -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "bad-parse.yml").read_text())
    fields = {field["id"]: field for field in form["body"] if "id" in field}
    assert [field["attributes"]["label"] for field in fields.values()] == [
        "vLLM version", "The model's own text", "What came", "What was expected",
    ]  # fmt: skip
    assert all(field["validations"]["required"] for field in fields.values())


def test_nothing_says_that_an_index_has_the_package() -> None:
    """Until it has: no page, message, image or unit installs by the name."""
    wrong = re.compile(r"pip install (-\S+ )*['\"]?lfm2[-_]fixed(?!\S* @ git\+)")
    for name in tracked():
        path = ROOT / name
        if path.suffix != ".svg" and path != Path(__file__):
            assert not wrong.search(path.read_text(encoding="utf-8", errors="replace")), name
