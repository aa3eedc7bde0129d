"""Columns that come as dictionaries: what is read of a row does not depend on how many stand beside it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Schema
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table
from sfumato.tables.values import distinct, texts

NAMES = [f"v{number}" for number in range(200)]
TOWNS = Schema.parse({"attributes": {"town": {"kind": "categorical", "taxonomy": NAMES}}})


def codes(table: Any) -> list[int]:
    coded = encode(open_table(table), TOWNS)
    assert coded.misfits == ()
    return coded.columns["town"].tolist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "c"]).cast(pa.string_view()),
        pa.array([b"a", b"b", b"c"]).cast(pa.binary_view()),
        pa.array(["a", "b", "c"]),
        pa.array([1, 2, 3], pa.int8()),
        pa.array(["a", None, "c"]),
        pa.array(["a", "a", "c"]),
        pa.array([[1], [2], [3]]),
        pa.array([{"a": 1}, {"a": 2}, {"a": 3}]),
        pa.array(["a", "b", "c"]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_a_dictionary_longer_than_its_rows_is_read_like_any_other(values: Any) -> None:
    expected = [*texts(values), None]
    for places in ([], [2], [None], [2, 0], [1, None], [2, 2, 0, None, 1]):
        column = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), values)
        found, where = distinct(column)
        written = texts(found)
        assert [written[place] for place in where] == [expected[3 if place is None else place] for place in places]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4])
def test_categories_are_read_however_few_rows_there_are(kind: pa.DataType, rows: int) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 2][:rows], pa.int8()), pa.array(NAMES[:3]).cast(kind))
    assert codes(pa.table({"town": column})) == [2, 0, 1, 2][:rows]


@pytest.mark.parametrize("first", [126, 127, 128])
@pytest.mark.parametrize("second", [[], [0], [0, 150], [150, 151, 152]])
def test_chunks_whose_dictionaries_need_a_wider_index_together_are_read(first: int, second: list[int]) -> None:
    def chunk(numbers: list[int]) -> Any:
        values = pa.array([NAMES[number] for number in numbers], pa.string())
        return values.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))

    column = pa.chunked_array([chunk(list(range(first))), chunk(second)])
    for table in (
        pa.table({"town": column}),
        pd.DataFrame({"town": pd.Series(column, dtype=pd.ArrowDtype(column.type))}),
    ):
        assert codes(table) == [*range(first), *second]
