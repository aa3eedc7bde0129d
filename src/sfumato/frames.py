"""Tables in the frame library that an analyst uses."""

from __future__ import annotations

from typing import Any, Literal, get_args

import pyarrow as pa

from sfumato.errors import ReleaseError

Frame = Literal["arrow", "pandas", "polars"]
"""The library in whose frames tables are given."""


def as_frame(table: pa.Table, frame: Frame) -> Any:
    """Turn a table into the wanted library's frame."""
    if frame not in get_args(Frame):
        raise ReleaseError(f"frame ({frame}) must be one of {', '.join(get_args(Frame))}", "Choose one of them.")
    if frame == "arrow":
        return table
    import narwhals as nw

    try:
        return nw.from_arrow(table, backend=frame).to_native()
    except ImportError:
        raise ReleaseError(f"frame ({frame}) must be installed", f"Run: pip install {frame}") from None
