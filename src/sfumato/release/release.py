"""The release: what was measured, a model that answers from all of it, and nothing else.

Counts are kept as they were measured, negatives included, and become records only when someone asks for records. What
kind of model it is, only the model knows. Conditions, one or a hundred thousand, are read into weights and answered
block by block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from sfumato.arrays import CodedRows, Integers
from sfumato.errors import ReleaseError
from sfumato.exact import read_whole
from sfumato.frames import Frame, as_frame
from sfumato.geometry.regions import Regions, Sides
from sfumato.models import model_of
from sfumato.models.intervals import CLASS
from sfumato.models.model import Answers, Description, Estimate, Model, Nonnegative
from sfumato.models.replicates import Combined, Doubt, Replicate
from sfumato.privacy.measurements import Draft
from sfumato.release.folder import RECORDS_FILE, SYNTHETIC, read_release, space_for, write_release
from sfumato.release.manifest import Manifest
from sfumato.release.questions import Condition, answers, read_question
from sfumato.release.records import count_names, held, record_batches, values
from sfumato.schema.attributes import Identifier
from sfumato.schema.schema import Schema, variables_of
from sfumato.storage import staged_folder

if TYPE_CHECKING:
    from sfumato.pictures.plots import Picture

Synthetic = Literal["parquet", "csv"]
"""The kind of a file of synthetic people."""
WITH_INTERVALS = re.compile(r"\s+with\s+intervals\s*;?\s*$", re.IGNORECASE)
"""What asks for intervals at the end of a SELECT."""
MOST_ROWS = 10**9
"""The most records of a sample."""
MOST_REPLICATES = 1000
"""The most data sets that are drawn at once."""


@dataclass(frozen=True, eq=False)
class Release:
    """A published table, frozen: ask it with `count`, `count_many` or `sql`, or take its `records` or a `sample`."""

    schema: Schema
    draft: Draft
    """the structure and all that was measured"""
    manifest: Manifest

    def __repr__(self) -> str:
        """The method, the promise and the number of groups, in one line."""
        secure = "" if self.manifest.secure else ", NO GUARANTEE (unsafe seed)"
        if self.manifest.promise is not None:
            model = self.manifest.promise.model
            return f"Release({self.manifest.method}, {model}, groups={self.groups:,}, NO EPSILON{secure})"
        return f"Release({self.manifest.method}, epsilon={self.manifest.epsilon}, groups={self.groups:,}{secure})"

    @cached_property
    def model(self) -> Model:
        """The model that answers, from everything that was measured."""
        return model_of(self.schema, self.draft)

    @property
    def groups(self) -> int:
        """The number of groups; of exact counts, those that hold someone."""
        return self.model.groups

    @property
    def total(self) -> int:
        """The estimated number of people."""
        return self.model.total

    @property
    def is_exact(self) -> bool:
        """Whether counts are exact, without noise."""
        return self.draft.is_exact

    @cached_property
    def regions(self) -> Regions:
        """The geometry of the groups."""
        if self.model.regions is None:
            raise ReleaseError("the release must have groups, and is of another kind", "Use count, sql or sample.")
        return self.model.regions

    @property
    def has_groups(self) -> bool:
        """Whether people were counted in groups; else a network was fitted to what was counted."""
        return self.model.regions is not None

    @property
    def extent(self) -> str:
        """How many groups it has, in words; or that it is a network."""
        if not self.has_groups:
            return f"a network of {len(self.schema.shape) + (self.schema.target is not None)} attributes"
        return "1 group" if self.groups == 1 else f"{self.groups:,} groups"

    @property
    def told_apart(self) -> list[str]:
        """The attributes that generalized records tell apart, beside the class."""
        names = list(self.schema.predictors)
        return [] if self.groups == 1 else [names[at] for at in self.describe().told_apart]

    @property
    def grouping(self) -> str:
        """The attribute of examples: the first that records tell apart, or the class, or any."""
        names = [*self.told_apart, *filter(None, [self.schema.target]), *self.schema.predictors]
        return next(iter(names), count_names(self.schema)[1])

    @property
    def about_records(self) -> str:
        """What a row of the generalized records is."""
        if self.has_groups:
            return f"A row of {RECORDS_FILE} is a group: a generalized value of every attribute."
        if self.groups > 1:
            return (
                f"A row of {RECORDS_FILE} is a kind of people: a generalized value of every attribute. Nobody counted "
                "them one by one: they are drawn from the network, which was fitted to counts of few attributes."
            )
        return (
            f"{RECORDS_FILE} has everybody in one group, by class if there is one: what this release says stands in "
            "its network. Take synthetic people, or ask for counts."
        )

    @property
    def disjoint(self) -> bool:
        """Whether each person lies in one group."""
        return self.model.regions is not None and self.model.regions.disjoint

    @cached_property
    def sides(self) -> list[Sides]:
        """The ranges that the groups have of each attribute."""
        return [self.regions.sides(attribute) for attribute in range(len(self.schema.shape))]

    @property
    def notes(self) -> tuple[str, ...]:
        """Exact remarks for the holder who has just made it: never written, so a release from disk has none."""
        return self.draft.notes

    def describe(self) -> Description:
        """Describe the structure, for people."""
        return self.model.describe()

    def count(self, condition: Condition = "") -> Estimate:
        """Estimate how many people satisfy a condition such as `age between 30 and 40 and sex = 'Female'`.

        Of weights of leaves, by attribute, estimate the sum of people so weighted.
        """
        return answers(self.model, [condition], lambda _: "")[0]

    def count_many(
        self, conditions: Sequence[Condition], place: Callable[[int], str] = "conditions[{}]: ".format
    ) -> Answers:
        """Estimate many counts at once, thousands in the time of a few; a mistake is told with its place."""
        return answers(self.model, conditions, place)

    def explain(self, condition: str = "") -> pa.Table:
        """List the fewest groups, inner nodes of a tree included, that make up what a condition covers wholly."""
        parts = [self.model.explain(query) for query in read_question(self.schema, condition).inside]
        columns = {
            name: pa.array([one for names, _ in parts for one in names[name]], pa.string()) for name in parts[0][0]
        }
        return pa.table(columns | {"estimate": np.concatenate([estimates for _, estimates in parts])})

    def sql(self, query: str, frame: Frame = "arrow", *, intervals: bool = False) -> Any:
        """Answer a SELECT over the relation `release` with estimates, and with their 95 % intervals if wanted.

        For example: `select sex, count(*) from release where age >= 40 group by sex`. With intervals, every estimated
        column is followed by two, of the same name with `_low` and `_high`. A query may also ask for them itself, by
        the words `with intervals` at its end.
        """
        query, said = WITH_INTERVALS.subn("", query)
        if intervals or said:
            from sfumato.release.sql_intervals import answer_with_intervals

            return as_frame(answer_with_intervals(query, self.model, self._doubt), frame)
        from sfumato.release.sql import answer

        return as_frame(answer(query, self.model), frame)

    def plot(self, attribute: str, other: str | None = None, *, where: str = "", parts: int = 20) -> Picture:
        """Draw how many people have each value of an attribute, with 95 % intervals; or of two attributes together.

        With `where`, only people who satisfy a condition count. Attributes are drawn in so many parts at most.
        """
        from sfumato.release.plots import plot

        return plot(self, attribute, other, where, parts)

    def _repr_html_(self) -> str:
        from sfumato.release.plots import release_html

        return release_html(self)

    def records(self, frame: Frame = "arrow", how: Nonnegative = "projection") -> Any:
        """Make the generalized records with their counts, groups without people left out."""
        kept = [held(self.schema, batch) for batch in self._record_batches(how)]
        return as_frame(pa.Table.from_batches(kept), frame)

    def sample(
        self,
        rows: int | None = None,
        frame: Frame = "arrow",
        *,
        seed: int | None = None,
        how: Nonnegative = "projection",
        replicates: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """Draw synthetic records with original values, as many as the noisy total unless said otherwise.

        With replicates, draw so many data sets, as a list, which differ as far as what was measured leaves open:
        estimate from each, and `combine`. Only some columns are drawn if these are named. Name those that an analysis
        is about: the fewer are drawn together, the finer replicates differ in how they hang together.
        """
        rng, names = _random(seed), _names_of(self.schema, columns)
        if replicates is None:
            return self._sampled(self._draw(self.model, self.total, rows, rng, how), names, frame, rng)
        number = read_whole(replicates)
        if number is None or not 2 <= number <= MOST_REPLICATES:
            raise ReleaseError(
                f"replicates ({replicates}) must be a whole number from 2 to {MOST_REPLICATES:,}",
                "Give another number, or none for a single sample.",
            )
        return [
            self._sampled(drawn, names, frame, rng) for drawn in self._draw_replicates(number, rows, names, rng, how)
        ]

    def combine(self, estimates: ArrayLike, variances: ArrayLike | None = None) -> Combined:
        """Combine what was estimated from each replicate into one estimate with its interval.

        Without variances the interval is for the table that was published; with variances, the squares of standard
        errors, for the population that the table is a sample of.
        """
        return Combined.of(estimates, variances)

    def sample_codes(
        self, rows: int | None = None, *, seed: int | None = None, how: Nonnegative = "projection"
    ) -> dict[str, Integers]:
        """Draw synthetic records as leaf codes, by attribute."""
        return self._draw(self.model, self.total, rows, _random(seed), how)

    def classify_codes(self, rows: CodedRows) -> Integers:
        """Predict the codes of the classes of coded rows: leaf codes by name."""
        if self.schema.target is None:
            raise ReleaseError("a release must have a class to classify by", "Publish with a target.")
        return self.model.classify([rows[name] for name in self.schema.predictors])

    def save(self, folder: str | Path, synthetic: Synthetic | None = None) -> None:
        """Write the release to a folder, whole or not at all; with a file of synthetic people, if wanted."""
        with staged_folder(folder, space_for(self.draft.cells, self.schema)) as staging:
            self.write_into(staging, synthetic)

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release, checking that it is whole and as published. Nothing in it is executed."""
        return cls(*read_release(folder))

    def write_into(self, staging: Path, synthetic: Synthetic | None = None) -> Release:
        """Write the release's files into an empty folder, and seal them."""
        if synthetic is not None and synthetic not in SYNTHETIC:
            raise ReleaseError(f"synthetic ({synthetic}) must be parquet or csv", "Choose one, or leave it out.")
        sealed = write_release(
            staging,
            self.schema,
            self.draft,
            self.manifest,
            self.published_batches(),
            {} if synthetic is None else {SYNTHETIC[synthetic]: self.people()},
            self.explained,
        )
        return replace(self, manifest=sealed)

    def people(self) -> pa.Table:
        """Draw the synthetic people that a folder may have: with a known seed, so that anyone can draw them again."""
        return self.sample(seed=0)

    def explained(self, digests: Mapping[str, str]) -> dict[str, str]:
        """Write the texts that explain the release, by name, given the digests of its other files."""
        from sfumato.release.metadata import croissant, data_package, deployment
        from sfumato.release.readme import dictionary, readme

        texts = {
            "dictionary.csv": dictionary(self),
            "croissant.json": croissant(self, digests),
            "datapackage.json": data_package(self, digests),
            "deployment.yaml": deployment(self),
        }
        return {"README.md": readme(self, [*digests, *texts, "README.md"])} | texts

    def published_batches(self) -> Iterator[pa.RecordBatch]:
        """Make the rows of `records.parquet`: every cell where counts are noisy, else those that hold someone."""
        batches = self._record_batches("projection")
        if not self.is_exact:
            return batches
        return (held(self.schema, batch) for batch in batches)

    def _record_batches(self, how: Nonnegative) -> Iterator[pa.RecordBatch]:
        return record_batches(self.schema, self.model.generalized(how))

    @cached_property
    def _doubt(self) -> Doubt:
        return Doubt.of(self.model)

    def _draw_replicates(
        self, number: int, rows: int | None, names: Sequence[str], rng: np.random.Generator, how: Nonnegative
    ) -> Iterator[dict[str, Integers]]:
        """Draw people from one replicate after the other; names are the columns that are looked at."""
        asked = {at for at, name in enumerate(self.schema.predictors) if name in names}
        asked |= {CLASS} if self.schema.target in names else set()
        for _ in range(number):
            replicate = self._doubt.replicate(asked, rng)
            yield self._draw(replicate, round(replicate.size), rows, rng, how)

    def _draw(
        self, source: Model | Replicate, total: int, rows: int | None, rng: np.random.Generator, how: Nonnegative
    ) -> dict[str, Integers]:
        size = max(total, 0) if rows is None else read_whole(rows)
        if size is None or not 0 <= size <= MOST_ROWS:
            raise ReleaseError(
                f"rows ({rows}) must be a whole number from 0 to {MOST_ROWS:,}", "Give another number, or none."
            )
        leaves, classes = source.draw(size, rng, how)
        drawn = dict(zip(self.schema.predictors, leaves, strict=True))
        return drawn if self.schema.target is None else drawn | {self.schema.target: classes}

    def _sampled(
        self, drawn: Mapping[str, Integers], names: Sequence[str], frame: Frame, rng: np.random.Generator
    ) -> Any:
        """Turn leaf codes into values, of some columns."""
        columns = {
            name: values(column, drawn[name], rng)
            for name, column in self.schema.attributes.items()
            if name in names and not isinstance(column, Identifier)
        }
        return as_frame(pa.table(columns), frame)


def _names_of(schema: Schema, columns: Sequence[str] | None) -> Sequence[str]:
    """Name the columns to draw; refuse such as there are not."""
    known = list(variables_of(schema))
    if columns is None:
        return known
    given = [columns] if isinstance(columns, str) else list(columns)
    for name in given:
        if name not in known:
            raise ReleaseError(
                f"columns ({str(name)[:40]}) must be attributes of this release", f"It has {', '.join(known[:20])}."
            )
    return given


def _random(seed: int | None) -> np.random.Generator:
    """A random source for samples, which are post-processing; refuse what is no seed."""
    if seed is not None and (read_whole(seed) is None or seed < 0):
        raise ReleaseError(f"seed ({seed}) must be a whole number from 0 up", "Give another seed, or none.")
    return np.random.default_rng(seed)
