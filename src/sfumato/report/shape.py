"""What the regions of a release are: the tree of cuts, the grid of parts, or boxes that overlap.

However many regions there are, what is shown is bounded: the levels next to the top, parts of attributes, and sums by
depth.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import NONE, Floats, Integers
from sfumato.geometry.boxes import Boxes
from sfumato.geometry.grid import Grid
from sfumato.geometry.tree import ROOT, Tree
from sfumato.models.estimates import TreeEstimates
from sfumato.pictures.inline import Node, Ribbon, draw_ribbons, draw_tree
from sfumato.release.release import Release
from sfumato.report.html import Html, details, figure, joined, paragraph, section, shortened, table
from sfumato.report.promise import NARROW, WIDE

MOST_LEVELS = 7
THINNEST = 1 / 150
"""Nodes that are narrower than this part of the picture are not drawn, nor is what lies below them."""
MOST_PARTS = 30
"""Of an attribute with more parts, only their number is told."""
MOST_OUTLINED = 60
MOST_RIBBONS = 30


def shape_section(release: Release) -> Html:
    """Show the regions."""
    partition = release.partition
    if isinstance(partition, Boxes):
        return section("shape", "The groups", *_boxes(release, partition))
    if isinstance(partition, Grid):
        return section("shape", "The grid", *_grid(release, partition))
    return section("shape", "The tree of cuts", *_tree(release, partition))


def _names(release: Release) -> list[str]:
    return [shortened(name, 40) for name in release.schema.predictors]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0095 else f"{100 * share:.1f} %" if share >= 0.0005 else "0 %"


# Trees.


class Families:
    """Who the children of a node are."""

    def __init__(self, tree: Tree) -> None:
        """Put all nodes below the root in the order of their parents."""
        self._nodes = np.argsort(tree.parents[1:], kind="stable") + 1
        self._parents = tree.parents[self._nodes]

    def of(self, node: int) -> Integers:
        """Give a node's children, in their order."""
        first, last = (int(np.searchsorted(self._parents, node, side)) for side in ("left", "right"))
        return np.asarray(self._nodes[first:last])


def _tree(release: Release, tree: Tree) -> list[Html]:
    estimates = release.estimates
    assert isinstance(estimates, TreeEstimates)
    people = estimates.nodes.values.sum(axis=1)
    nodes = tree_nodes(release, tree, people)
    label = (
        f"Tree of cuts: {tree.regions:,} regions, at most {tree.depths.max()} cuts deep; the first level is cut by "
        f"{_split_name(release, tree, ROOT) or 'nothing'}"
    )
    pictures = [Html(draw_tree(nodes, width, label, class_)) for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))]
    return [
        paragraph(
            f"The table was cut {len(tree) - tree.regions:,} times, each region in its own way, into "
            f"{tree.regions:,} regions{_held(release)}. Widths are shares of people; what cannot be seen at this size "
            "is not drawn."
        ),
        figure(
            *pictures,
            caption=f"The first {max(node.level for node in nodes)} levels. Tinted nodes are cut further.",
            below=details("The same in words", _outline(release, tree, people)),
        ),
        details("Regions by depth", _by_depth(tree, people)),
    ]


def _held(release: Release) -> str:
    """Say how many regions hold someone, where that is known."""
    return f", of which {release.groups:,} hold someone" if release.counts.is_exact else ""


def tree_nodes(release: Release, tree: Tree, people: Floats) -> list[Node]:
    """Lay out the nodes that can be seen: children side by side inside their parent, as wide as their share."""
    total = max(float(people[ROOT]), 1.0)
    families = Families(tree)
    shown = [Node(0, 0.0, 1.0, "everyone", "", _split_name(release, tree, ROOT))]
    places = {ROOT: (0.0, 1.0)}
    for level in range(1, MOST_LEVELS):
        wide = [node for node, (begin, end) in places.items() if end - begin >= THINNEST]
        parents, places = places, {}
        for node in wide:
            children = families.of(node)
            shares = np.maximum(people[children], 0.0)
            shares = shares / shares.sum() if shares.sum() > 0 else np.full(len(children), 1 / max(len(children), 1))
            begin, end = parents[node]
            borders = begin + (end - begin) * np.concatenate([[0.0], np.cumsum(shares)])
            for child, left, right in zip(children.tolist(), borders[:-1].tolist(), borders[1:].tolist(), strict=True):
                if right - left >= THINNEST / 2:
                    places[child] = (left, right)
                    share = _percent(max(float(people[child]), 0.0) / total)
                    shown.append(
                        Node(
                            level,
                            left,
                            right,
                            range_name(release, tree, child),
                            share,
                            _split_name(release, tree, child),
                        )
                    )
        if not places:
            break
    return shown


def range_name(release: Release, tree: Tree, node: int) -> str:
    """Name the range that a node got of the attribute along which it was cut out."""
    column = list(release.schema.predictors.values())[tree.attributes[node]]
    return shortened(column.label(int(tree.lows[node]), int(tree.highs[node])), 40)


def _split_name(release: Release, tree: Tree, node: int) -> str:
    along = int(tree.split_by[node])
    return "" if along == NONE else _names(release)[along]


def _outline(release: Release, tree: Tree, people: Floats) -> Html:
    """Tell the top of the tree line by line, depth first."""
    rows: list[tuple[Html, str, str]] = []
    families, waiting = Families(tree), [(ROOT, 0)]
    while waiting and len(rows) < MOST_OUTLINED:
        node, depth = waiting.pop(0)
        name = "everyone" if node == ROOT else range_name(release, tree, node)
        along = "" if node == ROOT else f"{_names(release)[tree.attributes[node]]}: "
        rows.append(
            (joined([Html("&emsp;" * depth), along, name]), _split_name(release, tree, node), f"{people[node]:,.0f}")
        )
        if depth + 1 < 5:
            waiting[:0] = [(child, depth + 1) for child in families.of(node).tolist()]
    return table(("node", "cut further by", "people"), rows, (2,))


def _by_depth(tree: Tree, people: Floats) -> Html:
    depths = tree.depths[tree.leaves]
    regions, held = np.bincount(depths), np.bincount(depths, people[tree.leaves])
    rows = [(f"{depth}", f"{regions[depth]:,}", f"{held[depth]:,.0f}") for depth in np.flatnonzero(regions).tolist()]
    return table(("cuts on the way", "regions", "people"), rows, (0, 1, 2))


# Grids.


def _grid(release: Release, grid: Grid) -> list[Html]:
    names, columns = _names(release), list(release.schema.predictors.values())
    cut = grid.split_attributes
    sizes = " × ".join(f"{grid.parts[at]:,}" for at in cut) or "1"
    sizes += f" = {grid.regions:,}" if len(cut) > 1 else ""
    words = [
        paragraph(
            f"The regions are all combinations of parts of {len(cut)} attribute{'s' if len(cut) != 1 else ''}: "
            f"{sizes}. {_uncut([name for at, name in enumerate(names) if at not in cut])}"
        )
    ]
    ribbons, rows = [], []
    for at in cut[:MOST_RIBBONS]:
        side, parts = release.sides[at], grid.parts[at]
        if parts > MOST_PARTS:
            ribbons.append(Ribbon(names[at], (1.0,), (f"{parts:,} parts",)))
            rows.append((names[at], f"{parts:,} parts", ""))
            continue
        labels = [shortened(side.label(columns[at], lo, hi), 60) for lo, hi in side.ranges.tolist()]
        shares = part_shares(release, grid, at)
        ribbons.append(
            Ribbon(
                f"{names[at]} · {parts}",
                tuple(_drawn(shares)),
                tuple(f"{one} {_percent(share)}" for one, share in zip(labels, shares.tolist(), strict=True)),
            )
        )
        rows += [(names[at], one, _percent(share)) for one, share in zip(labels, shares.tolist(), strict=True)]
    if ribbons:
        label = "Parts of the attributes: " + "; ".join(f"{names[at]} {grid.parts[at]:,}" for at in cut)
        pictures = [
            Html(draw_ribbons(ribbons, width, label, class_)) for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))
        ]
        kind = "Groups of values" if grid.orders else "Parts"
        words.append(
            figure(
                *pictures,
                caption=f"{kind} of each attribute, as wide as their shares of people.",
                below=details("The same in words", table(("attribute", "part", "people"), rows, (2,))),
            )
        )
    return words


def _uncut(names: list[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:20]) + (" and others" if len(names) > 20 else "")
    return f"Not told apart by the regions: {shown}; inside them people are spread over the values of these."


def part_shares(release: Release, grid: Grid, attribute: int) -> Floats:
    """Give the shares of people that the parts of an attribute have in the release's counts."""
    counts = np.moveaxis(release.estimates.values.sum(axis=1).reshape(grid.parts), attribute, 0)
    people = np.maximum(counts.reshape(grid.parts[attribute], -1).sum(axis=1), 0.0)
    return np.asarray(people / people.sum() if people.sum() > 0 else np.full(len(people), 1 / len(people)))


def _drawn(shares: Floats) -> list[float]:
    """Keep every part wide enough to be seen."""
    widths = np.maximum(shares, 0.012)
    return [float(one) for one in widths / widths.sum()]


# Boxes.


def _boxes(release: Release, boxes: Boxes) -> list[Html]:
    """Tell how general the published records are, attribute by attribute."""
    names, people = _names(release), np.maximum(release.counts.counts.sum(axis=1), 0).astype(np.float64)
    widths = boxes.ranges[:, :, 1] - boxes.ranges[:, :, 0]
    total = max(float(people.sum()), 1.0)
    kinds = ("single value", "range or category", "anything")
    ribbons, rows = [], []
    for at, leaves in enumerate(boxes.shape[:MOST_RIBBONS]):
        single = widths[:, at] == 1
        whole = ~single & (widths[:, at] == leaves)
        shares = [float(people[which].sum()) / total for which in (single, ~single & ~whole, whole)]
        labels = tuple(f"{kind} {_percent(share)}" for kind, share in zip(kinds, shares, strict=True))
        ribbons.append(Ribbon(names[at], tuple(shares), labels))
        rows.append((names[at], *map(_percent, shares)))
    words = [
        paragraph(
            f"{release.groups:,} groups of records, each generalized just as far as its records needed. Groups may "
            "overlap: a person may fit several. Below, how generally each attribute was published, in shares of "
            "records."
        )
    ]
    if ribbons:
        label = "How generally each attribute was published, in shares of records"
        pictures = [
            Html(draw_ribbons(ribbons, width, label, class_, texture=True))
            for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))
        ]
        words.append(
            figure(
                *pictures,
                caption="Plain: a single value. Striped: a range or category. Dotted: anything.",
                below=details("The same in numbers", table(("attribute", *kinds), rows, (1, 2, 3))),
            )
        )
    return words
