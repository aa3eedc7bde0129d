"""What the texts of the papers state, row by row as `figures.csv` holds it, with where it is stated."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

TITLES = {
    "diffgen": "Mohammed, Chen, Fung, Yu. Differentially Private Data Release for Data Mining. KDD 2011",
    "cdiffgen": "Qian, Song, Liang. The Optimization of the Range-Count Queries in Differential Privacy",
    "diffmulti": "Al-Hussaeni, Fung, Iqbal, Liu, Hung. Differentially-Private Multidimensional Data Publishing",
    "dpcocgen": "Benkhelif, Fessant, Clérot, Raschia. Co-clustering for Differentially Private Synthetic Data "
    "Generation. 2017",
    "confidence": "Sattar, Li, Ding, Liu, Vincent. A General Framework for Privacy Preserving Data Publishing",
}


@dataclass(frozen=True)
class Stated:
    """One row: what a paper says that a measure is in a setting, in a number or in words."""

    paper: str
    figure: str
    setting: str
    measure: str
    value: float | None
    note: str
    source: str

    @property
    def figures(self) -> tuple[str, ...]:
        """Give the names of the figures that show it; `4-5` is two."""
        return tuple(self.figure.split("-"))

    @property
    def number(self) -> float:
        """Give the number, where there is one."""
        assert self.value is not None, "stated in words alone"
        return self.value

    @property
    def better(self) -> str:
        """Say on which side of the stated number a better one lies."""
        return "below" if self.measure.startswith("BA-CA") or self.measure == "seconds" else "above"

    @property
    def words(self) -> str:
        """Say what is stated, as far as possible in the paper's words."""
        number = "" if self.value is None else f"{self.value:g}"
        return ", ".join(part for part in (number, self.note) if part)


@cache
def stated() -> tuple[Stated, ...]:
    """Give all rows."""
    text = (resources.files(__package__) / "figures.csv").read_text("utf-8")
    return tuple(
        Stated(**{key: row[key] for key in row if key != "value"}, value=float(row["value"]) if row["value"] else None)
        for row in csv.DictReader(text.splitlines())
    )


def statement(paper: str, figure: str, measure: str, setting: str = "") -> Stated:
    """Find the one row of a figure and a measure, told from others by how its setting begins."""
    (found,) = (
        one
        for one in stated()
        if (one.paper, one.figure, one.measure) == (paper, figure, measure) and one.setting.startswith(setting)
    )
    return found
