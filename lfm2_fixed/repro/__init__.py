"""The payloads that other parsers get wrong, and what each reader makes of them."""
