"""Changes of a schema as people make them: fields of a form become facts, and an outline becomes a taxonomy.

A changed schema must be confirmed again. Facts that a form does not show, such as points of a grid, stay.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from sfumato import Categorical, Numeric, Schema, Taxonomy
from sfumato.errors import SchemaError

KINDS = ("categorical", "numeric", "class", "identifier")
"""The kinds of columns; an identifier is left out."""
OTHER = "Other"
"""The leaf of values that are not named, where a column becomes categorical and no value is known."""
INDENT = "  "

Form = Mapping[str, str]
Nested = list[Any]


def shown(schema: Schema, reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """The columns of a schema as rows of a form."""
    plain = schema.plain()["attributes"]
    rows = []
    for number, (name, column) in enumerate(schema.attributes.items()):
        facts = plain[name]
        rows.append(
            {
                "number": number,
                "name": name,
                "kind": column.kind,
                "why": reasons.get(name, ""),
                "lower": facts.get("lower", ""),
                "upper": facts.get("upper", ""),
                "step": facts.get("step", 1) if isinstance(column, Numeric) else "",
                "grid": _grid(column) if isinstance(column, Numeric) else "",
                "missing": facts.get("missing", ""),
                "unseen": facts.get("unseen", ""),
                "leaves": getattr(column, "leaves", 0),
                "values": _values(column) if isinstance(column, Categorical) else "",
            }
        )
    return rows


def _grid(column: Numeric) -> str:
    return "borders" if column.borders else column.grid


def _values(column: Categorical) -> str:
    """The first values of a taxonomy, in a line."""
    first = [node.label for node in column.tree.root.children[:6]]
    return ", ".join(first) + (", …" if len(column.tree.root.children) > len(first) else "")


def overlaid(rows: list[dict[str, Any]], form: Form) -> list[dict[str, Any]]:
    """The same rows with what a form says, for a form that was refused."""
    return [row | {key: form.get(f"{key}-{row['number']}", row[key]) for key in row} for row in rows]


def changed(schema: Schema, form: Form, earlier: list[Schema]) -> Schema:
    """The schema as a form has it; a column that is no longer left out is again what it was before."""
    plain = schema.plain() | {"confirmed": False}
    facts = plain["attributes"]
    for number, name in enumerate(schema.attributes):
        if f"kind-{number}" in form:
            said = {key: form.get(f"{key}-{number}", "").strip() for key in ("lower", "upper", "step", "grid")}
            said |= {key: form.get(f"{key}-{number}", "").strip() for key in ("kind", "missing", "unseen")}
            if form.get(f"drop-{number}"):
                said["kind"] = "identifier"
            elif said["kind"] == facts[name]["kind"] == "identifier" and f"was-{number}" in form:
                facts[name] = said = _before(name, earlier)
                continue
            facts[name] = _column(said, facts[name])
    plain = _bulk(plain, schema, form)
    plain["budget"] = form.get("budget", "").strip() or None
    if "missing_values" in form:
        plain["missing_values"] = [one.strip() for one in form["missing_values"].split(",")]
    return Schema.parse({key: value for key, value in plain.items() if value is not None})


def _before(name: str, earlier: list[Schema]) -> dict[str, Any]:
    """What a column was before it was left out; a column of unnamed values if that is not known."""
    for one in earlier:
        facts: dict[str, Any] = one.plain()["attributes"].get(name, {"kind": "identifier"})
        if facts["kind"] != "identifier":
            return facts
    return {"kind": "categorical", "taxonomy": [OTHER], "unseen": OTHER}


def _column(said: Mapping[str, str], facts: dict[str, Any]) -> dict[str, Any]:
    kind = said["kind"]
    if kind not in KINDS:
        raise SchemaError(f"kind ({kind[:40]}) must be one of {', '.join(KINDS)}", "Choose one of them.")
    if kind == "identifier":
        return {"kind": kind}
    kept = {key: value for key, value in facts.items() if key not in ("missing", "unseen")}
    if kind == "numeric":
        kept = kept if facts["kind"] == "numeric" else {}
        return _numeric(said, kept)
    kept = kept if facts["kind"] in ("categorical", "class") else {"taxonomy": [OTHER], "unseen": OTHER}
    named = {role: said[role] for role in ("missing", "unseen") if said[role]}
    known = Categorical(**{key: value for key, value in kept.items() if key != "kind"} | {"kind": kind}).tree.leaves
    more = [leaf for leaf in dict.fromkeys(named.values()) if leaf not in known]
    return kept | {"kind": kind, "taxonomy": [*kept.get("taxonomy", []), *more]} | named


def _numeric(said: Mapping[str, str], kept: dict[str, Any]) -> dict[str, Any]:
    grid = said["grid"] or "even"
    found = kept | {"kind": "numeric", "lower": said["lower"], "upper": said["upper"], "grid": grid}
    for bound in ("lower", "upper"):
        if not said[bound]:
            raise SchemaError(f"{bound} must be a number or a day", "Give bounds that are publicly known.")
    if grid == "even":
        found |= {"step": said["step"] or "1", "borders": []}
    else:
        found.pop("step", None)
    if grid == "borders":
        found["grid"] = "even"
    return found | ({"missing": said["missing"]} if said["missing"] else {})


def _bulk(plain: dict[str, Any], schema: Schema, form: Form) -> dict[str, Any]:
    """Do one thing to all columns that were chosen."""
    action, chosen = form.get("bulk", ""), [n for n in range(len(schema.attributes)) if form.get(f"chosen-{n}")]
    names = list(schema.attributes)
    for number in chosen if action else []:
        facts = plain["attributes"][names[number]]
        if action == "drop":
            plain["attributes"][names[number]] = {"kind": "identifier"}
        elif action == "missing" and facts["kind"] != "identifier":
            said = {"missing": "Missing", "unseen": facts.get("unseen", "")}
            shown_as = {key: str(facts.get(key, "")) for key in ("kind", "lower", "upper", "step")}
            grid = "borders" if facts.get("borders") else str(facts.get("grid", "even"))
            plain["attributes"][names[number]] = _column(shown_as | {"grid": grid} | said, facts)
        elif action == "no-missing":
            facts.pop("missing", None)
    return plain


def confirmed(schema: Schema) -> Schema:
    """The same schema, vouched for."""
    return Schema.parse(schema.plain() | {"confirmed": True})


def with_person(schema: Schema, column: str, rows: str) -> Schema:
    """Name the column that tells whom a row is about, and how many rows of one person count; or none."""
    plain = {key: value for key, value in schema.plain().items() if key not in ("person", "rows_per_person")}
    if not column:
        return Schema.parse(plain | {"confirmed": False})
    attributes = {**plain["attributes"], column: {"kind": "identifier"}}
    named = {"person": column, "rows_per_person": rows or "1", "attributes": attributes}
    return Schema.parse(plain | {"confirmed": False} | named)


def outline(nested: Nested, depth: int = 0) -> str:
    """Write a taxonomy as indented lines.

    >>> print(outline(["Self", {"Government": ["Federal", "State"]}]))
    Self
    Government
      Federal
      State
    """
    return "\n".join(_lines(nested, depth))


def _lines(nested: Nested, depth: int) -> Iterator[str]:
    for one in nested:
        for name, below in one.items() if isinstance(one, Mapping) else [(one, [])]:
            if name != name.strip() or len(name.splitlines()) != 1:
                raise SchemaError("a name of the taxonomy must be one line of text to be edited", "Edit the file.")
            yield INDENT * depth + name
            yield from _lines(below, depth + 1)


def read_outline(text: str) -> Nested:
    """Read indented lines as a taxonomy: what is further in is below.

    >>> read_outline("Self\\nGovernment\\n  Federal\\n  State\\n")
    ['Self', {'Government': ['Federal', 'State']}]
    """
    root: Nested = []
    levels: list[tuple[int, Nested]] = [(-1, root)]
    for line in text.expandtabs(len(INDENT)).splitlines():
        if not line.strip():
            continue
        deep = len(line) - len(line.lstrip())
        while levels[-1][0] >= deep:
            levels.pop()
        below: Nested = []
        levels[-1][1].append({line.strip(): below})
        levels.append((deep, below))
    return _tidied(root)


def _tidied(nested: Nested) -> Nested:
    return [{name: _tidied(below)} if below else name for one in nested for name, below in one.items()]


def with_taxonomy(schema: Schema, name: str, nested: Nested) -> Schema:
    """Give a column another taxonomy; its leaves for missing and unseen values stay."""
    plain = schema.plain() | {"confirmed": False}
    facts = _categorical(schema, name)
    own = [leaf for leaf in (facts.unseen, facts.missing) if leaf is not None]
    given = set(Taxonomy.of(nested, root=facts.root).leaves) if nested else set()
    more = [leaf for leaf in dict.fromkeys(own) if leaf not in given]
    kept = {key: value for key, value in plain["attributes"][name].items() if key != "codes"}
    plain["attributes"][name] = kept | {"taxonomy": [*nested, *more]}
    return Schema.parse(plain)


def read_hierarchy(content: bytes) -> Nested:
    """Read a hierarchy file, as ARX writes them: leaf; parent; ...; root."""
    try:
        rows = [row for row in csv.reader(io.StringIO(content.decode("utf-8-sig")), delimiter=";") if row]
    except (UnicodeDecodeError, csv.Error):
        raise SchemaError(
            "a hierarchy must be a readable CSV file", "Write one row per leaf: leaf; parent; ...; root."
        ) from None
    return Taxonomy.of_hierarchy(rows).nested


def nested_of(schema: Schema, name: str) -> Nested:
    """The taxonomy of a column."""
    return _categorical(schema, name).tree.nested


def _categorical(schema: Schema, name: str) -> Categorical:
    column = schema.attributes.get(name)
    if not isinstance(column, Categorical):
        raise SchemaError("the column must be a categorical column of the schema", "Choose one of the list.")
    return column
