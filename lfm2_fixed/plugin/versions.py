"""What is said to somebody whose vLLM cannot be used.  Imports nothing, so that anybody can say it."""

from __future__ import annotations

import re

OLDEST = "0.26.0"
"""The first vLLM with what the parsers need: a tool parser is told that a stream ends."""
NEWEST = "0.33.0"
"""The newest vLLM that the tests ran with.  Newer ones are used as they are; only the sentence below differs."""


def unusable(error: ImportError | None) -> ImportError:
    """One sentence that says why this vLLM cannot be used and what to do about it.

    An older one must be upgraded; of a newer one that has lost something the user cannot be rid by an upgrade
    of vLLM; one that does not say how new it is may be either; any other is broken.  ``error``: what could not
    be imported.  Returns the error to raise.
    """
    try:
        import vllm
    except ModuleNotFoundError as missing:
        if missing.name != "vllm":
            return missing
        return ImportError(
            "lfm2_fixed.parser is a plugin for vLLM, which is not installed here: "
            f"install vllm {OLDEST} or newer, or use the engine-free API, `from lfm2_fixed import parse`."
        )
    version = str(getattr(vllm, "__version__", "of an unknown version"))
    reason = f" ({error})" if error is not None else ""
    number = _number(version)
    if number is None:
        return ImportError(
            f"This lfm2_fixed knows vLLM {OLDEST} to {NEWEST}, and this vLLM ({version}), whose version does not say "
            f"how new it is, lacks something that it uses{reason}: use vLLM {NEWEST}, or upgrade lfm2_fixed if this "
            "is newer."
        )
    if number > _known(NEWEST):
        return ImportError(
            f"This lfm2_fixed knows vLLM {OLDEST} to {NEWEST}, and this newer vLLM ({version}) lacks something "
            f"that it uses{reason}: upgrade lfm2_fixed, or use vLLM {NEWEST}."
        )
    remedy = "upgrade" if number < _known(OLDEST) else "reinstall"
    return ImportError(
        f"lfm2_fixed needs vLLM {OLDEST} or newer, complete with its dependencies, but this vLLM "
        f"({version}) lacks something{reason}: {remedy} vLLM."
    )


def _number(version: str) -> tuple[int, ...] | None:
    """The numbers that ``version`` begins with; None for a build from a checkout that does not know its release.

    Such a build is called ``dev``, or ``0.1.dev5+g1a2b3c`` where the checkout has no tags (setuptools-scm).
    """
    if version.startswith(("0.0.dev", "0.1.dev")) or not re.match(r"\d", version):
        return None
    return _known(version)


def _known(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+){0,3}", version)
    assert found
    return tuple(map(int, found[0].split(".")))
