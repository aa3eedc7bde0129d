"""The release: noisy counts of regions with everything needed to use them, and nothing else.

Frozen, self-contained, and honest about noise: counts are kept as they were measured, negatives included, and become
records only when someone asks for records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import ReleaseError
from sfumato.exact import read_whole
from sfumato.geometry.boxes import Regions
from sfumato.models.coclusters import CoclusterEstimates
from sfumato.models.consistency import Consistency
from sfumato.models.estimates import Estimates
from sfumato.models.margins import Spread, people_of
from sfumato.models.model import Answers, Estimate
from sfumato.models.projection import Nonnegative
from sfumato.models.questions import Condition, Questions, estimates_of
from sfumato.models.regions import Sides, cell_estimates, regions_of, sides_of
from sfumato.privacy.measurements import Margin, NodeCounts, Noisy
from sfumato.release.folder import Contents, read_release, space_for, write_release
from sfumato.release.manifest import Manifest
from sfumato.release.records import Frame, as_frame, count_names, draw_cells, draw_leaves, record_batches, values
from sfumato.release.sql import CellColumn, answer, cell_columns, cell_table, refuse_too_many
from sfumato.schema.attributes import Identifier
from sfumato.schema.schema import Schema
from sfumato.storage import staged_folder
from sfumato.tables.encode import encode, refuse_misfits
from sfumato.tables.sources import open_table

MOST_ROWS = 10**9


@dataclass(frozen=True, eq=False)
class Release:
    """A published table. `count`, `count_many`, `records`, `sample` and `classify` are its faces."""

    schema: Schema
    partition: Regions
    counts: Noisy
    """regions x classes"""
    margins: Mapping[int, Margin]
    """attribute -> noisy counts of its leaves, and of groups of them"""
    manifest: Manifest
    earlier: tuple[NodeCounts, ...] = ()
    """what was bought for nodes of a tree on the way to its regions"""
    consistency: Consistency = "least squares"
    """how the counts of a tree are made to agree"""
    histogram: Noisy | None = None
    """noisy counts of all single cells, by class, from which the groups of a grid were made"""
    notes: tuple[str, ...] = ()
    """for the holder who has just made it, exact: never written, and gone when it is read"""

    def __repr__(self) -> str:
        """Tell the method, the promise and the size."""
        secure = "" if self.manifest.secure else ", NO GUARANTEE (unsafe seed)"
        if self.manifest.promise is not None:
            model = self.manifest.promise.model
            return f"Release({self.manifest.method}, {model}, groups={self.groups:,}, NO EPSILON{secure})"
        return f"Release({self.manifest.method}, epsilon={self.manifest.epsilon}, groups={self.groups:,}{secure})"

    @property
    def groups(self) -> int:
        """The number of groups; of exact counts, those that hold someone."""
        return int(self.counts.counts.any(axis=1).sum()) if self.counts.is_exact else self.partition.regions

    @property
    def total(self) -> int:
        """The noisy number of people."""
        return self.estimates.total

    @cached_property
    def estimates(self) -> Estimates:
        """The best estimate of every region's counts from everything that was bought."""
        return estimates_of(
            self.partition,
            self.counts,
            earlier=self.earlier,
            consistency=self.consistency,
            histogram=self.histogram,
            sampling=self.manifest.sampling,
        )

    @cached_property
    def sides(self) -> list[Sides]:
        """The ranges that the regions have of each attribute."""
        return [sides_of(self.partition, attribute) for attribute in range(len(self.schema.predictors))]

    @cached_property
    def _spreads(self) -> list[Spread]:
        """How people are spread over the leaves of each attribute, in the order of which regions have ranges."""
        return [spread.reordered(side.order) for spread, side in zip(self._leaf_spreads, self.sides, strict=True)]

    @cached_property
    def _leaf_spreads(self) -> list[Spread]:
        """How people are spread over the leaves of each attribute."""
        return [
            Spread.of(leaves, people_of(self.margins[attribute]) if attribute in self.margins else None)
            for attribute, leaves in enumerate(self.schema.shape)
        ]

    @cached_property
    def _questions(self) -> Questions:
        return Questions.to(self.schema, self.sides, self._spreads, self.estimates)

    def count(self, condition: Condition = "") -> Estimate:
        """Estimate how many people satisfy a condition such as `age between 30 and 40 and sex = 'Female'`, or a sum of
        people weighted by weights of leaves, by attribute.
        """
        return self._questions.ask([condition], lambda _: "")[0]

    def count_many(
        self, conditions: Sequence[Condition], place: Callable[[int], str] = "conditions[{}]: ".format
    ) -> Answers:
        """Estimate many counts at once, thousands in the time of a few; a mistake is told with its place."""
        return self._questions.ask(conditions, place)

    def explain(self, condition: str = "") -> pa.Table:
        """Give the fewest groups, inner nodes of a tree included, that make up what a condition covers wholly."""
        question = self._questions.read(condition)
        whole = self._questions.wholly_covered(question, np.arange(self.partition.regions))
        boxes, counts = self.estimates.covering(whole)
        names = list(self.schema.predictors)
        columns = {
            names[at]: self.sides[at].labels(self.schema.predictors[names[at]], boxes[:, at])
            for at in self.partition.split_attributes
        }
        return pa.table(columns | {"estimate": counts @ question.classes})

    def sql(self, query: str, frame: Frame = "arrow") -> Any:
        """Answer a SELECT over the relation `release` with estimates, such as `select sex, count(*) from release where
        age >= 40 group by sex`.
        """
        columns = cell_columns(self.schema)
        table = answer(query, self.schema, columns, lambda names: self._cells(names, columns))
        return as_frame(table, frame)

    def _cells(self, names: set[str], columns: Mapping[str, CellColumn]) -> pa.Table:
        """Give every combination of leaves of some attributes, with its estimate; everybody is of one nameless class
        where the class is not asked for.
        """
        refuse_too_many(self.schema, names)
        asked = [at for at, name in enumerate(self.schema.predictors) if name in names]
        target = self.schema.target if self.schema.target in names else None
        counts = self.estimates.values if target else self.estimates.values.sum(axis=1, keepdims=True)
        order = [*(list(self.schema.predictors)[at] for at in asked), target or ""]
        cells = cell_estimates(self.partition, counts, self.sides, self._leaf_spreads, asked)
        return cell_table(cells, order, columns)

    def classify(self, table: Any) -> NDArray[np.str_]:
        """Give the class that is most frequent in the region of each row of a table: a path or a frame, with or
        without a class column.
        """
        predictors = Schema(missing_values=self.schema.missing_values, attributes=dict(self.schema.predictors))
        coded = encode(open_table(table), predictors)
        refuse_misfits(coded)
        return np.asarray(self.schema.classes)[self.classify_codes(coded.columns)]

    def classify_codes(self, rows: Mapping[str, NDArray[np.unsignedinteger]]) -> NDArray[np.int64]:
        """Give the code of the class that is most frequent in the region of each row; rows are leaf codes by name."""
        if self.schema.target is None:
            raise ReleaseError("a release must have a class to classify by", "Publish with a target.")
        regions = regions_of(self.partition, [rows[name] for name in self.schema.predictors])
        return self.estimates.majorities()[regions]

    def records(self, frame: Frame = "arrow", how: Nonnegative = "projection") -> Any:
        """Give the generalized records with their counts, groups without people left out."""
        noisy, count = count_names(self.schema)
        kept = [batch.filter(pc.greater(batch[count], 0)) for batch in self._record_batches(how)]
        return as_frame(pa.Table.from_batches(kept).drop_columns([noisy]), frame)

    def _record_batches(self, how: Nonnegative) -> Iterator[pa.RecordBatch]:
        return record_batches(self.schema, self.sides, self.estimates.shown, self.estimates.people(how))

    def sample(
        self,
        rows: int | None = None,
        frame: Frame = "arrow",
        *,
        seed: int | None = None,
        how: Nonnegative = "projection",
    ) -> Any:
        """Draw synthetic records with original values, as many as the noisy total unless said otherwise."""
        rng = _random(seed)
        drawn = self._draw(rows, rng, how)
        columns = {
            name: values(column, drawn[name], rng)
            for name, column in self.schema.attributes.items()
            if not isinstance(column, Identifier)
        }
        return as_frame(pa.table(columns), frame)

    def sample_codes(
        self, rows: int | None = None, *, seed: int | None = None, how: Nonnegative = "projection"
    ) -> dict[str, NDArray[np.int64]]:
        """Draw synthetic records as leaf codes, by attribute."""
        return self._draw(rows, _random(seed), how)

    def _draw(self, rows: int | None, rng: np.random.Generator, how: Nonnegative) -> dict[str, NDArray[np.int64]]:
        size = max(self.total, 0) if rows is None else read_whole(rows)
        if size is None or not 0 <= size <= MOST_ROWS:
            raise ReleaseError(
                f"rows ({rows}) must be a whole number from 0 to {MOST_ROWS:,}", "Give another number, or none."
            )
        if isinstance(self.estimates, CoclusterEstimates):
            cells = self.estimates.cell_people(self._leaf_spreads, how)
            *leaves, classes = np.unravel_index(draw_cells(cells, size, rng), cells.shape)
        else:
            drawn_cells = draw_cells(self.estimates.people(how), size, rng)
            regions, classes = np.divmod(drawn_cells, len(self.schema.classes))
            leaves = draw_leaves(self.sides, self._spreads, regions, rng)
        drawn = dict(zip(self.schema.predictors, leaves, strict=True))
        return drawn if self.schema.target is None else drawn | {self.schema.target: classes}

    @property
    def _contents(self) -> Contents:
        return (
            *(self.schema, self.partition, self.counts, self.margins),
            *(self.manifest, self.earlier, self.consistency, self.histogram),
        )

    def save(self, folder: str | Path) -> None:
        """Write the release to a folder, whole or not at all."""
        bought = [self.counts, *(one.noisy for one in self.earlier), *([self.histogram] if self.histogram else [])]
        cells = sum(noisy.counts.size for noisy in bought)
        with staged_folder(folder, space_for(cells, self.schema)) as staging:
            self.write_into(staging)

    def write_into(self, staging: Path) -> Release:
        """Write the release's files into an empty folder; give the release with its files sealed."""
        return replace(self, manifest=write_release(staging, self._contents, self.published_batches()))

    def published_batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows of `records.parquet`: every cell where counts are noisy, else those that hold someone."""
        batches = self._record_batches("projection")
        if not self.counts.is_exact:
            return batches
        noisy, count = count_names(self.schema)
        return (batch.filter(pc.greater(batch[count], 0)).drop_columns([noisy]) for batch in batches)

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release, checking that it is whole and as published. Nothing in it is executed."""
        return cls(*read_release(folder))


def _random(seed: int | None) -> np.random.Generator:
    if seed is not None and (read_whole(seed) is None or seed < 0):
        raise ReleaseError(f"seed ({seed}) must be a whole number from 0 up", "Give another seed, or none.")
    return np.random.default_rng(seed)
