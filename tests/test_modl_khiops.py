"""Khiops, where it is installed (`pip install sfumato[khiops]`), prices its grids as we do, and finds none cheaper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grids
import khiops
from grids import ADULT_KINDS, CATEGORICAL, MIXED, MIXED_KINDS, NUMERIC, SQUARE, table_of
from sfumato.modl import Kind, fit

pytestmark = [
    pytest.mark.skipif(not khiops.is_installed(), reason="khiops-core is not installed"),
    pytest.mark.slow,
]
PAIR = (CATEGORICAL, CATEGORICAL)


@pytest.mark.parametrize(
    ("histogram", "kinds"),
    [
        pytest.param(SQUARE, PAIR, id="square"),
        pytest.param(MIXED, MIXED_KINDS, id="mixed"),
        pytest.param(grids.planted((100, 100), (5, 4), 20_000, PAIR)[0], PAIR, id="100 x 100"),
        pytest.param(grids.planted((40, 30, 12), (4, 3, 3), 20_000, (*PAIR, NUMERIC))[0], (*PAIR, NUMERIC), id="3-d"),
        pytest.param(grids.adult(), ADULT_KINDS, id="adult"),
    ],
)
def test_khiops_finds_no_cheaper_grid(histogram: np.ndarray, kinds: tuple[Kind, ...], tmp_path: Path) -> None:
    theirs = khiops.coclustering(histogram, kinds, tmp_path)
    ours = fit(histogram, kinds, variant="khiops11")
    table = table_of(histogram, kinds, "khiops11")
    labels = tuple(part[seen] for part, seen in zip(theirs.labels, table.seen, strict=True))
    assert table.cost(labels) == pytest.approx(theirs.cost, rel=1e-9)
    assert ours.null_cost == pytest.approx(theirs.null_cost, rel=1e-9)
    assert ours.cost <= theirs.cost * (1 + 1e-9)
