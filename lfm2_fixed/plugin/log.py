"""The package's log goes where vLLM's goes: vLLM configures its own loggers only."""

from __future__ import annotations

import logging


class _WhereVllmLogs(logging.Handler):
    """Hands records to the handlers of vLLM's logger, which may be configured later than this."""

    def emit(self, record: logging.LogRecord) -> None:
        handlers = logging.getLogger("vllm").handlers
        if not handlers and not logging.getLogger().handlers and logging.lastResort is not None:
            handlers = [logging.lastResort]
        for handler in handlers:
            if record.levelno >= handler.level:
                handler.handle(record)


def show_log() -> None:
    """Send the package's log to vLLM's handlers, whose level (``VLLM_LOGGING_LEVEL``) decides."""
    ours = logging.getLogger("lfm2_fixed")
    if not ours.handlers:
        ours.addHandler(_WhereVllmLogs())
    if ours.level == logging.NOTSET:
        ours.setLevel(logging.INFO)  # the root logger's own, WARNING, would keep the line below from everybody


def announce() -> None:
    """Log one line, once in a process: which version of this plugin was loaded into which vLLM, and from where.

    Called when the parsers are loaded and whenever one is made: newer versions of vLLM configure their logger
    after they have loaded a plugin by its path, and a line logged before that would be seen by nobody.
    """
    global _announced
    if _announced or not (logging.getLogger("vllm").handlers or logging.getLogger().handlers):
        return
    _announced = True
    import vllm

    from .. import __file__ as package
    from .. import __version__

    logging.getLogger("lfm2_fixed.plugin").info(
        "lfm2_fixed %s (%s) loaded in vLLM %s", __version__, package, getattr(vllm, "__version__", "?")
    )


_announced = False
