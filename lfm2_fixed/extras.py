"""What is said where an optional dependency is missing: how to install it, from one place."""

from __future__ import annotations


def install(extra: str) -> str:
    """The command that brings what ``extra`` (a name of ``[project.optional-dependencies]``) needs.

    The package is installed from a checkout or from where one is cloned: no index has it yet.
    """
    without = f"pip install 'lfm2-fixed[{extra}] @ git+URL'"
    return f"in a checkout of lfm2-fixed: pip install '.[{extra}]'; without one: {without}"


def missing(error: ImportError, extra: str) -> str:
    """A sentence about the module that could not be imported."""
    return f"{error.name} is not installed; {install(extra)}"
