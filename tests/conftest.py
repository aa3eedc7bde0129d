"""Small tables, releases and ledgers that many tests share."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import command_line
from debits import ROUND
from handmade import release_of
from sfumato import Release, Schema, datasets
from sfumato.engines.local import MemoryEngine
from sfumato.privacy.ledger import Ledger
from sfumato.tables.encode import encode
from sfumato.tables.sources import open_table

settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")

PAPER = """
name: paper
confirmed: true
attributes:
  job:
    kind: categorical
    root: Any_Job
    taxonomy: {Professional: [Engineer, Lawyer], Artist: [Dancer, Writer]}
  age: {kind: numeric, lower: 18, upper: 64}
  class: {kind: class, taxonomy: [Y, N]}
"""

ROWS = [
    ("Engineer", 34, "Y"),
    ("Lawyer", 50, "N"),
    ("Engineer", 38, "N"),
    ("Lawyer", 33, "Y"),
    ("Dancer", 20, "Y"),
    ("Writer", 37, "N"),
    ("Writer", 32, "Y"),
    ("Dancer", 25, "N"),
]


@pytest.fixture(scope="session")
def paper_schema() -> Schema:
    """The taxonomy of DiffGen's Figure 1."""
    return Schema.loads(PAPER)


@pytest.fixture(scope="session")
def paper_columns() -> list[np.ndarray]:
    """DiffGen's Table 1.a as codes: job, age, class."""
    jobs = ["Engineer", "Lawyer", "Dancer", "Writer"]
    return [
        np.array([jobs.index(job) for job, _, _ in ROWS], np.uint8),
        np.array([age - 18 for _, age, _ in ROWS], np.uint8),
        np.array(["YN".index(label) for _, _, label in ROWS], np.uint8),
    ]


@pytest.fixture(scope="session")
def paper_engine(paper_columns: list[np.ndarray]) -> MemoryEngine:
    """Table 1.a behind an engine."""
    return MemoryEngine(paper_columns[:2], paper_columns[2])


@pytest.fixture(scope="session")
def adult() -> datasets.Dataset:
    """The bundled table."""
    return datasets.adult()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and its confirmed schema, in which commands run."""
    monkeypatch.chdir(tmp_path)
    command_line.write(command_line.people(), tmp_path / "people.csv")
    Path("people.schema.yaml").write_text(command_line.SCHEMA)
    return tmp_path


@pytest.fixture
def release(here: Path) -> Path:
    command_line.done("publish", "people.csv", "--epsilon", "1", "--specializations", "3", "--out", "release")
    return here / "release"


@pytest.fixture
def people() -> Release:
    return release_of(margins={0: np.array([5, 10, -2, 4, 1]), 3: np.arange(8)})


@pytest.fixture
def saved(people: Release, tmp_path: Path) -> Path:
    people.save(tmp_path / "release")
    return tmp_path / "release"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    opened = Ledger(path, "people", Fraction(2))
    opened.begin()
    return opened


@pytest.fixture
def busy(ledger: Ledger) -> Ledger:
    """A ledger with a row in every table."""
    reservation = ledger.reserve("diffgen", Fraction(1))
    reservation.pay(ROUND)
    reservation.settle("published", "digest")
    return ledger


@pytest.fixture(scope="session")
def adult_codes(adult) -> tuple[list[np.ndarray], np.ndarray]:
    """Adult as leaf codes: the attributes' columns, and the class."""
    coded = encode(open_table(adult.table), adult.schema).columns
    return [coded[name] for name in adult.schema.predictors], coded["income"]
