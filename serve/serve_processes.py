"""Processes of the servers and of the test runs.  Standard library only."""

from __future__ import annotations

import signal

_REASONS = {
    "SIGILL": ": it was built for another processor (this one lacks an instruction, such as AVX-512's)",
    "SIGKILL": ": killed from outside, by the kernel if the memory ran out",
}


def how_it_ended(status: int) -> str:
    """What the exit status of a process says: ``subprocess``'s, where a signal is its negative number."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # a real-time signal has no name
        name = f"signal {-status}"
    return f"died by {name}{_REASONS.get(name, '')}"
