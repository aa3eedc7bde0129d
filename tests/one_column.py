"""One column declared, filled and encoded in a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.schema.schema import Schema
from sfumato.tables.encode import Coded, encode
from sfumato.tables.sources import open_table


def coded(facts: dict[str, Any], values: Any, **more: Any) -> Coded:
    """Encode one column."""
    frame = values if hasattr(values, "schema") or isinstance(values, pd.DataFrame) else pa.table({"x": values})
    return encode(open_table(frame), Schema.parse({"attributes": {"x": facts}} | more))


def codes(facts: dict[str, Any], values: Any) -> list[int]:
    """Encode one column in which all fits."""
    result = coded(facts, values)
    assert not result.misfits
    return result.columns["x"].tolist()


def reasons(facts: dict[str, Any], values: Any) -> dict[str, int]:
    """Encode one column and count what does not fit."""
    result = coded(facts, values)
    assert len(result.columns["x"]) == result.rows == len(values)
    return {misfit.reason: misfit.rows for misfit in result.misfits}


def numeric(lower: Any, upper: Any, step: Any = 1, **more: Any) -> dict[str, Any]:
    """Declare a grid."""
    return {"kind": "numeric", "lower": lower, "upper": upper, "step": step} | more


def names(*leaves: str, **more: Any) -> dict[str, Any]:
    """Declare a flat taxonomy."""
    return {"kind": "categorical", "taxonomy": list(leaves)} | more


TENTHS = numeric(0, 1, "0.1")
YEAR = numeric("2020-01-01", "2020-12-31")


def loose(values: list[Any]) -> pd.DataFrame:
    """Put values of any type into one column."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return pd.DataFrame({"x": pd.Series(column, dtype=object)})
