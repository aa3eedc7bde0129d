"""The command line: each command opens, makes one call of the library, and shows what came back."""

from __future__ import annotations

from sfumato.cli.main import main

__all__ = ["main"]
