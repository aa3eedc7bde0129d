"""The release: noisy counts of regions with everything needed to use them, and nothing else.

Frozen, self-contained, and honest about noise: counts are kept as they were measured, negatives included, and become
records only when someone asks for records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.attributes import Categorical
from sfumato.errors import ReleaseError
from sfumato.partition import Grid
from sfumato.privacy.noisy import Noisy
from sfumato.release.answers import Estimate, PartWeights, estimate
from sfumato.release.conditions import read_condition
from sfumato.release.folder import Contents, read_release, space_for, write_release
from sfumato.release.manifest import Manifest
from sfumato.release.projection import Nonnegative, nonnegative
from sfumato.release.records import Frame, as_frame, count_names, record_batches
from sfumato.release.spread import spread
from sfumato.release.synthesis import draw_cells, draw_records, values
from sfumato.schema import Schema
from sfumato.storage import staged_folder

MOST_ROWS = 10**9


@dataclass(frozen=True, eq=False)
class Release:
    """A published table. `count`, `records` and `sample` are its three faces."""

    schema: Schema
    partition: Grid
    counts: Noisy
    """regions x classes"""
    margins: Mapping[int, Noisy]
    """attribute -> noisy count of each leaf"""
    manifest: Manifest

    def __repr__(self) -> str:
        """Tell the method, the promise and the size."""
        secure = "" if self.manifest.secure else ", NO GUARANTEE (unsafe seed)"
        return f"Release({self.manifest.method}, epsilon={self.manifest.epsilon}, groups={self.groups:,}{secure})"

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.partition.regions

    @property
    def total(self) -> int:
        """The noisy number of people."""
        return int(self.counts.counts.sum())

    @cached_property
    def _shares(self) -> list[NDArray[np.float64]]:
        """How people are spread over the leaves inside each part of each attribute."""
        return [
            spread(cut, self.margins[attribute].counts if attribute in self.margins else None)
            for attribute, cut in enumerate(self.partition.cuts)
        ]

    def count(self, condition: str = "") -> Estimate:
        """Estimate how many people satisfy a condition such as `age between 30 and 40 and sex = 'Female'`."""
        return self.count_weighted(read_condition(self.schema, condition))

    def count_weighted(self, weights: Mapping[str, NDArray[np.float64]]) -> Estimate:
        """Estimate a count from weights of leaves, by attribute; an attribute left out is not restricted."""
        parts = [
            PartWeights.of(cut, shares, weights.get(name))
            for name, cut, shares in zip(self.schema.predictors, self.partition.cuts, self._shares, strict=True)
        ]
        target = self.schema.target
        everyone = np.ones(len(self.schema.classes))
        return estimate(
            self.partition, self.counts, parts, everyone if target is None else weights.get(target, everyone)
        )

    def records(self, frame: Frame = "arrow", how: Nonnegative = "projection") -> Any:
        """Give the generalized records with their counts, groups without people left out."""
        people = nonnegative(self.counts.counts, how)
        noisy, count = count_names(self.schema)
        batches = record_batches(self.schema, self.partition, self.counts.counts, people)
        kept = [batch.filter(pc.greater(batch[count], 0)) for batch in batches]
        return as_frame(pa.Table.from_batches(kept).drop_columns([noisy]), frame)

    def sample(
        self,
        rows: int | None = None,
        frame: Frame = "arrow",
        *,
        seed: int | None = None,
        how: Nonnegative = "projection",
    ) -> Any:
        """Draw synthetic records with original values, as many as the noisy total unless said otherwise."""
        size = max(self.total, 0) if rows is None else rows
        if not isinstance(size, int) or not 0 <= size <= MOST_ROWS:
            raise ReleaseError(
                f"rows ({size}) must be a whole number from 0 to {MOST_ROWS:,}", "Ask for fewer records."
            )
        if seed is not None and seed < 0:
            raise ReleaseError(f"seed ({seed}) must be 0 or more", "Give another seed, or none.")
        rng = np.random.default_rng(seed)
        cells = draw_cells(nonnegative(self.counts.counts, how), size, rng)
        regions, classes = np.divmod(cells, len(self.schema.classes))
        predictors = self.schema.predictors
        drawn = dict(
            zip(
                predictors,
                draw_records(self.partition, list(predictors.values()), self._shares, regions, rng),
                strict=True,
            )
        )
        if self.schema.target is not None:
            column = self.schema.attributes[self.schema.target]
            assert isinstance(column, Categorical)
            drawn[self.schema.target] = values(column, classes, rng)
        names = [name for name in self.schema.attributes if name in drawn]
        return as_frame(pa.table([drawn[name] for name in names], names=names), frame)

    @property
    def _contents(self) -> Contents:
        return self.schema, self.partition, self.counts, self.margins, self.manifest

    def save(self, folder: str | Path) -> None:
        """Write the release to a folder, whole or not at all."""
        with staged_folder(folder, space_for(self.counts.counts.size, self.schema)) as staging:
            self.write_into(staging)

    def write_into(self, staging: Path) -> Release:
        """Write the release's files into an empty folder; give the release with its files sealed."""
        return replace(self, manifest=write_release(staging, self._contents))

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release, checking that it is whole and as published. Nothing in it is executed."""
        return cls(*read_release(folder))
