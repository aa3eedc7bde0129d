"""The confidence cap: it holds of every record, each fares as if it climbed alone, and what cannot be is refused."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from open_tables import SMALL, Rows, exact, rows
from sfumato import Confidence, Schema
from sfumato.arrays import NONE
from sfumato.errors import MethodError, SchemaError
from sfumato.privacy.measurements import Draft
from sfumato.release.promises import ConfidenceCap
from sfumato.schema.hierarchy import Hierarchy

CLASSES = {"no": "0.5", "yes": "0.3", "perhaps": "0.2"}
STATISTICS = "attribute,value,probability\n" + "".join(
    f"{name},{value},{chance}\n"
    for name, parts in {
        "a": {str(at): "1/9" for at in range(9)},
        "b": {"p": "0.6", "r": "0.3", "v": "0.1"},
        "c": {"0": "0.5", "1": "0.25", "2": "0.25"},
        "class": CLASSES,
    }.items()
    for value, chance in parts.items()
)
Limits = st.sampled_from(["0", "0.3", "0.6", "1"])


def drafted(method: Confidence, table: Rows) -> Draft:
    return method.publish(exact(table), method.narrowed(SMALL))


def capped(**parameters: object) -> Confidence:
    return Confidence(**({"sensitive": "class", "statistics": STATISTICS} | parameters))


def published(draft: Draft) -> Counter[tuple]:
    """Give the published records: their ranges and class."""
    boxes, counts = draft.structure.ranges.tolist(), draft.final.counts
    return Counter(
        {
            (tuple(map(tuple, boxes[at])), label): int(counts[at, label])
            for at, label in zip(*counts.nonzero(), strict=True)
        }
    )


def by_hand(method: Confidence, table: Rows) -> tuple[Counter[tuple], int]:
    """Let every record climb alone, all that are unsafe in a round at once; give those published, and how many not."""
    schema = method.narrowed(SMALL)
    known = method.promise(schema).knowledge
    trees = [Hierarchy.of(column) for column in schema.predictors.values()]
    people = [
        (
            [
                tree.starts[np.searchsorted(tree.finest, leaf, side="right") - 1]
                for tree, leaf in zip(trees, row, strict=False)
            ],
            row[-1],
        )
        for row in table
    ]
    limit, suppressed = float(method.distortion) + 1e-9, 0

    def box(nodes: list) -> tuple:
        return tuple(tuple(tree.ranges[node].tolist()) for tree, node in zip(trees, nodes, strict=True))

    def moved(nodes: list) -> float:
        return sum(tree.distortions[node] for tree, node in zip(trees, nodes, strict=True)) / len(trees)

    while True:
        sizes = Counter(box(nodes) for nodes, _ in people)
        alike = Counter((box(nodes), label) for nodes, label in people)
        again, unsafe = [], 0
        for nodes, label in people:
            chance = known.probability(np.array([box(nodes)]), np.array([label]))[0]
            observed = float(method.sampling) * alike[box(nodes), label] / sizes[box(nodes)]
            if observed <= 1 - (1 - chance) ** len(people) + 1e-12 and moved(nodes) <= limit:
                again.append((nodes, label))
                continue
            unsafe += 1
            steps = [
                (tree.left_domain_sizes[node], -at) for at, (tree, node) in enumerate(zip(trees, nodes, strict=True))
            ]
            for _, place in sorted(steps, reverse=True):
                above = trees[-place].parents[nodes[-place]]
                higher = [above if at == -place else node for at, node in enumerate(nodes)]
                if above != NONE and moved(higher) <= limit:
                    again.append((higher, label))
                    break
            else:
                suppressed += 1
        people = again
        if not unsafe:
            return Counter((box(nodes), label) for nodes, label in people), suppressed


@settings(max_examples=40)
@given(rows(40), st.sampled_from(["0.5", "0.9", "1"]), Limits)
def test_records_fare_as_if_each_climbed_alone(table: Rows, sampling: str, distortion: str) -> None:
    method = capped(sampling=sampling, distortion=distortion)
    expected, suppressed = by_hand(method, table)
    if not expected:
        with pytest.raises(MethodError, match="every one would be suppressed"):
            drafted(method, table)
        return
    draft = drafted(method, table)
    assert published(draft) == expected
    told = [int(line.split()[1].replace(",", "")) for line in draft.notes if line.startswith("suppressed")]
    assert sum(told) == suppressed == len(table) - draft.final.counts.sum()


@settings(max_examples=40)
@given(rows(60), st.sampled_from(["0.5", "0.9"]), st.randoms(use_true_random=False))
def test_the_cap_holds_by_hand_and_the_order_does_not_matter(table: Rows, sampling: str, chance: random.Random) -> None:
    method = capped(sampling=sampling, distortion="1")
    try:
        draft = drafted(method, table)
    except MethodError:
        assume(False)
    records, sizes = published(draft), Counter[tuple]()
    for (box, _), count in records.items():
        sizes[box] += count
    known = method.promise(method.narrowed(SMALL)).knowledge
    for (box, label), count in records.items():
        marginal = known.sensitive[label]
        for at, (lo, hi) in enumerate(box):
            marginal *= known.marginals[at][lo:hi].sum()
        assert float(sampling) * count / sizes[box] <= 1 - (1 - marginal) ** records.total() + 1e-9
    chance.shuffle(table)
    again = drafted(method, table)
    assert np.array_equal(again.structure.ranges, draft.structure.ranges)
    assert np.array_equal(again.final.counts, draft.final.counts)


def test_a_frequent_record_stays_as_it_is_and_a_rare_one_climbs() -> None:
    table = [(a, b, c, k) for a in range(9) for b in range(5) for c in range(3) for k in range(3)] * 20
    draft = drafted(capped(), table)
    assert (np.diff(draft.structure.ranges) == 1).all()
    alone = drafted(capped(distortion="1"), table[:90])
    assert (np.diff(alone.structure.ranges) > 1).any()


def test_the_minimum_generalization_comes_first() -> None:
    plain = SMALL.plain()
    plain["attributes"]["a"]["intervals"] = [3]
    plain["attributes"]["b"]["finest"] = 1
    schema, method = Schema.parse(plain), capped()
    table = [(a, b, c, k) for a in range(9) for b in range(5) for c in range(3) for k in range(3)] * 20
    draft = method.publish(exact(table, schema), method.narrowed(schema))
    assert set(map(tuple, draft.structure.ranges[:, 0].tolist())) == {(0, 3), (3, 6), (6, 9)}
    assert set(map(tuple, draft.structure.ranges[:, 1].tolist())) == {(0, 2), (2, 5)}


def test_own_statistics_are_no_finer_than_what_is_published() -> None:
    plain = SMALL.plain()
    plain["attributes"]["a"]["intervals"] = [3]
    schema, method = Schema.parse(plain), Confidence(sensitive="class", statistics_from_data="yes")
    counts = exact([(0, 0, 0, 0)] * 1200 + [(4, 3, 1, 1)] * 800, schema)
    known = method.informed(counts, method.narrowed(schema)).promise(method.narrowed(schema)).knowledge
    assert known.source == "the table itself"
    shares = [0.59 + 0.02 / 3, 0.39 + 0.02 / 3, 0.02 / 3]
    assert known.marginals[0].tolist() == pytest.approx([share / 3 for share in shares for _ in range(3)])
    assert known.sensitive.tolist() == pytest.approx(shares)
    assert [line.label for line in counts.lines] == ["margins, in place of public statistics"]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"sampling": 0}, r"sampling \(0\) must be a rate greater than 0 and at most 1"),
        ({"sampling": "1.1"}, "sampling"),
        ({"sampling": "most"}, "sampling"),
        ({"distortion": "2"}, r"distortion \(2\) must be a number from 0 to 1"),
        ({"quasi": "a,a"}, "every attribute once"),
        ({"statistics_from_data": "maybe"}, "must be yes or no"),
    ],
)
def test_wrong_parameters_are_refused_at_birth(parameters: dict, told: str) -> None:
    with pytest.raises(MethodError, match=told):
        capped(**parameters)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"statistics": None}, "must have public statistics"),
        ({"statistics_from_data": True}, "and not both"),
        ({"quasi": "a,class"}, r"sensitive \(class\) must not be a quasi-identifier"),
        ({"quasi": "a,shoe"}, r"quasi-identifier \(shoe\)"),
        ({"sensitive": "a"}, "must be categorical"),
        ({"sensitive": "shoe"}, "must be an attribute of the schema"),
    ],
)
def test_schemas_that_do_not_fit_are_refused(parameters: dict, told: str) -> None:
    with pytest.raises((MethodError, SchemaError), match=told):
        capped(**parameters).narrowed(SMALL)


def test_one_sensitive_value_is_refused() -> None:
    cap = ConfidenceCap(("a",), "class", Fraction(1), None)
    for counts in ([5, 0, 0], [0, 0, 0]):
        with pytest.raises(MethodError, match="must have two values or more in the table"):
            cap.refuse_table(np.array(counts))
    cap.refuse_table(np.array([5, 0, 1]))
