"""Classification accuracy over h, for methods that specialize one value at a time.

2/3 train, 1/3 test, with fixed seeds; each run's split is shared by all settings, so differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from protocol import mean_of, splits
from sfumato import Release, datasets
from sfumato.account import seeded_release
from sfumato.arrays import CodedRows
from sfumato.methods import Method

EPSILONS = ("0.1", "0.25", "0.5", "1")
STEPS = (4, 7, 10, 13, 16)

Setting = tuple[Callable[..., Method], Callable[[Release, CodedRows], float]]
"""What makes a method, given h, and what accuracy its release has on test rows."""
Settings = Mapping[str, Setting]
Task = tuple[Callable[..., Method], Callable[[Release, CodedRows], float], str, int]


def accuracies(task: Task) -> list[list[float]]:
    """Give the accuracy in per cent for each h and each run."""
    make, measure, epsilon, runs = task
    found: list[list[float]] = [[] for _ in STEPS]
    for run in range(runs):
        train, test = splits(run)
        schema = datasets.adult().schema
        for column, h in zip(found, STEPS, strict=True):
            release = seeded_release(train, schema, make(specializations=h), epsilon, 10_000 + run)
            column.append(100 * measure(release, test))
    return found


def classification(settings: Settings, runs: int, epsilons: Sequence[str] = EPSILONS) -> None:
    """Print accuracy by setting, epsilon and h."""
    print(f"Classification accuracy on Adult in %, {runs} runs (standard error)")
    print(f"{'':24} {'epsilon':>7} " + " ".join(f"{'h=' + str(h):>13}" for h in STEPS) + "   best")
    named = [(name, epsilon) for name in settings for epsilon in epsilons]
    tasks = [(*settings[name], epsilon, runs) for name, epsilon in named]
    with ProcessPoolExecutor() as pool:
        for (name, epsilon), found in zip(named, pool.map(accuracies, tasks), strict=True):
            best = max(float(np.mean(column)) for column in found)
            print(
                f"{name:24} {epsilon:>7} " + " ".join(f"{mean_of(column):>13}" for column in found),
                f"{best:6.2f}",
                flush=True,
            )
