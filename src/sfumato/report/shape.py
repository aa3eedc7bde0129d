"""What the structure of a release is, as its model describes it: a tree of cuts, attributes cut into parts, tables.

However large the structure is, what is shown is bounded.
"""

from __future__ import annotations

from sfumato import Branch, Description, Listing, Release, Ribbon, percent
from sfumato.pictures.inline import Node, draw_ribbons, draw_tree
from sfumato.pictures.inline import Ribbon as Drawn
from sfumato.report.html import Html, details, figure, paragraph, section, shortened, table
from sfumato.report.promise import NARROW, WIDE

MOST_RIBBONS = 30
THINNEST_PART = 0.012
"""Every part is wide enough to be seen."""


def shape_section(release: Release) -> Html:
    """Show the structure."""
    about = release.describe()
    pictures = [*_tree(about), *_ribbons(about)]
    shown = [paragraph(about.words)]
    first, others = about.listings[:1], about.listings[1:]
    if pictures:
        below = [_listing(one) for one in first]
        shown.append(figure(*pictures, caption=about.caption, below=below[0] if below else ""))
    shown += [_listing(one) for one in (others if pictures else about.listings)]
    return section("shape", about.title, *shown)


def _listing(one: Listing) -> Html:
    rows = [[shortened(text, 100) for text in row] for row in one.rows]
    return details(one.title, table(one.header, rows, one.numbers))


def _tree(about: Description) -> list[Html]:
    if not about.branches:
        return []
    everyone = max(about.branches[0].people, 1.0)
    nodes = [_node(one, everyone) for one in about.branches]
    label = f"Tree of cuts: the first level is cut by {nodes[0].split or 'nothing'}"
    return [Html(draw_tree(nodes, width, label, class_)) for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))]


def _node(one: Branch, everyone: float) -> Node:
    told = percent(max(one.people, 0.0) / everyone) if one.level else ""
    return Node(one.level, one.begin, one.end, shortened(one.name, 40), told, shortened(one.split_by, 40))


def _ribbons(about: Description) -> list[Html]:
    if not about.ribbons:
        return []
    drawn = [_drawn(one, about.textures) for one in about.ribbons[:MOST_RIBBONS]]
    label = f"{about.title}: " + "; ".join(f"{one.attribute} {one.number:,}" for one in about.ribbons)
    return [
        Html(draw_ribbons(drawn, width, label, class_, texture=about.textures))
        for width, class_ in ((NARROW, "narrow"), (WIDE, "wide"))
    ]


def _drawn(one: Ribbon, textures: bool) -> Drawn:
    name = shortened(one.attribute, 40)
    if not one.parts:
        return Drawn(name, (1.0,), (f"{one.number:,} parts",))
    labels = tuple(f"{shortened(part, 60)} {percent(share)}" for part, share in one.parts)
    if textures:
        return Drawn(name, tuple(share for _, share in one.parts), labels)
    widths = [max(share, THINNEST_PART) for _, share in one.parts]
    return Drawn(f"{name} · {one.number}", tuple(width / sum(widths) for width in widths), labels)
