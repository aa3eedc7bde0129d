"""The way in: tables of every common kind, read in batches and turned into leaf codes.

It stands apart because it is the only code that meets raw values; past it there are only small integers.
"""

from __future__ import annotations

from sfumato.io.draft import draft_schema
from sfumato.io.encode import Coded, Misfit, encode, refuse_misfits
from sfumato.io.streams import Table
from sfumato.io.tables import open_table

__all__ = ["Coded", "Misfit", "Table", "draft_schema", "encode", "open_table", "refuse_misfits"]
