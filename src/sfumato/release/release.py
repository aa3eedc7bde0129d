"""The release: noisy counts of regions with everything needed to use them, and nothing else.

Frozen, self-contained, and honest about noise: counts are kept as they were measured, negatives included, and become
records only when someone asks for records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.attributes import Categorical
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.partition import Grid
from sfumato.privacy.noisy import Noisy
from sfumato.release.answers import Estimate, estimate
from sfumato.release.conditions import read_condition
from sfumato.release.manifest import Manifest
from sfumato.release.projection import Nonnegative, nonnegative
from sfumato.release.spread import by_part, spread
from sfumato.release.storage import give_room, sha256, staged_folder
from sfumato.release.synthesis import draw_cells, draw_records, values
from sfumato.schema import Schema

Frame = Literal["arrow", "pandas", "polars"]
CHUNK = 1 << 16
BYTES_PER_CELL = 24
"""What a cell takes in a release folder at most: dictionary codes compress well below this."""


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

    def uniform(self) -> Release:
        """Give the same release without its margins: people are spread evenly inside groups, as in the papers."""
        return replace(self, margins={})

    def count(self, condition: str = "") -> Estimate:
        """Estimate how many people satisfy a condition such as `age between 30 and 40 and sex = 'Female'`."""
        return self.count_weighted(read_condition(self.schema, condition))

    def count_weighted(self, weights: Mapping[str, NDArray[np.float64]]) -> Estimate:
        """Estimate a count from weights of leaves, by attribute; an attribute left out is not restricted."""
        parts = [
            by_part(cut, shares * weights[name]) if name in weights else np.ones(len(cut) - 1)
            for name, cut, shares in zip(self.schema.predictors, self.partition.cuts, self._shares, strict=True)
        ]
        parts = [np.where(np.isclose(part, 1.0, rtol=0, atol=1e-12), 1.0, part) for part in parts]
        classes = weights.get(self.schema.target or "", np.ones(len(self.schema.classes)))
        return estimate(self.partition, self.counts, parts, classes)

    def records(self, frame: Frame = "arrow", how: Nonnegative = "projection") -> Any:
        """Give the generalized records with their counts, groups without people left out."""
        people = nonnegative(self.counts.counts, how).ravel()
        noisy, count = self._count_names
        batches = [batch.filter(pa.compute.greater(batch[count], 0)) for batch in self._record_batches(people)]
        return _as_frame(pa.Table.from_batches(batches).drop_columns([noisy]), frame)

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
        if size < 0:
            raise ReleaseError(f"rows ({rows}) must be 0 or more", "Ask for a number of records.")
        rng = np.random.default_rng(seed)
        cells = draw_cells(nonnegative(self.counts.counts, how), size, rng)
        regions, classes = np.divmod(cells, len(self.schema.classes))
        drawn = dict(
            zip(
                self.schema.predictors,
                draw_records(self.partition, list(self.schema.predictors.values()), self._shares, regions, rng),
                strict=True,
            )
        )
        if self.schema.target is not None:
            column = self.schema.attributes[self.schema.target]
            assert isinstance(column, Categorical)
            drawn[self.schema.target] = values(column, classes, rng)
        names = [name for name in self.schema.attributes if name in drawn]
        return _as_frame(pa.table([drawn[name] for name in names], names=names), frame)

    @property
    def _count_names(self) -> tuple[str, str]:
        """The columns for noisy and non-negative counts, named so that no attribute has the same name."""
        tail = ""
        while {f"noisy_count{tail}", f"count{tail}"} & self.schema.attributes.keys():
            tail += "_"
        return f"noisy_count{tail}", f"count{tail}"

    def _record_batches(self, people: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Give all cells as readable rows: generalized values, class, noisy count, non-negative count."""
        classes = len(self.schema.classes)
        noisy = self.counts.counts.ravel()
        for start in range(0, self.partition.regions, CHUNK):
            regions = np.arange(start, min(start + CHUNK, self.partition.regions))
            columns = {
                name: self._labels(attribute, np.repeat(self.partition.parts_at(attribute, regions), classes))
                for attribute, name in enumerate(self.schema.predictors)
            }
            if self.schema.target is not None:
                codes = pa.array(np.tile(np.arange(classes, dtype=np.int32), len(regions)))
                columns[self.schema.target] = pa.DictionaryArray.from_arrays(codes, pa.array(self.schema.classes))
            cells = slice(start * classes, (start + len(regions)) * classes)
            columns |= zip(self._count_names, (pa.array(noisy[cells]), pa.array(people[cells])), strict=True)
            yield pa.RecordBatch.from_pydict(columns)

    def _labels(self, attribute: int, parts: NDArray[np.int64]) -> pa.Array:
        column = list(self.schema.predictors.values())[attribute]
        names = [column.label(lo, hi) for lo, hi in pairwise(self.partition.cuts[attribute])]
        return pa.DictionaryArray.from_arrays(pa.array(parts, pa.int32()), pa.array(names))

    def save(self, folder: str | Path) -> None:
        """Write the release to a folder, whole or not at all."""
        with staged_folder(folder, space_for(self.counts.counts.size)) as staging:
            self.write_into(staging)

    def write_into(self, staging: Path) -> Release:
        """Write the release's files into an empty folder; give the release with its files sealed."""
        give_room(staging)
        try:
            self._write_records(staging / "records.parquet")
            self._write_margins(staging / "margins.parquet")
            (staging / "schema.json").write_text(
                json.dumps(self.schema.plain(), indent=1, ensure_ascii=False), encoding="utf-8"
            )
            (staging / "geometry.json").write_text(json.dumps(self._geometry(), ensure_ascii=False), encoding="utf-8")
            sealed = replace(
                self,
                manifest=self.manifest.with_files({path.name: sha256(path) for path in sorted(staging.iterdir())}),
            )
            (staging / "manifest.json").write_text(sealed.manifest.dump(), encoding="utf-8")
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            raise ReleaseError(
                f"the release must be writable ({reason})", "Free some space or choose another place."
            ) from None
        return sealed

    def _geometry(self) -> dict[str, Any]:
        return {
            "cuts": dict(zip(self.schema.predictors, self.partition.cuts, strict=True)),
            "counts_epsilon": str(self.counts.epsilon),
            "margins_epsilon": {str(attribute): str(margin.epsilon) for attribute, margin in self.margins.items()},
        }

    def _write_records(self, path: Path) -> None:
        batches = self._record_batches(nonnegative(self.counts.counts, "projection").ravel())
        first = next(batches)
        with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)

    def _write_margins(self, path: Path) -> None:
        names, columns = list(self.schema.predictors), list(self.schema.predictors.values())
        rows: list[tuple[str, int, str, int]] = [
            (names[attribute], leaf, columns[attribute].label(leaf, leaf + 1), int(count))
            for attribute, margin in self.margins.items()
            for leaf, count in enumerate(margin.counts)
        ]
        kinds = (pa.string(), pa.int64(), pa.string(), pa.int64())
        arrays = [pa.array([row[position] for row in rows], kind) for position, kind in enumerate(kinds)]
        pq.write_table(pa.table(arrays, names=["attribute", "leaf", "value", "noisy_count"]), path, compression="zstd")

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release, checking that it is whole and as published. Nothing in it is executed."""
        place = Path(folder)
        try:
            manifest = Manifest.loads((place / "manifest.json").read_text(encoding="utf-8"))
            for name, digest in (manifest.files or {}).items():
                if Path(name).name != name or sha256(place / name) != digest:
                    raise ReleaseError(
                        f"{name} must be as it was published, and was changed",
                        "Get the release again from its publisher.",
                    )
            return cls._read(place, manifest)
        except (OSError, UnicodeDecodeError):
            raise ReleaseError(
                f"{place} must be a release folder, with manifest.json and its files",
                "Name the folder that publish wrote.",
            ) from None
        except SfumatoError:
            raise
        except (ValueError, KeyError, TypeError, pa.ArrowException, RecursionError):
            raise ReleaseError(
                f"{place} must be a Sfumato release, and its files do not fit together",
                "Get the release again.",
            ) from None

    @classmethod
    def _read(cls, place: Path, manifest: Manifest) -> Release:
        schema = Schema.parse(json.loads((place / "schema.json").read_text(encoding="utf-8")))
        geometry = json.loads((place / "geometry.json").read_text(encoding="utf-8"))
        grid = Grid(tuple(tuple(map(int, geometry["cuts"][name])) for name in schema.predictors))
        noisy = pq.read_table(place / "records.parquet", columns=["noisy_count"])["noisy_count"].to_numpy()
        counts = Noisy(noisy.reshape(grid.regions, len(schema.classes)), Fraction(geometry["counts_epsilon"]))
        table = pq.read_table(place / "margins.parquet", columns=["attribute", "noisy_count"])
        names = np.asarray(table["attribute"].to_pylist(), dtype=object)
        by_name = list(schema.predictors)
        margins = {
            int(attribute): Noisy(table["noisy_count"].to_numpy()[names == by_name[int(attribute)]], Fraction(text))
            for attribute, text in geometry["margins_epsilon"].items()
        }
        if grid.shape != schema.shape or manifest.schema_digest != schema.digest:
            raise ReleaseError(
                "the release's schema must fit its manifest", "Get the release again from its publisher."
            )
        return cls(schema, grid, counts, margins, manifest)


def space_for(cells: int) -> int:
    """Bound the bytes that a release of so many cells takes on disk."""
    return (1 << 20) + cells * BYTES_PER_CELL


def _as_frame(table: pa.Table, frame: Frame) -> Any:
    if frame == "arrow":
        return table
    try:
        return nw.from_arrow(table, backend=frame).to_native()
    except ImportError:
        raise ReleaseError(f"frame ({frame}) must be installed", f"Run: pip install {frame}") from None
    except ValueError:
        raise ReleaseError(f"frame ({frame}) must be arrow, pandas or polars", "Choose one of them.") from None
