"""What a release shows, worked out a second time: its records from its counts, its promise from its records, and what
its noise is worth.

Apart from reading, which has no use for it: queries and samples rest on the counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import ReleaseError
from sfumato.privacy.noisy import Noisy
from sfumato.promises import KAnonymity
from sfumato.release.folder import RECORDS_FILE
from sfumato.release.manifest import AGAIN
from sfumato.release.reading import read_columns
from sfumato.release.records import count_names
from sfumato.release.release import Release
from sfumato.tree import Tree

ROUNDING = 1
"""On another machine a person may be rounded into the next cell."""
OTHER = "records.parquet must follow from the counts, and does not"


def refuse_other_records(place: Path, release: Release) -> None:
    """Refuse records that are not those that the release's counts make."""
    batches = release.published_batches()
    first = next(batches)
    table = read_columns(place / RECORDS_FILE, first.schema.names)
    if table.schema.names != first.schema.names:
        raise ReleaseError(OTHER, AGAIN)
    slack, at = 0 if release.counts.is_exact else ROUNDING, 0
    people = [0, 0]
    for batch in _joined(first, batches):
        own = table.slice(at, batch.num_rows)
        at += batch.num_rows
        if own.num_rows != batch.num_rows or not all(
            _same(own[name], batch[name], slack) for name in table.column_names
        ):
            raise ReleaseError(OTHER, AGAIN)
        count = count_names(release.schema)[1]
        people = [total + (pc.sum(one[count]).as_py() or 0) for total, one in zip(people, (own, batch), strict=True)]
    if at != table.num_rows or people[0] != people[1]:
        raise ReleaseError(OTHER, AGAIN)


def _joined(first: pa.RecordBatch, others: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield first
    yield from others


def _same(shown: pa.ChunkedArray, made: pa.Array, slack: int) -> bool:
    """Compare names exactly, and numbers to within the slack."""
    if pa.types.is_dictionary(made.type):
        return bool(shown.cast(pa.string()).equals(pa.chunked_array([made.cast(pa.string())])))
    if shown.type != made.type or shown.null_count or len(shown) != len(made):
        return False
    return not len(made) or bool(np.abs(shown.to_numpy() - made.to_numpy(zero_copy_only=False)).max() <= slack)


def refuse_small_groups(place: Path, release: Release) -> None:
    """Refuse records that break the promise, by the generalized values that they show."""
    promise = release.manifest.promise
    if promise is None or not promise.kept(release.partition, release.counts.counts):
        raise ReleaseError("the published groups must be as promised, and are not", AGAIN)
    if isinstance(promise, KAnonymity):
        count = count_names(release.schema)[1]
        sensitive = [promise.sensitive] if promise.sensitive is not None else []
        table = read_columns(place / RECORDS_FILE, [*promise.quasi, *sensitive, count])
        groups = _plain_text(table).group_by(list(promise.quasi)).aggregate([(count, "sum"), (count, "count")])
        small = pc.min(groups[f"{count}_sum"]).as_py() < promise.k
        if small or (sensitive and pc.min(groups[f"{count}_count"]).as_py() < promise.diversity):
            raise ReleaseError("the published records must be as promised, and are not", AGAIN)


def _plain_text(table: pa.Table) -> pa.Table:
    fields = [pa.field(one.name, pa.string() if pa.types.is_dictionary(one.type) else one.type) for one in table.schema]
    return table.cast(pa.schema(fields))


def most_paid(release: Release) -> Fraction:
    """Give what the counts of a release have cost the record that was counted most, by the noise that they have.

    A count with noise of rate r is worth r to everyone counted in it: the margins and the histogram count everyone,
    the nodes of a tree those on the path through them. Choices leave no noise behind, so they are not in it.
    """
    rates = [groups.rate for margin in release.margins.values() for groups in margin.levels]
    rates += [] if release.histogram is None else list(release.histogram.rates)
    return sum(rates, Fraction(0)) + _most_on_a_path(release)


def _most_on_a_path(release: Release) -> Fraction:
    tree = release.partition
    if not isinstance(tree, Tree):
        return max(release.counts.rates)
    bought = [(tree.leaves, release.counts), *((one.nodes, one.noisy) for one in release.earlier)]
    unit = math.lcm(*(rate.denominator for _, noisy in bought for rate in noisy.rates))
    paid = np.zeros(len(tree), object)
    for nodes, noisy in bought:
        paid[nodes] += _wholes(noisy, unit)
    order = np.argsort(tree.depths, kind="stable")
    for nodes in np.split(order, np.searchsorted(tree.depths[order], np.arange(1, tree.depths.max() + 1)))[1:]:
        paid[nodes] += paid[tree.parents[nodes]]
    return Fraction(max(paid[tree.leaves]), unit)


def _wholes(noisy: Noisy, unit: int) -> Any:
    """Give each place's rate as a whole number of 1 / unit."""
    if not noisy.rates:
        return 0
    return np.array([int(rate * unit) for rate in noisy.rates], object)[noisy.rate_of]
