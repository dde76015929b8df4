"""Pointsman: routes LLM requests by text and image evidence, under a written policy."""
