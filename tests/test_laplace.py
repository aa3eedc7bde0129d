"""The noisy contingency table: every cell, one round."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from replay import Recorder, run
from sfumato import Laplace
from sfumato.engines.local import MemoryEngine
from sfumato.errors import MethodError


def test_every_cell_is_counted_with_all_of_epsilon(adult, adult_codes) -> None:
    schema = adult.schema.only(["sex", "race", "income"])
    names = list(adult.schema.predictors)
    columns = [adult_codes[0][names.index(name)] for name in schema.predictors]
    draft, purse = run(Laplace(), schema, MemoryEngine(columns, adult_codes[1]), Fraction(50), Recorder(1))
    assert [(debit.label, debit.epsilon) for debit in purse.debits] == [("counts", 50)]
    truth = np.zeros((*schema.shape, 2), np.int64)
    np.add.at(truth, (*columns, adult_codes[1]), 1)
    assert np.array_equal(draft.final.counts.reshape(truth.shape), truth)


def test_a_domain_too_large_is_refused_with_its_longest_attributes(adult) -> None:
    with pytest.raises(MethodError) as refused:
        Laplace().plan(adult.schema, Fraction(1))
    assert "cells) must have at most 10,000,000 cells" in str(refused.value)
    longest = max(adult.schema.predictors, key=lambda name: adult.schema.predictors[name].leaves)
    assert f"the longest attributes are {longest} (" in str(refused.value)


def test_the_number_of_cells_can_be_bounded() -> None:
    with pytest.raises(MethodError, match="max_cells"):
        Laplace(max_cells=0)
