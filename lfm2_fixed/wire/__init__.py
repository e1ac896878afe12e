"""The shapes that turns have on the wire: the OpenAI and Anthropic APIs, and server-sent events."""
