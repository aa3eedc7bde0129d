"""Publish a table about people so that analysts can use it and nobody can find a person in it.

The public API stands in `__init__.pyi`; the command line, the report, the evaluation and all other faces use nothing
else. Names are looked up when they are first asked for, so importing the package costs next to nothing.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any


def _public() -> dict[str, str]:
    """Read where every public name comes from: a module, or the package for a room that is reached by name."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_HOME = _public()
_REGISTRIES = {"sfumato.methods": "METHODS", "sfumato.without_epsilon": "WITHOUT_EPSILON"}


def _methods() -> dict[str, type]:
    """List the classes of all registered methods: they are public without being named anywhere else."""
    found = [getattr(import_module(module), name) for module, name in _REGISTRIES.items()]
    return {one.__name__: one for registry in found for one in registry.values()}


def __getattr__(name: str) -> Any:
    """Look a public name up, and keep it."""
    if name == "__version__":
        found: Any = import_module("importlib.metadata").version("sfumato")
    elif _HOME.get(name) == "sfumato":
        found = import_module(f"sfumato.{name}")
    elif name in _HOME:
        found = getattr(import_module(_HOME[name]), name)
    elif name.startswith("_") or (found := _methods().get(name)) is None:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List all public names."""
    return sorted([*(name for name in _HOME if name != "*"), *_methods(), "__version__"])
