"""Random trees with measured nodes, and what a dense solver makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from sfumato.models.consistency import Consistent

thorough = settings(derandomize=True, deadline=None, max_examples=150, database=None)


@dataclass(frozen=True)
class Case:
    """A measured tree, with its dense solution for comparison."""

    parents: np.ndarray
    measured: np.ndarray
    precision: np.ndarray
    weights: np.ndarray

    @property
    def consistent(self) -> Consistent:
        """What is under test."""
        return Consistent.of(self.parents, self.measured, self.precision)

    @property
    def published(self) -> Consistent:
        """The same with the paper's weights."""
        return Consistent.as_published(self.parents, self.measured, self.precision)

    @property
    def published_matrix(self) -> np.ndarray:
        """N x N: Algorithm 2, node by node; row v is what each measurement counts for in the final value of v."""
        size = len(self.parents)
        children = [np.flatnonzero(self.parents == node).tolist() for node in range(size)]
        leaves, nodes = np.ones(size), (self.precision > 0).astype(float)
        upward, final = np.eye(size), np.zeros((size, size))
        for node in reversed(range(size)):
            if children[node]:
                leaves[node] = leaves[children[node]].sum()
                nodes[node] += nodes[children[node]].sum()
                own = leaves[node] / nodes[node] if self.precision[node] else 0.0
                upward[node] = own * np.eye(size)[node] + (1 - own) * upward[children[node]].sum(axis=0)
        final[0] = upward[0]
        for node in range(1, size):
            siblings = children[self.parents[node]]
            missing = final[self.parents[node]] - upward[siblings].sum(axis=0)
            final[node] = upward[node] + missing / len(siblings)
        return final

    @property
    def incidence(self) -> np.ndarray:
        """N x L: whether a node holds a leaf."""
        nodes = np.eye(len(self.parents))
        for node in range(len(self.parents) - 1, 0, -1):
            nodes[self.parents[node]] += nodes[node]
        return nodes[:, np.bincount(self.parents[1:], minlength=len(self.parents)) == 0]

    @property
    def values(self) -> np.ndarray:
        """Least squares over the leaves, each row scaled by the root of its precision."""
        scale = np.sqrt(self.precision)[:, None]
        measured = np.where(scale > 0, self.measured, 0.0)
        return self.incidence @ np.linalg.lstsq(scale * self.incidence, scale * measured, rcond=None)[0]

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of all nodes' values: the inverse of the normal equations, summed over leaves."""
        leaves = self.incidence
        return leaves @ np.linalg.inv(leaves.T @ (self.precision[:, None] * leaves)) @ leaves.T


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a tree of up to 25 nodes and any fan-out, some inner nodes of which were not measured."""
    size, classes = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    reach = draw(st.sampled_from([1, 2, 4, 25]))
    parents = [-1, *(draw(st.integers(max(0, node - reach), node - 1)) for node in range(1, size))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inner = np.isin(np.arange(size), parents)
    ignored = inner & (rng.random(size) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    measured = rng.normal(draw(st.sampled_from([-5, 0, 3, 50])), draw(st.sampled_from([1, 20])), (size, classes))
    measured[ignored] = np.nan
    precision = np.where(ignored, 0.0, 10.0 ** rng.uniform(-2, 2, size))
    return Case(np.array(parents), measured, precision, rng.normal(size=(3, size)))


def sums_of_children(parents: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Give every inner node the sum of its children, and every leaf its own value."""
    sums = np.zeros_like(values)
    np.add.at(sums, parents[1:], values[1:])
    leaves = ~np.isin(np.arange(len(parents)), parents)
    return np.where(leaves[:, None], values, sums)
