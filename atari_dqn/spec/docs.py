"""Read the documentation of every key from the docstrings below the schema's fields."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import MappingProxyType

from atari_dqn.spec import schema, schema_actors, schema_agent
from atari_dqn.spec.keys import SECTIONS


@cache
def key_docs() -> Mapping[str, str]:
    """Return the documentation of each dotted key, in the order of the schema's modules and classes."""
    prefixes = {owner.__name__: f"{section}." for section, owner in SECTIONS.items()}
    prefixes[schema.Spec.__name__] = ""
    return MappingProxyType(
        {
            prefixes[node.name] + field: doc
            for module in (schema, schema_actors, schema_agent)
            for node in ast.parse(inspect.getsource(module)).body
            if isinstance(node, ast.ClassDef) and node.name in prefixes
            for field, doc in _field_docs(node)
        }
    )


def _field_docs(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise(node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield statement.target.id, " ".join(str(below.value.value).split())
