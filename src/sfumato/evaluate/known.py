"""Measures that people know from elsewhere, of records drawn from a release.

**k-marginal score** (NIST's challenges): 1000 times one minus half the mean city-block distance of marginals of k
attributes; 1000 is the same, 0 disjoint. **pMSE**: how well a logistic regression tells drawn records from rows, as
the mean squared difference of its probabilities from the share of drawn ones, over what is expected of records from the
rows' own distribution (Snoke et al.); 1 is not at all, and another sample of the population has about 2.

**Column shapes** and **pair trends** (after SDMetrics): one minus the Kolmogorov-Smirnov distance of
numbers, or the total variation of categories; of pairs one minus half the difference of correlations, or the total
variation of both together. **Correlation difference**: the mean difference of Cramér's V over pairs.

**Singling out** (after Anonymeter's definition): predicates on a few attributes that fit a drawn record and no other
drawn one are guesses; one succeeds if it fits exactly one row. The risk is what guesses succeed beyond a baseline:
(attack - baseline) / (1 - baseline). Where rows that were not published are given, the baseline is how many of the same
guesses fit exactly one of these, as many as of the others: what follows from the population alone. Where none are
given it is how often guesses succeed that know nothing, and much of the risk may be the population's.

Numbers are put into at most 20 parts of about as many rows before cells are counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato import Identifier, Numeric, Schema
from sfumato.arrays import Booleans, CodedRows, Integers
from sfumato.evaluate.fidelity import chosen_marginals, city_block, joint_counts, total_variation

TOGETHER = 3
"""The k of k-marginals."""
MARGINALS = 100
"""The most marginals that are measured."""
PARTS = 20
"""The most parts of a numeric attribute."""
MOST_TOLD_APART = 20_000
"""The most rows, and drawn records, that a regression tells apart."""
GUESSES, GUESSED = 200, 4
"""How often someone guesses, and on how many attributes at once."""
TRIES = 20
"""How many predicates are tried for each guess."""
NAMES = (
    "k-marginal score",
    "pMSE ratio",
    "column shapes",
    "pair trends",
    "correlation difference",
    "singling-out risk",
)
"""What the measures are called, in order."""


def known_measures(
    schema: Schema, rows: CodedRows, drawn: CodedRows, seed: int, control: CodedRows | None = None
) -> dict[str, float]:
    """Measure drawn records by rows, all measures by name."""
    coarse, other = _coarse(schema, rows, rows), _coarse(schema, drawn, rows)
    shapes = column_shapes(schema, rows, drawn)
    trends, differences = pair_trends(schema, rows, drawn, coarse, other, seed)
    risk = singling_out(schema, rows, drawn, seed, control)
    found = {
        "k-marginal score": k_marginal(coarse, other, seed),
        "pMSE ratio": propensity(coarse, other, seed),
        "column shapes": float(np.mean(list(shapes.values()))),
    }
    if trends:
        found |= {"pair trends": float(np.mean(trends)), "correlation difference": float(np.mean(differences))}
    found["singling-out risk"] = risk.risk
    return found


def _columns(schema: Schema) -> dict[str, bool]:
    """The attributes, and whether they are numbers."""
    return {
        name: isinstance(column, Numeric)
        for name, column in schema.attributes.items()
        if not isinstance(column, Identifier)
    }


def _coarse(schema: Schema, records: CodedRows, rows: CodedRows) -> dict[str, Integers]:
    """Put numbers into parts of about as many rows; categories stay."""
    found = {}
    for name, number in _columns(schema).items():
        codes = np.asarray(records[name], np.int64)
        if number:
            borders = np.unique(np.quantile(np.asarray(rows[name]), np.linspace(0, 1, PARTS + 1)[1:-1], method="lower"))
            codes = np.searchsorted(borders, codes, side="right")
        found[name] = codes
    return found


def k_marginal(rows: CodedRows, drawn: CodedRows, seed: int, together: int = TOGETHER) -> float:
    """The k-marginal score, from 0 to 1000.

    >>> same = {"a": np.array([0, 1]), "b": np.array([1, 1])}
    >>> k_marginal(same, same, 0), k_marginal(same, {"a": np.array([2]), "b": np.array([2])}, 0)
    (1000.0, 0.0)
    """
    marginals = chosen_marginals(list(rows), min(together, len(rows)), MARGINALS, seed)
    far = [city_block(*joint_counts(rows, drawn, names)) for names in marginals]
    return 1000 * (1 - float(np.mean(far)) / 2)


def propensity(rows: CodedRows, drawn: CodedRows, seed: int) -> float:
    """The pMSE of a logistic regression on all values, over what chance alone gives: (k - 1) c (1 - c)² / n."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(seed)
    parts = [_some(records, MOST_TOLD_APART, rng) for records in (rows, drawn)]
    together = np.column_stack([np.concatenate([part[name] for part in parts]) for name in rows])
    is_drawn = np.repeat([0, 1], [len(next(iter(part.values()))) for part in parts])
    values = OneHotEncoder(drop="first").fit_transform(together)
    model = LogisticRegression(C=1e3, max_iter=200, tol=1e-3).fit(values, is_drawn)
    chances, share = model.predict_proba(values)[:, 1], float(is_drawn.mean())
    expected = int(values.shape[1]) * share * (1 - share) ** 2 / len(is_drawn)
    found: float = float(np.mean((chances - share) ** 2)) / max(expected, 1e-300)
    return found


def _some(records: CodedRows, most: int, rng: np.random.Generator) -> dict[str, Integers]:
    number = len(next(iter(records.values())))
    chosen = rng.permutation(number)[:most]
    return {name: np.asarray(codes)[chosen] for name, codes in records.items()}


def column_shapes(schema: Schema, rows: CodedRows, drawn: CodedRows) -> dict[str, float]:
    """How alike the distribution of each attribute is, from 0 to 1."""
    return {
        name: 1
        - (_kolmogorov(rows[name], drawn[name]) if number else total_variation(*joint_counts(rows, drawn, [name])))
        for name, number in _columns(schema).items()
    }


def _kolmogorov(one: Integers, other: Integers) -> float:
    """The largest difference of shares below any value.

    >>> float(_kolmogorov(np.array([0, 1]), np.array([1, 1])))
    0.5
    """
    size = int(max(one.max(initial=0), other.max(initial=0))) + 1
    below = [np.cumsum(np.bincount(codes, minlength=size)) / max(len(codes), 1) for codes in (one, other)]
    return float(np.abs(below[0] - below[1]).max())


def pair_trends(
    schema: Schema, rows: CodedRows, drawn: CodedRows, coarse: CodedRows, other: CodedRows, seed: int
) -> tuple[list[float], list[float]]:
    """How alike pairs of attributes are, from 0 to 1; and how far their Cramér's V differs."""
    numbers = _columns(schema)
    pairs = chosen_marginals(list(numbers), 2, MARGINALS, seed) if len(numbers) > 1 else []
    trends, differences = [], []
    for pair in pairs:
        if all(numbers[name] for name in pair):
            far = abs(_correlation(rows, pair) - _correlation(drawn, pair)) / 2
        else:
            far = total_variation(*joint_counts(coarse, other, list(pair)))
        trends.append(1 - far)
        differences.append(abs(_cramer(coarse, pair) - _cramer(other, pair)))
    return trends, differences


def _correlation(records: CodedRows, pair: Sequence[str]) -> float:
    one, other = (np.asarray(records[name], np.float64) for name in pair)
    spread = one.std() * other.std()
    return float(((one - one.mean()) * (other - other.mean())).mean() / spread) if spread > 0 else 0.0


def _cramer(records: CodedRows, pair: Sequence[str]) -> float:
    """Cramér's V, corrected for chance."""
    one, other = (np.unique(records[name], return_inverse=True)[1].ravel() for name in pair)
    shape = (int(one.max(initial=0)) + 1, int(other.max(initial=0)) + 1)
    counts = np.bincount(one * shape[1] + other, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1)
    chi = float(((counts - expected) ** 2 / np.maximum(expected, 1e-300)).sum()) - math.prod(size - 1 for size in shape)
    return math.sqrt(max(chi, 0.0) / max(counts.sum() * (min(shape) - 1), 1))


@dataclass(frozen=True)
class Singling:
    """How often guesses single someone out, and how often they would anyhow."""

    attack: float
    baseline: float
    guesses: int

    @property
    def risk(self) -> float:
        """What guesses succeed beyond the baseline, from 0 to 1."""
        return max(self.attack - self.baseline, 0.0) / max(1 - self.baseline, 1e-9)


def singling_out(
    schema: Schema, rows: CodedRows, drawn: CodedRows, seed: int, control: CodedRows | None = None
) -> Singling:
    """Guess predicates from drawn records, and see how many fit exactly one row; and one of the control, if given."""
    rng = np.random.default_rng(seed)
    numbers = _columns(schema)
    if not _size(drawn):
        return Singling(0.0, 0.0, 0)
    informed = [one for one in (_informed(numbers, drawn, rng) for _ in range(GUESSES)) if one is not None]
    if control is None:
        return Singling(
            _hits(informed, rows), _hits([_blind(schema, numbers, rng) for _ in range(GUESSES)], rows), len(informed)
        )
    size = min(_size(rows), _size(control))
    attack, baseline = (_hits(informed, _some(one, size, rng)) for one in (rows, control))
    return Singling(attack, baseline, len(informed))


def _size(records: CodedRows) -> int:
    return len(next(iter(records.values())))


Predicate = Mapping[str, tuple[str, int]]
"""By attribute, a sign and a leaf."""


def _hits(guesses: Sequence[Predicate], rows: CodedRows) -> float:
    """The share of guesses that fit exactly one row."""
    return float(np.mean([_fitting(one, rows).sum() == 1 for one in guesses])) if guesses else 0.0


def _informed(numbers: Mapping[str, bool], drawn: CodedRows, rng: np.random.Generator) -> Predicate | None:
    """A predicate that fits one drawn record and no other: of several tries, the first that does."""
    for _ in range(TRIES):
        at = int(rng.integers(len(next(iter(drawn.values())))))
        predicate = {
            name: (_side(drawn[name], at) if numbers[name] else "=", int(drawn[name][at]))
            for name in _some_names(numbers, rng)
        }
        if _fitting(predicate, drawn).sum() == 1:
            return predicate
    return None


def _side(codes: Integers, at: int) -> str:
    """Look towards the nearer end, where there are fewer."""
    return ">=" if codes[at] >= np.median(codes[:1000]) else "<="


def _blind(schema: Schema, numbers: Mapping[str, bool], rng: np.random.Generator) -> Predicate:
    leaves = {name: column.leaves for name, column in schema.attributes.items() if not isinstance(column, Identifier)}
    return {
        name: (str(rng.choice([">=", "<="])) if numbers[name] else "=", int(rng.integers(leaves[name])))
        for name in _some_names(numbers, rng)
    }


def _some_names(numbers: Mapping[str, bool], rng: np.random.Generator) -> list[str]:
    names = list(numbers)
    return [names[at] for at in rng.choice(len(names), min(GUESSED, len(names)), replace=False)]


def _fitting(predicate: Predicate, records: CodedRows) -> Booleans:
    signs = {"=": np.equal, ">=": np.greater_equal, "<=": np.less_equal}
    fits = [signs[sign](records[name], leaf) for name, (sign, leaf) in predicate.items()]
    return np.asarray(np.logical_and.reduce(fits))
