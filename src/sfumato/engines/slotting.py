"""Streams on their way to DuckDB: every batch is coded by the coder of memory before DuckDB sees it.

DuckDB would read some of what Arrow holds otherwise than memory does: it forgets the zone in which a moment was
written, rounds what is finer than it can hold, and takes the type of the first batch for that of all. Which engine
reads a table depends on the number of its rows, so one record more would change the codes of all. What streams is
therefore given to it as *slots*: a leaf's code or, from the number of leaves on, the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.errors import SfumatoError
from sfumato.guard import guarded, unreadable
from sfumato.io.encode import columns_to_read, encoder_of
from sfumato.io.streams import Table
from sfumato.io.values import FINE
from sfumato.schema import Predictor, Schema

SLOT = pa.uint32()

Slotting = Callable[[Any], Any]
Given = ParamSpec("Given")
Found = TypeVar("Found")


def slot_reader(table: Table, schema: Schema, names: dict[str, str], said: list[SfumatoError]) -> Any:
    """Stream the slots of the declared columns under other names. What is said of an error is noted: DuckDB, in whose
    hands it is read, would forget it.
    """
    declared = columns_to_read(table.columns, schema)
    slotting = [slotting_of(name, facts, schema.missing_values) for name, facts in declared.items()]
    fields = pa.schema([(names[name], SLOT) for name in declared])

    def coded() -> Iterator[pa.RecordBatch]:
        for batch in table.batches(list(declared)):
            slots = [code(column) for code, column in zip(slotting, batch.columns, strict=True)]
            yield pa.RecordBatch.from_arrays(slots, schema=fields)

    batches = coded()
    return pa.RecordBatchReader.from_batches(fields, iter(noting(said, lambda: next(batches, None)), None))


def slotting_of(name: str, facts: Predictor, missing: list[str]) -> Slotting:
    """Give what finds the slots of a batch of one column as memory does."""
    encode = encoder_of(facts, missing)

    def slots(array: Any) -> Any:
        whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        part = guarded(lambda: encode(whole), unreadable(name))
        codes = part.codes.astype(np.uint32)
        if part.status is not None:
            codes = np.where(part.status == FINE, codes, facts.leaves + part.status.astype(np.uint32) - 1)
        return pa.array(codes, SLOT)

    return slots


def noting(said: list[SfumatoError], action: Callable[Given, Found]) -> Callable[Given, Found]:
    """Do something in the hands of a library that forgets errors of ours: note what they say, not how they came."""

    @wraps(action)
    def noted(*given: Given.args, **named: Given.kwargs) -> Found:
        try:
            return action(*given, **named)
        except SfumatoError as error:
            said.append(copy(error))
            raise

    return noted
