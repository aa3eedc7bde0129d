"""What others' checkers say of our groups: k and l hold by pycanon, too. Skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sfumato import TDS, Account, Mondrian, datasets

anonymity = pytest.importorskip("pycanon.anonymity")

QUASI = ["age", "education", "marital_status", "sex", "hours_per_week"]


@pytest.mark.parametrize(
    ("method", "diversity"),
    [(Mondrian(k=10, quasi=QUASI), 1), (Mondrian(k=10, quasi=QUASI, diversity=2), 2), (TDS(k=5, quasi=QUASI), 1)],
    ids=["mondrian", "mondrian, diverse", "tds"],
)
def test_pycanon_agrees(method: Mondrian | TDS, diversity: int, tmp_path: Path, adult: datasets.Dataset) -> None:
    account = Account(tmp_path / "adult.ledger", adult.schema)
    groups = account.publish(adult.table, method).records("pandas")
    records: pd.DataFrame = groups.loc[groups.index.repeat(groups["count"])].astype(str).reset_index(drop=True)
    assert len(records) == adult.table.num_rows
    assert anonymity.k_anonymity(records, QUASI) >= method.k
    assert anonymity.l_diversity(records, QUASI, ["income"]) >= diversity
