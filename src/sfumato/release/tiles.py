"""A tree cut into tiles: small trees whose ends are regions or the tops of further tiles.

Who walks a tree with many questions at once takes it tile by tile: large enough that each step does some work, small
enough that what it works on stays near the processor, and a question that is settled at the top of a tile need not
enter it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.consistency import Level, levels_of
from sfumato.partition import Indices
from sfumato.release.regions import Sides
from sfumato.tree import NONE, ROOT, Tree


@dataclass(frozen=True, eq=False)
class Side:
    """The ranges of one attribute that the ends of a tile have, and which of them each has."""

    ranges: Indices
    """their numbers among those of all nodes"""
    number: Indices


@dataclass(frozen=True, eq=False)
class Tile:
    """A top and what is below it down to the ends, numbered level by level from 0."""

    nodes: Indices
    """their numbers in the tree"""
    levels: tuple[Level, ...]
    ends: Indices
    """places among the nodes"""
    sides: Mapping[int, Side]
    """what the ends have of each attribute along which something is split here or further down"""
    further: Mapping[int, Tile]
    """the tiles that begin at some of the ends"""


def tiles_of(tree: Tree, sides: Mapping[int, Sides], size: int) -> Tile | None:
    """Cut a tree where subtrees come to have at most 1, s, s^2, ... leaves, s being the size; give the tile at the top.

    Tiles are made from the bottom up, so that those further down are there when one needs them. A tree without a split
    has none.
    """
    levels = levels_of(tree.parents.astype(np.int64))
    tops = _tops(tree, levels, size)
    places, made = np.zeros(len(tree), np.int64), dict[int, Tile]()
    homes = tops[tree.parents[1:]]
    order = 1 + np.lexsort((tree.parents[1:], tree.depths[1:], -homes))
    groups = np.split(order, np.flatnonzero(np.diff(homes[order - 1])) + 1) if len(order) else []
    for members in groups:
        places[members] = np.arange(1, len(members) + 1)
    for members in groups:
        parents = tree.parents[members]
        top = int(tops[parents[0]])
        made[top] = _tile(tree, sides, top, members, np.where(parents == top, 0, places[parents]), made)
    return made.get(ROOT)


def _tops(tree: Tree, levels: tuple[Level, ...], size: int) -> Indices:
    """Give the top of the tile in which each node is split: the last on its path with fewer powers than its parent."""
    below = (tree.split_by == NONE).astype(np.float64)
    for level in reversed(levels):
        below[level.heads] = level.sums(below[level.nodes])
    powers = np.ceil(np.round(np.log(below) / np.log(size), 9))
    tops = np.arange(len(tree))
    for level in levels:
        parents = tree.parents[level.nodes]
        within = powers[level.nodes] == powers[parents]
        tops[level.nodes[within]] = tops[parents[within]]
    return tops


def _tile(
    tree: Tree, sides: Mapping[int, Sides], top: int, members: Indices, parents: Indices, made: Mapping[int, Tile]
) -> Tile:
    """Put a tile together; parents are places within it."""
    nodes, above = np.append(top, members), np.append(-1, parents)
    depths = tree.depths[members]
    steps = np.searchsorted(depths, np.arange(depths[0] + 1, depths[-1] + 1))
    levels = tuple(Level.of(places, above) for places in np.split(np.arange(1, len(nodes)), steps))
    inner = np.zeros(len(nodes), np.bool_)
    inner[parents] = True
    ends = np.flatnonzero(~inner)
    further = {end: made[node] for end, node in enumerate(nodes[ends].tolist()) if node in made}
    attributes = {*tree.attributes[members].tolist(), *(at for tile in further.values() for at in tile.sides)}
    held = {at: np.unique(sides[at].number(nodes[ends]), return_inverse=True) for at in sorted(attributes)}
    return Tile(nodes, levels, ends, {at: Side(*one) for at, one in held.items()}, further)
