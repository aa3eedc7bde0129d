"""Which estimates a release has: the one place that chooses among them by the regions and by what was bought.

It stands apart because it alone knows all kinds. What does not fit the regions is refused rather than left out: counts
that were paid for and are not used would make answers worse without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sfumato.boxes import Boxes, Regions
from sfumato.consistency import Consistency
from sfumato.partition import Grid
from sfumato.privacy.noisy import NodeCounts, Noisy
from sfumato.release.box_answers import BoxEstimates
from sfumato.release.coclusters import CoclusterEstimates
from sfumato.release.estimates import Estimates, ExactEstimates, GridEstimates, TreeEstimates, reconciled
from sfumato.tree import Tree


def estimates_of(
    partition: Regions,
    counts: Noisy,
    *,
    earlier: Sequence[NodeCounts] = (),
    consistency: Consistency = "least squares",
    histogram: Noisy | None = None,
    sampling: Fraction = Fraction(1),
) -> Estimates:
    """Combine the counts of the regions with whatever else was bought, or refuse what does not fit them."""
    if earlier and not isinstance(partition, Tree):
        raise ValueError("earlier counts must be those of a tree's nodes")
    if histogram is not None and not isinstance(partition, Grid):
        raise ValueError("a histogram must be that of a grid's cells")
    if counts.is_exact != isinstance(partition, Boxes) and not isinstance(partition, Tree):
        raise ValueError("exact counts must be those of a tree or of boxes, and noisy ones of a tree or a grid")
    if counts.is_exact and earlier:
        raise ValueError("exact counts must stand alone, because nothing can be added to them")
    if isinstance(partition, Boxes):
        return BoxEstimates(partition, counts.counts, sampling)
    if isinstance(partition, Grid):
        return CoclusterEstimates(partition, counts, histogram) if histogram else GridEstimates(partition, counts)
    if counts.is_exact:
        return ExactEstimates.of_leaves(partition, counts)
    return TreeEstimates(partition, reconciled(partition, counts, earlier, consistency))
