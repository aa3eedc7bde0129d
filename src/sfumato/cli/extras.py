"""What some commands need beyond the core, and how it is installed."""

from __future__ import annotations

from sfumato.errors import MethodError


def lacking(command: str, library: str, extras: str = "evaluate") -> MethodError:
    """Tell that a command cannot do without a library."""
    return MethodError(f"{command} must have {library}", f"Install it with pip install 'sfumato[{extras}]'.")
