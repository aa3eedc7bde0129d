"""Classification with DiffGen and CDiffGen on the same trees: whether counts on the way keep accuracy from falling.

By an entropy tree trained on the groups, and by the regions themselves; as published, `sfumato reproduce cdiffgen`.
"""

from __future__ import annotations

import argparse
from functools import partial

from sfumato import CDiffGen, DiffGen
from sfumato.evaluate.learning import accuracy, accuracy_of_regions
from specializing import Setting, classification

MOST_CELLS = 2_000_000
"""The same for both methods, so that a seed leads to the same cuts."""

OURS: dict[str, Setting] = {
    f"{method.__name__}, {score}": (partial(method, score=score, max_cells=MOST_CELLS), accuracy)
    for score in ("max", "gain")
    for method in (DiffGen, CDiffGen)
}

REGIONS: dict[str, Setting] = {
    f"{method.__name__}, {score}, regions": (make, accuracy_of_regions)
    for score in ("max", "gain")
    for method in (DiffGen, CDiffGen)
    for make, _ in [OURS[f"{method.__name__}, {score}"]]
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    classification(OURS | REGIONS, parser.parse_args().runs, ("0.1", "1"))
