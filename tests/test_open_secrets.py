"""What a release without epsilon keeps to itself, and what neither its maker nor its manifest can talk away."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from forging import reseal
from open_tables import SMALL, Rows, drafted, exact
from sfumato import TDS, Account, Confidence, DiffGen, Mondrian, Release, Schema
from sfumato.errors import MethodError, PrivacyError, ReleaseError
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import Tree
from sfumato.privacy.budget import INFINITE, NonPrivate
from sfumato.privacy.exact_counts import ExactCounts
from sfumato.privacy.ledger import Publication
from sfumato.privacy.measurements import Draft, Noisy
from sfumato.release.promises import ConfidenceCap, KAnonymity
from test_account import SCHEMA as PEOPLE
from test_account import TABLE
from test_confidence_releases import publish as capped
from test_open_releases import published

SCHEMA = Schema.loads("""
name: patients
confirmed: true
attributes:
  age: {kind: numeric, lower: 0, upper: 7, step: 1}
  sex: {kind: categorical, taxonomy: [m, f]}
  disease: {kind: categorical, taxonomy: [flu, cold, hiv]}
""")
RNG = np.random.default_rng(0)
ORDINARY = pd.DataFrame(
    {"age": RNG.integers(0, 7, 3050), "sex": RNG.choice(["m", "f"], 3050), "disease": RNG.choice(["flu", "cold"], 3050)}
)
RARE = pd.concat([ORDINARY, pd.DataFrame({"age": [7], "sex": ["f"], "disease": ["hiv"]})])
STATISTICS = (
    "attribute,value,probability\n"
    + "".join(f"age,{age},0.125\n" for age in range(8))
    + "sex,m,0.5\nsex,f,0.5\ndisease,flu,0.5\ndisease,cold,0.499999\ndisease,hiv,0.000001\n"
)
OWN = Confidence(sensitive="disease", statistics_from_data=True, sampling="1", distortion="0")


def disclosed(folder: Path, table: pd.DataFrame, method: Confidence) -> Release:
    return Account(folder / "ledger", SCHEMA).publish(table, method, out=folder / "release")


def test_own_statistics_do_not_tell_who_was_suppressed(tmp_path: Path) -> None:
    without, with_one = (disclosed(tmp_path / str(len(one)), one, OWN) for one in (ORDINARY, RARE))
    assert with_one.manifest.promise.plain() == without.manifest.promise.plain()


def informed(rows: Rows) -> ConfidenceCap:
    method = Confidence(sensitive="class", statistics_from_data=True)
    schema = method.narrowed(SMALL)
    return method.informed(exact(rows), schema).promise(schema)


def test_own_statistics_do_not_tell_all_from_nearly_all() -> None:
    alike, one_other = [(0, 0, 0, 0)] * 5000, [(0, 0, 0, 0)] * 4999 + [(4, 3, 1, 1)]
    assert informed(alike) == informed(one_other)


@pytest.mark.parametrize(("records", "steps"), [(39, 1), (40, 2), (399, 10), (400, 20), (2000, 100), (90000, 100)])
def test_a_step_of_own_statistics_is_worth_many_records(records: int, steps: int) -> None:
    many = records * 2 // 3
    known = informed([(0, 0, 0, 0)] * many + [(4, 3, 1, 1)] * (records - many)).knowledge
    floors = [math.ceil(steps * many / records) - 1, math.ceil(steps * (records - many) / records) - 1, 0]
    left = steps - sum(floors)
    assert known.sensitive.tolist() == pytest.approx([(one + Fraction(left, 3)) / steps for one in floors])


def test_the_holder_alone_is_told_who_was_left_out(tmp_path: Path) -> None:
    release = disclosed(tmp_path, RARE, Confidence(sensitive="disease", statistics=STATISTICS, sampling="1"))
    assert "suppressed: 1 records, unsafe within the distortion limit" in release.notes
    assert any(note.startswith("round 1: ") for note in release.notes)
    release.save(tmp_path / "again")
    for folder in ("release", "again"):
        assert Release.load(tmp_path / folder).notes == ()
        for path in (tmp_path / folder).iterdir():
            told = pq.read_table(path).to_pylist() if path.suffix == ".parquet" else path.read_text()
            assert "round 1" not in str(told)
            assert "suppressed: " not in str(told)


def test_no_draw_is_refused_without_a_line(tmp_path: Path) -> None:
    table = pd.DataFrame({"age": [1, 2] * 10, "sex": ["m", "f"] * 10, "disease": ["flu"] * 19 + ["hiv"]})
    account = Account(tmp_path / "ledger", SCHEMA)
    method = Confidence(sensitive="disease", statistics=STATISTICS, sampling="1/4", distortion=1)
    for _ in range(8):
        with contextlib.suppress(MethodError):
            account.publish(table, method)
    assert [len(one.debits) for one in account.statement().publications] == [1] * 8


def test_an_empty_sample_fails_on_record(tmp_path: Path) -> None:
    account = Account(tmp_path / "ledger", SCHEMA)
    for own in ({"statistics": STATISTICS}, {"statistics_from_data": True}):
        method = Confidence(sensitive="disease", sampling="1/1000000000", **own)
        with pytest.raises(MethodError, match="every one would be suppressed"):
            account.publish(ORDINARY, method)
    assert account.statement().spent == INFINITE


def test_borders_lie_in_the_middle_of_gaps() -> None:
    table = [(a, 0, 0, int(a > 4)) for a in (0, 1, 2, 6, 7, 8)]
    for method in (Mondrian(k=3, narrow=False), Mondrian(k=3, narrow=False, score="infogain"), TDS(k=3)):
        tree = drafted(method, table).structure
        assert tree.boxes[1:3, 0].tolist() == [[0, 4], [4, 9]]


class Sneaky(Mondrian):
    """A method that publishes without having looked."""

    def publish(self, counts: ExactCounts, schema: Schema) -> Draft:  # noqa: ARG002
        """Invent one group."""
        return self.draft(Tree.whole(schema.shape), np.array([[30, 30]]))


def test_what_was_not_looked_at_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="must have looked at the table"):
        published(Sneaky(k=5), tmp_path)
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(("outcome", "held"), [("published", INFINITE), ("open", INFINITE), ("failed", 0)])
def test_what_was_published_without_epsilon_costs_infinity(outcome: str, held: float) -> None:
    assert Publication("x", "now", "mondrian", INFINITE, outcome).held == held
    looked = Publication("x", "now", "mondrian", INFINITE, outcome, (NonPrivate("groups", "test"),))
    assert looked.held == INFINITE


@pytest.mark.parametrize(
    "change",
    [
        {"k": -3},
        {"k": 0},
        {"k": 1},
        {"diversity": 0},
        {"k": 2, "diversity": 3},
        {"quasi": ["job", "age", "zip code"]},
        {"quasi": ["age", "job"]},
        {"quasi": []},
        {"sensitive": "disease"},
        {"sensitive": None},
    ],
)
def test_a_promise_about_something_else_is_not_believed(tmp_path: Path, change: dict[str, object]) -> None:
    plain = published(Mondrian(k=5), tmp_path).manifest.promise.plain() | change
    promise = KAnonymity(plain["k"], tuple(plain["quasi"]), plain["sensitive"], plain.get("diversity", 1))
    words = {"guarantee": promise.guarantee, "adversary": promise.adversary}
    plain = {name: one for name, one in plain.items() if one is not None}
    reseal(tmp_path / "release", promise=plain, **words)
    with pytest.raises(ReleaseError):
        Release.load(tmp_path / "release")


@pytest.mark.parametrize("change", [{"quasi": ("age", "town", "sex")}, {"sensitive": "income"}])
def test_a_cap_on_something_else_is_not_believed(tmp_path: Path, change: dict[str, object]) -> None:
    promise = capped(tmp_path, seed=None).manifest.promise
    assert isinstance(promise, ConfidenceCap)
    told = {"quasi": promise.quasi, "sensitive": promise.sensitive} | change
    other = ConfidenceCap(**told, sampling=promise.sampling, knowledge=promise.knowledge)
    reseal(tmp_path / "release", promise=other.plain(), guarantee=other.guarantee, adversary=other.adversary)
    with pytest.raises(ReleaseError, match="must be about its own attributes"):
        Release.load(tmp_path / "release")


def test_a_manifest_without_looks_is_none(tmp_path: Path) -> None:
    published(Mondrian(k=5), tmp_path)
    reseal(tmp_path / "release", ledger=[])
    with pytest.raises(ReleaseError, match="must be a Sfumato manifest"):
        Release.load(tmp_path / "release")


def test_counts_fit_their_regions() -> None:
    promise, grid = KAnonymity(2, ("a",)), Grid(((0, 2, 4),))
    assert promise.kept(grid, np.array([[3], [2]]))
    assert not promise.kept(grid, np.array([[3]]))
    assert not promise.kept(grid, np.array([3, 2]))


def test_rates_are_said_as_they_are() -> None:
    cap = ConfidenceCap(("a",), "b", Fraction(999999999, 10**9), None)
    assert "sampling rate 999999999/1000000000 times" in cap.guarantee


class Careless(DiffGen):
    """A differentially private method that hands in exact counts."""

    def publish(self, meter, schema, schedule) -> Draft:
        """Take the noise away."""
        draft = super().publish(meter, schema, schedule)
        counts = replace(draft.final, noisy=Noisy.exact(draft.final.counts))
        return replace(draft, measurements=(*draft.measurements[:-1], counts))


def test_exact_counts_are_not_sealed_with_an_epsilon(tmp_path: Path) -> None:
    account = Account(tmp_path / "ledger", Schema.loads(PEOPLE))
    with pytest.raises(PrivacyError, match="must be what the meter has measured"):
        account.publish(TABLE, Careless(specializations=2), "1", out=tmp_path / "release")
    assert not (tmp_path / "release").exists()
