"""The way in: tables of every common kind, read in batches and turned into leaf codes.

It stands apart because it is the only code that meets raw values; past it there are only small integers.
"""

from __future__ import annotations

from sfumato.holder import draft_schema
from sfumato.tables.encode import Coded, Misfit, encode, refuse_misfits
from sfumato.tables.sources import open_table
from sfumato.tables.streams import Table

__all__ = ["Coded", "Misfit", "Table", "draft_schema", "encode", "open_table", "refuse_misfits"]
