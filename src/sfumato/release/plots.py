"""A release in a notebook: what it shows of itself, and pictures of what it says."""

from __future__ import annotations

from sfumato.errors import QueryError
from sfumato.markup import joined, paragraph, table, tag
from sfumato.models.model import LEVEL
from sfumato.pictures.plots import Parts, Picture, draw_cells, draw_parts
from sfumato.release.bins import Bins, bins_of
from sfumato.release.release import Release
from sfumato.schema.attributes import Categorical, Numeric
from sfumato.schema.schema import variables_of

MOST_TOGETHER = 12
"""The most parts of each of two attributes."""


def plot(release: Release, attribute: str, other: str | None, where: str, parts: int) -> Picture:
    """Draw one attribute, or two, of all people or of some."""
    if parts < 1:
        raise QueryError(f"parts ({parts}) must be at least 1", "Twenty are usual.")
    one = _bins(release, attribute, parts)
    among = f" where {where}" if where else ""
    if other is None:
        answers = release.count_many([_both(label, where) for label in _said(one)])
        lows, highs = answers.between(LEVEL)
        return draw_parts(Parts(f"{attribute}{among}", one.labels, answers.values, lows, highs, one.numeric))
    two = _bins(release, other, min(parts, MOST_TOGETHER))
    one = _bins(release, attribute, min(parts, MOST_TOGETHER))
    rows, columns = _said(one), _said(two)
    answers = release.count_many([_both(f"{row} and {column}", where) for row in rows for column in columns])
    values = answers.values.reshape(len(one), len(two))
    return draw_cells(f"{attribute} and {other}{among}", (attribute, other), (one.labels, two.labels), values)


def _bins(release: Release, name: str, parts: int) -> Bins:
    columns = variables_of(release.schema)
    if name not in columns:
        raise QueryError(
            f"attribute ({str(name)[:40]}) must be one of this release", f"It has {', '.join(list(columns)[:20])}."
        )
    return bins_of(name, columns[name], parts)


def _said(bins: Bins) -> list[str]:
    """Write every part of an attribute as a condition."""
    name = '"' + bins.name + '"'
    column, said = bins.column, []
    for lo, hi in zip(bins.borders[:-1].tolist(), bins.borders[1:].tolist(), strict=True):
        if bins.numeric:
            said.append(_interval(name, column, lo, hi))
        else:
            leaves = [column.label(leaf, leaf + 1).replace("'", "''") for leaf in range(lo, hi)]
            said.append(f"{name} in ({', '.join(map(_quoted, leaves))})")
    return said


def _quoted(text: str) -> str:
    return f"'{text}'"


def _interval(name: str, column: Categorical | Numeric, lo: int, hi: int) -> str:
    assert isinstance(column, Numeric)
    if lo >= column.cells:
        return f"{name} is missing"
    above = f"{name} >= {column.edge(lo)}"
    return above if hi >= column.cells else f"{above} and {name} < {column.edge(hi)}"


def _both(part: str, where: str) -> str:
    return f"({part}) and ({where})" if where.strip() else part


def release_html(release: Release) -> str:
    """Show a release: its promise, its people and its attributes."""
    manifest = release.manifest
    rows = [
        (name, column.title, column.kind, f"{column.leaves:,}") for name, column in variables_of(release.schema).items()
    ]
    about = f"about {max(release.total, 0):,} people, {release.extent}, by {manifest.method}"
    return joined(
        [
            paragraph(tag("strong", manifest.about.get("title") or release.schema.name), f": {about}"),
            paragraph(manifest.guarantee),
            table(("attribute", "what it means", "kind", "values"), rows, (3,)),
        ]
    )
