"""What tests of the core share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_log() -> Iterator[None]:
    """No line for each call that is given back: texts that are made to be malformed would write thousands."""
    logger = logging.getLogger("lfm2_fixed")
    logger.disabled = True
    yield
    logger.disabled = False
