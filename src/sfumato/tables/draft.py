"""Draft a schema: a first guess at what each column is, and why, for a person to correct and confirm.

It makes public values from private ones, which nothing else may do without paying. So the draft is marked as derived
from private data, refused until a person has confirmed it, and holds as little of any person as a guess can:

* a category is written only if `FEWEST` rows have it; all rarer ones go to a leaf for values that are not named;
* a bound is the value of the row that is `FEWEST` rows from the end, rounded outward to a round number, and is never
  the value of fewer rows than that (0 aside, which is nobody's secret); rows beyond it count in the nearest cell;
* what names people, numbers records or is free text is an identifier, which is not read at all.

That is care, not differential privacy: who adds many rows can still learn something from a draft.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from sfumato.errors import SchemaError, TableError, guarded, unreadable
from sfumato.schema import recognize
from sfumato.schema.attributes import EPOCH, LARGEST, Categorical, Identifier, Numeric
from sfumato.schema.codebooks import CodeBook
from sfumato.schema.codes import SYSTEMS, CodeSystem
from sfumato.schema.formats import CLOCK, COMMA, DAYS, NUMBERS, POINT
from sfumato.schema.schema import Column, Schema
from sfumato.schema.yaml import Comments, write_commented
from sfumato.tables.coders import LeafFinder
from sfumato.tables.seen import ABSENT, ABSENT_BY_DEFAULT, FEWEST, PLAIN_DAY, PLAIN_NUMBER, Reading, Seen, Tail
from sfumato.tables.streams import FIGURES, Table
from sfumato.tables.values import FINE

MOST_SMALL = 12
"""A column with at most this many different numbers or days is taken for categories."""
DRAFTED_CELLS = 200
"""About how many cells a grid has at most."""
NEARLY = 1.05
"""Values are nearly distinct if so many rows have the same one, on average, or fewer."""
MOSTLY = 0.95
"""A column is of codes if this share of its rows is."""
MUCH = 0.5
"""If values that few rows have make up more than this share of rows, they are names, texts or codes."""
SKEWED = 20
"""A grid follows orders of magnitude if half of the rows lie in this part of its range: the first twentieth."""
LARGE = 1000
"""Only grids that reach this far follow orders of magnitude."""
FINEST = Decimal("1e-6")
"""Bounds are not nearer to each other than this, nor than this part of their size."""
OFTEN = 10
"""A number has a leaf of its own if one row in so many has it."""
LAST_DAY = datetime.date(9999, 12, 30)
"""The last day that a schema may have."""


@dataclass(frozen=True)
class Guess:
    """What a column seems to be, and why."""

    column: Column
    why: str
    worded: bool = False
    """whether it holds words for "no value" that schemas do not know by themselves"""
    declared: bool = False
    """whether a code book says so"""


@dataclass(frozen=True)
class Drafted:
    """A drafted schema, with the reason for each column. It is unconfirmed."""

    schema: Schema
    reasons: Mapping[str, str] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()
    """the columns that a code book declares"""
    repeated: tuple[str, ...] = ()
    """identifiers that several rows share, so that a person may have several rows"""

    def dump(self, head: str = "") -> str:
        """Write the schema as YAML after some lines of comment, each column with its reason as a comment."""
        return write_commented(self.schema.plain(), Comments(head, self.reasons))

    def about(self, person: str, rows_per_person: int) -> Drafted:
        """The same for rows about persons, as a column tells, of whom so many rows count at most."""
        if person not in self.schema.attributes:
            raise SchemaError(f"person ({person[:40]}) must be a column of the table", "Check its name.")
        facts = {one: getattr(self.schema, one) for one in Schema.model_fields}
        facts |= {"person": person, "rows_per_person": rows_per_person}
        facts["attributes"] = {**self.schema.attributes, person: Identifier()}
        reasons = {**self.reasons, person: "tells whom a row is about: read, and never published"}
        return replace(self, schema=Schema.parse(facts), reasons=reasons, repeated=())

    @property
    def bounded(self) -> dict[str, Numeric]:
        """The columns whose bounds were guessed: not those of times of the day, or of a code book."""
        return {
            name: facts
            for name, facts in self.schema.attributes.items()
            if isinstance(facts, Numeric) and facts.written != CLOCK and name not in self.declared
        }

    def with_bounds(self, found: Mapping[str, tuple[tuple[Any, Any], int]]) -> Drafted:
        """The same with other bounds, each with the number of rows that it leaves out, about."""
        attributes, reasons = dict(self.schema.attributes), dict(self.reasons)
        for name, ((lower, upper), rows) in found.items():
            facts = attributes[name]
            assert isinstance(facts, Numeric)
            if lower >= upper:
                guessed = _dropped("no bounds were found with this epsilon")
                attributes[name], reasons[name] = guessed.column, guessed.why
                continue
            attributes[name] = _between(facts, lower, upper)
            what = reasons[name].removesuffix(_BEYOND).rstrip("; ")
            reasons[name] = f"{what}; bounds found with epsilon, each with about {rows:,} rows beyond it at most"
        schema = Schema(**{one: getattr(self.schema, one) for one in Schema.model_fields} | {"attributes": attributes})
        return replace(self, schema=schema, reasons=reasons)


def _between(facts: Numeric, lower: Any, upper: Any) -> Numeric:
    """A grid like another between other bounds."""
    same: dict[str, Any] = {"written": facts.written, "missing": facts.missing}
    if facts.is_date:
        last = upper - datetime.timedelta(days=1)
        return Numeric(lower=lower, upper=last, step=_step_of_days(lower, last), **same)
    if facts.grid == "log" and max(abs(lower), abs(upper)) >= LARGE:
        return Numeric(lower=lower, upper=upper, grid="log", **same)
    whole = facts.is_whole and not facts.is_uneven
    step = Decimal(1) if whole and upper - lower <= DRAFTED_CELLS else _unit(upper - lower, DRAFTED_CELLS)
    step = max(step, Decimal(1)) if whole else step
    points = [point for point in facts.points if step > 1 and lower <= point <= upper]
    return Numeric(lower=lower, upper=upper, step=step, points=points, **same)


def draft_schema(
    table: Table,
    name: str,
    target: str | None = None,
    *,
    budget: Fraction | None = None,
    book: CodeBook | None = None,
    decimal: str | None = None,
    date_format: str | None = None,
    watch: Callable[[str], None] = lambda _: None,
) -> Drafted:
    """A schema guessed from the values; what a code book declares of columns is taken from there."""
    book, forms = book or CodeBook({}), _forms(decimal, date_format)
    seen, rows = look_at(table, table.columns, watch)
    if rows < FEWEST:
        raise TableError(
            f"the table must have {FEWEST} rows or more to draft a schema that betrays none of them",
            "Give it rows, or write the schema by hand.",
        )
    _refuse_headless(table, seen)
    guesses = {
        column: guarded(partial(_declared_or_guessed, column, seen[column], forms, book), unreadable(column))
        for column in table.columns
        if table.named_by != "its records" or seen[column].given >= FEWEST
    }
    if all(isinstance(one.column, Identifier) for one in guesses.values()):
        raise TableError(
            "the table must have a column that is no identifier", "Give it one, or write the schema by hand if it has."
        )
    facts: dict[str, Any] = {
        "attributes": {column: _titled(one.column, book.titles.get(column, "")) for column, one in guesses.items()}
    }
    words = recognize.ABSENT_WORDS if any(one.worded for one in guesses.values()) else ABSENT_BY_DEFAULT
    facts["missing_values"] = list(dict.fromkeys([*words, *book.missing_values]))
    facts["budget"] = budget
    facts["origin"] = "declared" if all(one.declared for one in guesses.values()) else "derived from private data"
    schema = Schema(name=name, **facts)
    reasons = {column: one.why for column, one in guesses.items()}
    declared = frozenset(column for column, one in guesses.items() if one.declared)
    repeated = tuple(column for column, one in guesses.items() if _repeats(column, one, seen[column]))
    reasons |= {column: f"{reasons[column]}; several rows share a value" for column in repeated}
    return Drafted(schema if target is None else schema.with_target(target), reasons, declared, repeated)


def _titled(column: Column, title: str) -> Column:
    """A column that says what it means, if the code book does."""
    return column.model_copy(update={"title": title}) if title and not column.title else column


def _repeats(name: str, guessed: Guess, seen: Seen) -> bool:
    """Whether a column seems to say whom rows are about, and several rows are about the same."""
    named = recognize.names_people(name) or recognize.numbers_records(name)
    return named and isinstance(guessed.column, Identifier) and not seen.nested and seen.repetition > NEARLY


def _refuse_headless(table: Table, seen: Mapping[str, Seen]) -> None:
    """Refuse a first row that is a record rather than names: under its figures all are figures."""
    figures = [name for name, one in seen.items() if one.given and any(reading.holds for reading in one.readings)]
    if table.named_by == "its first row" and figures and all(map(FIGURES.match, figures)):
        raise TableError(
            "the first row of the table must name the columns, and seems to be a record: figures stand over figures",
            "Add a header, whose names of columns with figures do not all begin with one.",
        )


def look_at(table: Table, columns: list[str], watch: Callable[[str], None]) -> tuple[dict[str, Seen], int]:
    """What is seen of some columns in one pass, and the number of rows."""
    seen = {column: Seen() for column in columns}
    rows = 0
    for batch in table.batches(columns):
        rows += batch.num_rows
        watch(f"reading {rows:,} rows")
        for column, array in zip(columns, batch.columns, strict=True):
            guarded(partial(seen[column].look, array), unreadable(column))
    return seen, rows


def _declared_or_guessed(name: str, seen: Seen, forms: Forms, book: CodeBook) -> Guess:
    """What the code book declares, unless its labels are for a few of the values only, as of numbers with a code."""
    column = book.columns.get(name)
    if column is None:
        return guess(name, seen, forms)
    why = f"declared by {book.title}"
    if not isinstance(column, Categorical) or seen.nested:
        return Guess(column, why, declared=True)
    find = LeafFinder(column, ABSENT).find
    covered = seen.share(lambda text: find(text)[1] == FINE)
    if covered < 1 - MUCH:
        other = guess(name, seen, forms)
        return replace(other, why=f"{other.why}; {book.title} names few of its values")
    if covered < 1 or seen.many:
        column = Schema.parse({"attributes": {name: _with_other(column)}}).attributes[name]
        why += "; values that it does not name count as Other"
    return Guess(column, why, declared=True)


def _with_other(column: Categorical) -> dict[str, Any]:
    more = [] if "Other" in column.tree.leaves else ["Other"]
    return column.model_dump() | {"taxonomy": [*column.taxonomy, *more], "unseen": column.unseen or "Other"}


@dataclass(frozen=True)
class Forms:
    """The forms in which numbers and days are looked for."""

    numbers: tuple[str, ...] = (PLAIN_NUMBER, COMMA)
    days: tuple[str, ...] = (PLAIN_DAY, *DAYS)


def _forms(decimal: str | None, date_format: str | None) -> Forms:
    if decimal not in (None, *NUMBERS.values()):
        raise SchemaError(f"decimal ({decimal[:10] if decimal else ''}) must be a point or a comma", "Give . or ,")
    if date_format is not None and date_format not in DAYS:
        raise SchemaError(f"date format ({date_format[:40]}) must be one of the known ones", f"Use {', '.join(DAYS)}.")
    numbers = {".": (PLAIN_NUMBER,), ",": (COMMA,)}.get(decimal or "", Forms.numbers)
    return Forms(numbers, (PLAIN_DAY, date_format) if date_format else Forms.days)


def guess(name: str, seen: Seen, forms: Forms | None = None) -> Guess:
    """What a column is, by its name and by what was seen of it; the first rule that applies decides."""
    forms = forms or Forms()
    for rule in (_betraying, _coded, _calendar, _clock, _grid, _numbered):
        if (found := rule(name, seen, forms)) is not None:
            return found
    return _categories(seen)


def _dropped(why: str) -> Guess:
    return Guess(Identifier(), f"{why}: not read")


def _betraying(name: str, seen: Seen, forms: Forms) -> Guess | None:
    """Columns that name people, by their name, or by the shape of their values."""
    if seen.nested:
        return _dropped("lists or records")
    if not seen.given:
        return _dropped("no row has a value")
    if recognize.names_people(name) and seen.as_read(forms.days) is None and len(seen.counts) > 2:
        return _dropped("called like a column that names people")
    if seen.typed:
        return None
    for title, shape in recognize.SHAPES.items():
        if seen.share(lambda text, shape=shape: shape.fullmatch(text) is not None) > MUCH:
            return _dropped(title)
    return None


def _coded(name: str, seen: Seen, _forms: Forms) -> Guess | None:
    """Codes of a known system, by the name of the column and the shape of its values."""
    if len(seen.counts) <= MOST_SMALL:
        return None
    lost_zeros = False
    for system in SYSTEMS:
        if not (system.by_shape or system.is_named(name)):
            continue
        if seen.share(system.holds) >= MOSTLY and not _is_measure(seen, system):
            return _prefix_tree(seen, system)
        lost_zeros |= _lost_zeros(seen, system)
    return (
        _dropped("postal codes of which some have lost a leading zero, which must be restored") if lost_zeros else None
    )


def _is_measure(seen: Seen, system: CodeSystem) -> bool:
    """Whether values are numbers with decimals, which no code without letters has."""
    return seen.share(lambda text: "," in text) > 0 or (
        "ICD" not in system.title and "NACE" not in system.title and seen.share(lambda text: "." in text) > MUCH
    )


def _lost_zeros(seen: Seen, system: CodeSystem) -> bool:
    if "ZIP" not in system.title:
        return False
    short = seen.share(lambda text: text.isdigit() and len(text) in (3, 4))
    return short > 0 and short + seen.share(system.holds) >= MOSTLY


def _prefix_tree(seen: Seen, system: CodeSystem) -> Guess:
    missing = ["Missing"] if seen.missing else []
    column = Categorical(
        codes=system.prefix,
        taxonomy=["Other", *missing],
        unseen="Other",
        missing="Missing" if missing else None,
    )
    return Guess(column, f"{system.title}: a tree by how they begin, made without the table's values")


def _missing(seen: Seen) -> str | None:
    return free("Missing", {*seen.frequent}) if seen.missing else None


def _calendar(_name: str, seen: Seen, forms: Forms) -> Guess | None:
    """A grid of days between the first days of round years."""
    read = seen.as_read(forms.days)
    if read is None or _is_small(seen) or (read.form == "YYYYMMDD" and seen.share(lambda text: len(text) == 8) < 1):
        return None
    if read.low.bound is None or read.high.bound is None:
        return None
    first, last = (_day(bound) for bound in (read.low.bound, read.high.bound))
    unit = next((unit for unit in (1, 5, 10) if last.year - first.year < 10 * unit), 50)
    earlier, later = _first_days(first.year // unit * unit, -unit), _last_days(-(-(last.year + 1) // unit) * unit, unit)
    lower = next((day for day in earlier if not _is_rare(read.low, day)), None)
    upper = next((day for day in later if not _is_rare(read.high, day)), None)
    if lower is None or upper is None or lower >= upper:
        return _dropped("days whose bounds must be written by hand")
    form = None if read.form == PLAIN_DAY else read.form
    step = _step_of_days(lower, upper)
    column = Numeric(lower=lower, upper=upper, step=step, written=form, missing=_missing_word(seen, read))
    swapped = {"DD": "MM", "MM": "DD"}
    other = form and "".join(swapped.get(one, one) for one in _tokens(form))
    unclear = other != form and any(one.form == other and one.holds for one in seen.readings)
    why = f"days{f', written as {form}' if form else ''}; {_BEYOND}"
    if unclear:
        why += f"; they could also be read as {other}: make sure, or say it with --date-format"
    return Guess(column, why, _is_worded(seen, read))


_BEYOND = "bounds are round, and the few rows beyond them count in the nearest cell"


def _tokens(form: str) -> Iterator[str]:
    at = 0
    while at < len(form):
        size = 2 if form[at : at + 2] in ("DD", "MM") else 1
        yield form[at : at + size]
        at += size


def _step_of_days(lower: datetime.date, upper: datetime.date) -> Decimal:
    span = (upper - lower).days
    return Decimal(next((step for step in (1, 7, 30, 91, 365) if span // step < DRAFTED_CELLS), 3650))


def _day(number: float) -> datetime.date:
    ends = (datetime.date.min - EPOCH).days, (LAST_DAY - EPOCH).days
    return EPOCH + datetime.timedelta(days=int(min(max(number, ends[0]), ends[1])))


def _first_days(year: int, step: int) -> Iterator[datetime.date]:
    """First days of years, ever earlier."""
    for one in range(year, 0, step):
        yield datetime.date(one, 1, 1)
    yield datetime.date.min


def _last_days(year: int, step: int) -> Iterator[datetime.date]:
    """Last days before years, ever later."""
    for one in range(year, 10_000, step):
        yield datetime.date(one, 1, 1) - datetime.timedelta(days=1)
    yield LAST_DAY


def _is_rare(tail: Tail, day: datetime.date) -> bool:
    return tail.is_rare((day - EPOCH).days)


def _clock(_name: str, seen: Seen, _forms: Forms) -> Guess | None:
    """Times of the day, as minutes after midnight: the whole day is public."""
    read = seen.as_read((CLOCK,))
    if read is None or _is_small(seen):
        return None
    column = Numeric(
        lower=Decimal(0), upper=Decimal(1439), step=Decimal(30), written=CLOCK, missing=_missing_word(seen, read)
    )
    return Guess(column, "times of the day, as minutes after midnight", _is_worded(seen, read))


def _is_small(seen: Seen) -> bool:
    """Whether there are few different values, which are taken for categories."""
    return not seen.many and len(seen.counts) <= MOST_SMALL


def _missing_word(seen: Seen, read: Reading) -> str | None:
    return "Missing" if seen.missing or _is_worded(seen, read) else None


def _is_worded(seen: Seen, read: Reading) -> bool:
    """Whether some rows with a text have no number: words for "no value"."""
    return read.given < seen.given


def _numbered(name: str, seen: Seen, _forms: Forms) -> Guess | None:
    """Columns that number records, or hold texts or names that few rows share."""
    if recognize.numbers_records(name) and not _is_small(seen) and seen.repetition < FEWEST:
        return _dropped("called like a column that numbers records, and few rows share a value")
    if not seen.frequent:
        return _dropped(f"no value is shared by {FEWEST} rows (names, codes, free text or numbers of records)")
    if recognize.is_text(name) and seen.covered < 1 - MUCH / 2:
        return _dropped("free text")
    if seen.covered < 1 - MUCH or seen.many:
        return _dropped(f"most rows have a value that fewer than {FEWEST} share (names, codes or free text)")
    return None


def _categories(seen: Seen) -> Guess:
    """The values that many rows have, in their order, and a leaf for all others."""
    leaves, order = recognize.ordered(seen.frequent)
    rare = len(seen.frequent) < len(seen.counts) or seen.many
    missing = _missing(seen)
    extra = [one for one in ("Other" if rare else None, missing) if one is not None and one not in leaves]
    every = [*leaves, *extra]
    column = Categorical(taxonomy=every, root=free("Any", {*every}), missing=missing, unseen="Other" if rare else None)
    why = order + (f"; values that fewer than {FEWEST} rows have are not listed and count as Other" if rare else "")
    return Guess(column, why)


def free(name: str, taken: set[str]) -> str:
    """A name, with a number after it if it is taken."""
    choices = (name if number == 1 else f"{name} {number}" for number in range(1, len(taken) + 2))
    return next(choice for choice in choices if choice not in taken)


def _grid(name: str, seen: Seen, forms: Forms) -> Guess | None:
    """A grid with round bounds and about two hundred cells at most, or one that follows orders of magnitude."""
    read = seen.as_read(forms.numbers)
    if read is None or _is_small(seen):
        return None
    if read.whole and seen.repetition <= NEARLY and not recognize.is_quantity(name):
        return _dropped("whole numbers that hardly repeat, as numbers of records do")
    if recognize.numbers_records(name) and read.whole and seen.repetition < FEWEST and not recognize.is_quantity(name):
        return _dropped("called like a column that numbers records")
    bounds = round_bounds(read)
    if bounds is None:
        return _dropped(f"numbers of which fewer than {FEWEST} rows lie at either end: bounds must be written by hand")
    form = COMMA if read.form == COMMA else POINT if read.rewritten else None
    return Guess(_numeric(seen, read, bounds, form), _why_numeric(read, bounds, form), _is_worded(seen, read))


def round_bounds(read: Reading) -> tuple[Decimal, Decimal] | None:
    """Bounds that are multiples of a round unit, a tenth of their distance or more, and the value of few rows never."""
    if read.low.bound is None or read.high.bound is None or read.low.bound >= read.high.bound:
        return None
    largest = Decimal(LARGEST - 1)
    least, most = (min(max(Decimal(str(one)), -largest), largest) for one in (read.low.bound, read.high.bound))
    if least >= most:
        return None
    finest = Decimal(1) if read.whole else max(FINEST, FINEST * abs(least), FINEST * abs(most))
    unit = max(_unit(most - least, 10), Decimal(1).scaleb(finest.adjusted()))
    lower = (least / unit).to_integral_value(ROUND_FLOOR) * unit
    upper = (most / unit).to_integral_value(ROUND_CEILING) * unit
    while lower != 0 and read.low.is_rare(float(lower)):
        lower -= unit
    while upper != 0 and read.high.is_rare(float(upper)):
        upper += unit
    return max(lower, -largest), min(upper, largest)


def _unit(span: Decimal, parts: int) -> Decimal:
    """The smallest of 1, 2 and 5 times powers of ten that fits into a span so many times at most."""
    power = Decimal(1).scaleb((span / parts).adjusted())
    return next(power * times for times in (1, 2, 5, 10) if span / (power * times) <= parts)


def _follows_magnitudes(read: Reading, bounds: tuple[Decimal, Decimal]) -> bool:
    lower, upper = bounds
    size = max(abs(lower), abs(upper))
    whole = lower == int(lower) and upper == int(upper)
    return whole and size >= LARGE and abs(Decimal(str(read.median))) * SKEWED <= upper - lower


def _numeric(seen: Seen, read: Reading, bounds: tuple[Decimal, Decimal], form: str | None) -> Numeric:
    lower, upper = bounds
    missing = _missing_word(seen, read)
    if _follows_magnitudes(read, bounds):
        return Numeric(lower=lower, upper=upper, grid="log", written=form, missing=missing)
    span = upper - lower
    step = Decimal(1) if read.whole and span <= DRAFTED_CELLS else _unit(span, DRAFTED_CELLS)
    if read.whole:
        step = max(step, Decimal(1))
    points = _points(seen, read, bounds) if step > 1 and lower == int(lower) and step == int(step) else []
    return Numeric(lower=lower, upper=upper, step=step, points=points, written=form, missing=missing)


def _points(seen: Seen, read: Reading, bounds: tuple[Decimal, Decimal]) -> list[datetime.date | Decimal]:
    """The number 0, or the number of most rows, if it stands out."""
    if read.whole and read.zeros >= FEWEST and OFTEN * read.zeros >= read.given and bounds[0] <= 0 <= bounds[1]:
        return [Decimal(0)]
    text, times = seen.counts.most_common(1)[0]
    if read.form == PLAIN_NUMBER and not read.rewritten and read.whole and 2 * times > read.given and times >= FEWEST:
        main = Decimal(text)
        return [main] if bounds[0] <= main <= bounds[1] else []
    return []


def _why_numeric(read: Reading, bounds: tuple[Decimal, Decimal], form: str | None) -> str:
    what = "whole numbers" if read.whole else "numbers"
    if form is not None:
        what += f", written like {form}"
    if _follows_magnitudes(read, bounds):
        what += ", most of them small: cells follow orders of magnitude"
    return f"{what}; {_BEYOND}"
