"""Arrow's columns on their way to DuckDB: those that it takes over as they are, and those that are coded on the way.

DuckDB forgets the zone in which a moment was written, rounds what is finer than it can hold, and has no name for some
types. A column of such a type would be read otherwise than in memory, and which engine reads a table depends on the
number of its rows: one record more would change the codes of all. So the one and only coder reads these columns before
DuckDB sees them, and it is given slots. Columns are called by their place, for DuckDB does not see case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.errors import SfumatoError
from sfumato.guard import guarded, unreadable
from sfumato.io.encode import columns_to_read, encoder_of
from sfumato.io.values import FINE
from sfumato.io.wording import is_text, texts
from sfumato.schema import Predictor, Schema

SLOT = pa.uint32()

Slotting = Callable[[Any], Any]
Given = ParamSpec("Given")
Found = TypeVar("Found")


@dataclass(frozen=True)
class ArrowSource:
    """What DuckDB is given: declared columns, called by their place, some of which are slots already."""

    content: Any
    names: dict[str, str]
    coded: frozenset[str]

    @classmethod
    def of(cls, source: Any, schema: Schema, said: list[SfumatoError]) -> ArrowSource:
        """Take a table or a reader; DuckDB, in whose hands it is read, would forget what is said of an error."""
        declared = columns_to_read(source.schema.names, schema)
        names = {name: f"a{place}" for place, name in enumerate(declared)}
        kinds = {name: source.schema.field(name).type for name in declared}
        slotting = {
            name: slotting_of(name, facts, schema.missing_values)
            for name, facts in declared.items()
            if not is_taken_over(kinds[name])
        }
        fields = [(alias, SLOT if name in slotting else kinds[name]) for name, alias in names.items()]
        reader = source.to_reader() if isinstance(source, pa.Table) else source
        batches = _coded(reader, names, slotting)
        noted = iter(noting(said, lambda: next(batches, None)), None)
        content = pa.RecordBatchReader.from_batches(pa.schema(fields), noted)
        return cls(content, names, frozenset(slotting))


def is_taken_over(kind: pa.DataType) -> bool:
    """Tell whether values of a type mean to DuckDB, to the last bit, what they mean to Arrow."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "us" and kind.tz is None)
    if pa.types.is_decimal128(kind):
        return bool(kind.scale >= 0)
    same = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_date32)
    return is_text(kind) or any(is_kind(kind) for is_kind in same)


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


def _coded(reader: Any, names: dict[str, str], slotting: dict[str, Slotting]) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        columns = [slotting.get(name, _sound)(batch[name]) for name in names]
        yield pa.RecordBatch.from_arrays(columns, names=list(names.values()))


def _sound(array: Any) -> Any:
    """Write texts that are not UTF-8 as memory does; DuckDB would not go on."""
    if not is_text(array.type):
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(texts(array), array.type)
    return array
