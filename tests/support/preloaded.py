"""What the fork server of ``prepared`` imports before it forks: vLLM's API server.  It ends with who started it."""

from __future__ import annotations

import vllm.entrypoints.openai.api_server  # noqa: F401
from rig import end_with_parent

end_with_parent()
