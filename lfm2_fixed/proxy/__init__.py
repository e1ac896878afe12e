"""A proxy in front of any OpenAI-compatible server: tool calls read by the machine of this package.

Needs the extra ``[proxy]``.  ``create_app(Settings(upstream=…))`` is an ASGI application, ``serve``
runs it; ``lfm2-fixed proxy`` is the command.
"""

from ..extras import missing

try:
    from .app import create_app
    from .serve import serve
    from .settings import Settings
except ImportError as error:
    raise ImportError(f"lfm2_fixed.proxy: {missing(error, 'proxy')}", name=error.name) from error

__all__ = ["Settings", "create_app", "serve"]
