"""Grammars that hold a model to its own call format and to the tools' schemas."""

from .tag import Function, SchemaError, functions, structural_tag

__all__ = ["Function", "SchemaError", "functions", "structural_tag"]
