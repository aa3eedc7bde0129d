"""Small tables that many tests share."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato import Schema, datasets
from sfumato.counts.memory import MemoryEngine

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
