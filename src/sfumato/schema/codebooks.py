"""Public knowledge of a table: code books, from which a schema's attributes are declared instead of guessed.

What can be read: Frictionless Table Schema (or a data package), CSVW metadata, a folder of ARX hierarchies (a CSV file
for each column, `leaf;...;root`), and plain CSV of codes and labels (`code;label` in a file called like its column, or
`column;code;label` for many). Value labels of SPSS, Stata and SAS files come by `labelled`.

A code book says what may be, not what is, so nothing in it is private. What it leaves open (a number without bounds) is
left to the draft.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.errors import SchemaError
from sfumato.markup import shortened
from sfumato.schema.attributes import Categorical, Identifier, Numeric
from sfumato.schema.formats import COMMA
from sfumato.schema.schema import Column, Schema
from sfumato.schema.taxonomy import Taxonomy

LARGEST_FILE = 64 * 2**20
"""No code book has more bytes."""
LONGEST_TITLE = 200
"""The most letters of what a column means."""
MISSING = "Missing"
"""What the leaf for missing values is called."""
HOW = "Give a Table Schema or CSVW file (.json), codes and labels (.csv), or a folder of ARX hierarchies."
_DATE_PARTS = {"%d": "DD", "%m": "MM", "%Y": "YYYY", "%y": "YY", "%b": "MON", "%B": "MON"}
_ALTERNATIVES = re.compile(r"\^?\(?((?:[\w .,/+-]+\|)+[\w .,/+-]+)\)?\$?")


@dataclass(frozen=True)
class CodeBook:
    """What a code book declares: attributes by column, and the texts that mean "no value"."""

    columns: Mapping[str, Column]
    missing_values: tuple[str, ...] = ()
    title: str = field(default="the code book")
    titles: Mapping[str, str] = field(default_factory=dict)
    """what columns mean, also of those that it does not declare"""


def read_codebook(path: str | Path, columns: Collection[str]) -> CodeBook:
    """Read a code book of a table with these columns."""
    place = Path(path)
    if place.is_dir():
        return _hierarchies(place, columns)
    if place.suffix.lower() == ".json":
        return _described(place)
    if place.suffix.lower() in (".csv", ".tsv", ".txt"):
        return _codes_and_labels(place, columns)
    raise SchemaError(f"code book {path} must be of a kind that can be read", HOW)


def meanings(told: Mapping[str, Any]) -> dict[str, str]:
    """What columns mean, on one line each; those of which nothing but their name is told are left out.

    >>> meanings({"sex": " Sex of\\nthe person", "age": None, "job": "job", "pay": 5})
    {'sex': 'Sex of the person'}
    """
    texts = {name: " ".join(text.split()) for name, text in told.items() if isinstance(text, str)}
    return {name: shortened(text, LONGEST_TITLE) for name, text in texts.items() if text and text != name}


def labelled(labels: Mapping[str, str], *, missing: bool = True) -> Categorical:
    """An attribute whose values have labels, in the order in which they are given.

    >>> labelled({"1": "Female", "2": "Male"}, missing=False).taxonomy
    ['Female', 'Male']
    """
    labels = {value.strip(): label.strip() or value.strip() for value, label in labels.items()}
    taken = {value for value in labels if value in labels.values() and labels[value] != value}
    labels = {value: f"{value}: {label}" if taken else label for value, label in labels.items()}
    leaves = list(dict.fromkeys(labels.values()))
    absent = MISSING if missing else None
    if absent is not None and absent not in leaves:
        leaves.append(absent)
    return Categorical(
        taxonomy=leaves,
        labels={value: label for value, label in labels.items() if value != label},
        missing=absent,
        root=next(root for root in ("Any", "All", "Anything at all") if root not in leaves),
    )


def _text(path: Path) -> str:
    try:
        if path.stat().st_size <= LARGEST_FILE:
            return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        pass
    raise SchemaError(f"code book {path} must be readable UTF-8 text of at most {LARGEST_FILE >> 20} MB", HOW)


def _rows(path: Path) -> list[list[str]]:
    text = _text(path)
    first = text.partition("\n")[0]
    delimiter = max(";,\t", key=first.count)
    try:
        rows = list(csv.reader(text.splitlines(), delimiter=delimiter))
    except csv.Error:
        raise SchemaError(f"code book {path} must be well-formed CSV", HOW) from None
    return [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)]


def _codes_and_labels(path: Path, columns: Collection[str]) -> CodeBook:
    rows = _rows(path)
    width = len(rows[0]) if rows else 0
    if width not in (2, 3) or any(len(row) != width for row in rows):
        raise SchemaError(f"every row of code book {path} must be `code;label` or `column;code;label`", HOW)
    if rows[0][-1].lower() in ("label", "labels", "meaning", "description", "name", "text", "bedeutung", "libellé"):
        rows = rows[1:]
    if width == 2:
        rows = [[_column_of(path, columns), *row] for row in rows]
    found: dict[str, dict[str, str]] = {}
    for column, code, label in rows:
        if column in columns:
            found.setdefault(column, {})[code] = label
    if not found:
        raise SchemaError(f"code book {path} must be about a column of the table", f"It has {_some(columns)}.")
    return CodeBook({column: labelled(labels) for column, labels in found.items()})


def _column_of(path: Path, columns: Collection[str]) -> str:
    """The column that a file is about, by its name: `sex.csv`, `adult_hierarchy_sex.csv`."""
    found = _about(path, columns)
    if found is None:
        raise SchemaError(f"code book {path} must be called like a column of the table", f"It has {_some(columns)}.")
    return found


def _about(path: Path, columns: Collection[str]) -> str | None:
    stem = re.sub(r"[^\w]+", "_", path.stem.lower())
    endings = {re.sub(r"[^\w]+", "_", column.lower()): column for column in columns}
    fitting = [ending for ending in endings if stem == ending or stem.endswith(f"_{ending}")]
    return endings[max(fitting, key=len)] if fitting else None


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:12]) + (", ..." if len(listed) > 12 else "")


def _hierarchies(folder: Path, columns: Collection[str]) -> CodeBook:
    """All ARX hierarchies of a folder; those of numbers become intervals."""
    files = {column: path for path in sorted(folder.glob("*.csv")) if (column := _about(path, columns)) is not None}
    if not files:
        raise SchemaError(f"folder {folder} must have a hierarchy called like a column of the table", HOW)
    return CodeBook({column: hierarchy_column(_rows(path)) for column, path in files.items()})


def hierarchy_column(rows: Sequence[Sequence[str]]) -> Column:
    """The attribute of a hierarchy: a grid with intervals if it generalizes whole numbers evenly, else a taxonomy.

    >>> hierarchy_column([(str(n), f"[{n // 5 * 5}, {n // 5 * 5 + 5}[", "*") for n in range(10, 30)]).intervals
    [Decimal('5')]
    >>> hierarchy_column([("Dancer", "Artist", "*"), ("Writer", "Artist", "*")]).taxonomy
    [{'Artist': ['Dancer', 'Writer']}]
    """
    intervals = _intervals(rows)
    if intervals is not None:
        return intervals
    tree = Taxonomy.of_hierarchy(rows)
    return Categorical(taxonomy=tree.nested, root=tree.root.label)


def _intervals(rows: Sequence[Sequence[str]]) -> Numeric | None:
    """A grid from the first to the last number, if levels are intervals with borders at multiples of their width."""
    if len(rows) < 3 or not all(re.fullmatch("-?[0-9]{1,15}", row[0]) for row in rows):
        return None
    leaves = [int(row[0]) for row in rows]
    if sorted(leaves) != list(range(min(leaves), max(leaves) + 1)):
        return None
    widths: list[int] = []
    for level in range(1, min(len(row) for row in rows) - 1):
        groups: dict[str, list[int]] = {}
        for row, leaf in zip(rows, leaves, strict=True):
            groups.setdefault(row[level], []).append(leaf)
        width = max(len(group) for group in groups.values())
        if len({leaf // width for leaf in leaves}) != len(groups) or any(
            len({leaf // width for leaf in group}) > 1 for group in groups.values()
        ):
            return None
        if width > 1 and (not widths or width > widths[-1]):
            if widths and width % widths[-1]:
                return None
            widths.append(width)
    return Numeric(lower=Decimal(min(leaves)), upper=Decimal(max(leaves)), intervals=list(map(Decimal, widths)))


def _described(path: Path) -> CodeBook:
    """Read a JSON description: CSVW by its table schema, or Frictionless by its fields."""
    text = _text(path)
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError(f"code book {path} must be well-formed JSON", HOW) from None
    if isinstance(plain, dict):
        resources = plain.get("resources") or plain.get("tables")
        if isinstance(resources, list) and resources and isinstance(resources[0], dict):
            plain = {**plain, **resources[0]}
        for key, read, listed in (("tableSchema", _of_csvw, "columns"), ("schema", _of_fields, "fields")):
            inner = plain.get(key)
            if isinstance(inner, dict) and isinstance(inner.get(listed), list):
                return _checked(path, read, inner, plain)
        if isinstance(plain.get("fields"), list):
            return _checked(path, _of_fields, plain, plain)
    raise SchemaError(f"code book {path} must be a Table Schema, a data package or CSVW metadata", HOW)


def _checked(path: Path, read: Any, inner: dict[str, Any], outer: dict[str, Any]) -> CodeBook:
    try:
        found: CodeBook = read(inner, outer)
    except SchemaError:
        raise
    except (AttributeError, TypeError, ValueError, KeyError, ArithmeticError):
        raise SchemaError(f"code book {path} must describe its columns as its format says", HOW) from None
    return found


def _of_fields(inner: dict[str, Any], _outer: dict[str, Any]) -> CodeBook:
    """Frictionless Table Schema."""
    keys = inner.get("primaryKey") or []
    found: dict[str, Column] = {}
    for one in inner["fields"]:
        column = _field(one, one["name"] in ([keys] if isinstance(keys, str) else keys))
        if column is not None:
            found[str(one["name"])] = column
    titles = {str(one["name"]): one.get("title") or one.get("description") for one in inner["fields"]}
    return CodeBook(found, tuple(map(str, inner.get("missingValues", ()))), titles=meanings(titles))


def _field(one: dict[str, Any], key: bool) -> Column | None:
    limits = one.get("constraints") or {}
    missing = not limits.get("required", False)
    if key or limits.get("unique"):
        return Identifier()
    if one.get("categories"):
        given = [each if isinstance(each, dict) else {"value": each} for each in one["categories"]]
        return labelled({str(each["value"]): str(each.get("label", each["value"])) for each in given}, missing=missing)
    if limits.get("enum"):
        return labelled({str(each): str(each) for each in limits["enum"]}, missing=missing)
    kind = one.get("type", "string")
    if kind == "boolean":
        no, yes = one.get("falseValues", ["false"])[0], one.get("trueValues", ["true"])[0]
        return labelled({str(each): str(each) for each in (no, yes)}, missing=missing)
    form = COMMA if one.get("decimalChar") == "," else _form_of_days(str(one.get("format", "default")))
    return _between(kind, limits.get("minimum"), limits.get("maximum"), form, missing)


def _of_csvw(inner: dict[str, Any], outer: dict[str, Any]) -> CodeBook:
    """CSV on the Web."""
    keys = inner.get("primaryKey") or []
    found: dict[str, Column] = {}
    told: dict[str, Any] = {}
    for one in inner["columns"]:
        titles = one.get("titles", one.get("name"))
        name = titles[0] if isinstance(titles, list) else titles
        name = next(iter(name.values())) if isinstance(name, dict) else name
        datatype = one.get("datatype", "string")
        facts = {"base": datatype} if isinstance(datatype, str) else datatype
        key = one.get("name") in ([keys] if isinstance(keys, str) else keys)
        column = Identifier() if key else _of_datatype(facts, missing=not one.get("required", False))
        if name is not None:
            called = name[0] if isinstance(name, list) else str(name)
            told[called] = one.get("dc:description", one.get("dc:title"))
            found |= {called: column} if column is not None else {}
    null = inner.get("null", outer.get("null", ()))
    return CodeBook(found, (null,) if isinstance(null, str) else tuple(map(str, null)), titles=meanings(told))


def _of_datatype(facts: dict[str, Any], *, missing: bool) -> Column | None:
    base, form = facts.get("base", "string"), facts.get("format")
    if base in ("string", "boolean") and isinstance(form, str) and (found := _ALTERNATIVES.fullmatch(form)):
        names = found[1].split("|")
        return labelled({each: each for each in (reversed(names) if base == "boolean" else names)}, missing=missing)
    if base == "boolean":
        return labelled({each: each for each in ("false", "true")}, missing=missing)
    comma = isinstance(form, dict) and form.get("decimalChar") == ","
    written = COMMA if comma else _form_of_days(form) if isinstance(form, str) else None
    least, most = (facts.get(f"{end[:3]}Inclusive", facts.get(end)) for end in ("minimum", "maximum"))
    return _between(str(base), least, most, written, missing)


def _form_of_days(written: str) -> str | None:
    """The form of days that strftime or Unicode letters write: %d.%m.%Y or dd.MM.yyyy."""
    for part, name in _DATE_PARTS.items():
        written = written.replace(part, name)
    written = re.sub("dd?", "DD", re.sub("yyyy", "YYYY", re.sub("MMM+", "MON", written)))
    written = re.sub("(?<!M)M(?!M|ON)", "MM", written)
    return written if re.fullmatch("(DD|MM|MON|YYYY|YY|[-./, ])+", written) and written != "YYYY-MM-DD" else None


_WHOLE = {"integer", "int", "long", "short", "year", "nonNegativeInteger", "positiveInteger", "unsignedInt"}
_REAL = {"number", "decimal", "double", "float"}
_DAYS = {"date", "datetime", "dateTime"}


def _between(kind: str, least: Any, most: Any, form: str | None, missing: bool) -> Column | None:
    """A grid between declared bounds; None if one of them is not declared."""
    if least is None or most is None or kind not in _WHOLE | _REAL | _DAYS:
        return None
    facts: dict[str, Any] = {"kind": "numeric", "lower": least, "upper": most, "written": form}
    if kind in _DAYS:
        facts |= {"lower": str(least)[:10], "upper": str(most)[:10]}
    elif kind in _REAL or Decimal(str(most)) - Decimal(str(least)) > 200:
        span = Decimal(str(most)) - Decimal(str(least))
        facts["step"] = str(max(Decimal(1).scaleb((span / 100).adjusted()), Decimal(kind in _WHOLE)))
    if missing:
        facts["missing"] = MISSING
    return Schema.parse({"attributes": {"x": facts}}).attributes["x"]
