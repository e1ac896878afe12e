"""How many examples a property takes; the laws take all of the profile's (3,000 in an ordinary run)."""

from __future__ import annotations

import os

from hypothesis import settings

QUICK = os.environ.get("HYPOTHESIS_PROFILE") == "quick"
"""Whether this is ``./test.sh --quick``: less of what is measured at several sizes, or drawn by a seed."""

SOME = settings(max_examples=max(200, settings.default.max_examples // 3))
"""For a property of one function, whose texts are short and drawn from a dozen pieces: what a thousand of them do not
reach, three thousand hardly do.  No fewer than the ``quick`` profile's."""
