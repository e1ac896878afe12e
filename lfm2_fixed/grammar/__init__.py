"""Grammars that hold a model to its own call format and to the tools' schemas.

Text and plain data, made without xgrammar or torch.
"""

from .answer import gbnf, lark, marks
from .asked import Function, functions
from .schema import SchemaError
from .tag import after_thought, structural_tag

__all__ = ["Function", "SchemaError", "after_thought", "functions", "gbnf", "lark", "marks", "structural_tag"]
