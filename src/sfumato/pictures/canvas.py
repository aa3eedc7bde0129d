"""A figure to draw on and a file to write it to, whole or not at all. No display is needed, or looked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.storage import staged_file

SUFFIXES = (".png", ".svg")
NOTHING: Mapping[str, Any] = MappingProxyType({})
DOTS_PER_INCH = 160
STYLE = {
    "text.parse_math": False,
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "sfumato",
}
"""Dollar signs in names are dollar signs, and the same picture is the same file."""


def refuse_undrawable(out: str | Path) -> None:
    """Refuse a file name of another kind, and to draw without the library."""
    if not str(out).lower().endswith(SUFFIXES):
        raise ReleaseError(f"out ({str(out)[:200]}) must end in .png or .svg", "Name the file accordingly.")
    refuse_pictureless("Run pip install 'sfumato[pictures]', or leave --out away.")


def refuse_pictureless(remedy: str = "Run pip install 'sfumato[pictures]'.") -> None:
    """Refuse to draw without the library."""
    if not can_draw():
        raise ReleaseError("pictures must have matplotlib to be drawn, and it is not installed", remedy)


def can_draw() -> bool:
    """Tell whether the library is installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def write_picture(out: str | Path, draw: Callable[[], Any]) -> None:
    """Draw a figure and write it."""
    refuse_undrawable(out)
    with staged_file(out) as staging, styled():
        metadata = {"Date": None} if staging.suffix.lower() == ".svg" else {}
        draw().savefig(staging, dpi=DOTS_PER_INCH, metadata=metadata)


@contextmanager
def styled(more: Mapping[str, Any] = NOTHING) -> Iterator[None]:
    """Draw in our style; letters that the font lacks become boxes, in silence."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE | dict(more)), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
