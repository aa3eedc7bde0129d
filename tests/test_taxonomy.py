"""Trees of categories: every node a range, every form read back as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.schema.taxonomy import DEEPEST, Nested, Taxonomy


@st.composite
def nested_trees(draw: st.DrawFn) -> Nested:
    """Draw a tree with distinct names of any letters."""
    shapes = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=20)
    counter = iter(range(10**6))
    suffix = draw(st.sampled_from(["", "'", '"', ": é", " #1", ";x", "\U0001f600"]))

    def name() -> str:
        return f"n{next(counter)}{suffix}"

    def build(shape: object) -> Nested:
        assert isinstance(shape, list)
        return [name() if child is None else {name(): build(child)} for child in shape]

    return build(draw(st.lists(shapes, min_size=1, max_size=4)))


@settings(max_examples=40)
@given(nested_trees())
def test_nested_form_is_read_back_as_written(nested: Nested) -> None:
    assert Taxonomy.of(nested).nested == nested


@settings(max_examples=40)
@given(nested_trees())
def test_hierarchy_rows_give_the_same_tree(nested: Nested) -> None:
    tree = Taxonomy.of(nested)
    assert len({len(row) for row in tree.hierarchy}) == 1
    assert Taxonomy.of_hierarchy(tree.hierarchy) == tree


@settings(max_examples=40)
@given(nested_trees())
def test_every_node_is_the_range_of_its_children(nested: Nested) -> None:
    tree = Taxonomy.of(nested)
    assert (tree.root.lo, tree.root.hi) == (0, len(tree.leaves))
    for node in tree.nodes:
        if node.children:
            borders = [node.lo, *(child.hi for child in node.children)]
            assert [child.lo for child in node.children] == borders[:-1]
            assert borders[-1] == node.hi
            assert {child.depth for child in node.children} == {node.depth + 1}
        else:
            assert node.hi == node.lo + 1
            assert tree.leaves[node.lo] == node.label


@settings(max_examples=40)
@given(nested_trees())
def test_leaf_codes_decode_to_leaf_names(nested: Nested) -> None:
    tree = Taxonomy.of(nested)
    for code, leaf in enumerate(tree.leaves):
        assert tree.range_of(leaf) == (code, code + 1)
        assert tree.label(code, code + 1) == leaf
        assert tree.children(code, code + 1) is None


@settings(max_examples=40)
@given(nested_trees(), st.data())
def test_any_range_is_named_by_categories_that_cover_it_exactly(nested: Nested, data: st.DataObject) -> None:
    tree = Taxonomy.of(nested)
    lo = data.draw(st.integers(0, len(tree.leaves) - 1))
    hi = data.draw(st.integers(lo + 1, len(tree.leaves)))
    ranges = [tree.range_of(name) for name in tree.label(lo, hi).split(" | ")]
    assert [code for found in ranges if found for code in range(*found)] == list(range(lo, hi))


def test_only_child_is_named_for_what_it_is() -> None:
    tree = Taxonomy.of([{"Group": ["only"]}, "other"])
    assert tree.label(0, 1) == "only"
    assert tree.children(0, 1) is None
    assert tree.range_of("Group") == (0, 1)
    assert tree.range_of("nobody") is None


def test_height_counts_edges_of_the_longest_path() -> None:
    assert Taxonomy.of(["a"]).height == 1
    assert Taxonomy.of(["a", {"b": [{"c": ["d"]}]}]).height == 3


@pytest.mark.parametrize(
    "nested",
    [[], ["a", "a"], ["a", {"b": ["a"]}], [{"a": ["a"]}], ["Any"], [""], [{"": ["a"]}]],
    ids=["no leaf", "twins", "twins at depth", "own child", "root again", "empty", "empty node"],
)
def test_contradictory_trees_are_refused(nested: Nested) -> None:
    with pytest.raises(SchemaError, match="taxonomy"):
        Taxonomy.of(nested)


def test_too_deep_a_tree_is_refused_and_the_deepest_is_not() -> None:
    def chain(levels: int) -> Nested:
        nested: Nested = ["leaf"]
        for level in range(levels - 1):
            nested = [{f"level {level}": nested}]
        return nested

    assert Taxonomy.of(chain(DEEPEST)).height == DEEPEST
    with pytest.raises(SchemaError, match="levels deep"):
        Taxonomy.of(chain(DEEPEST + 1))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "one root"),
        ([("a", "*"), ("b", "all")], "one root"),
        ([("a",)], "row 1"),
        ([("a", "*"), ("b", "", "*")], "row 2"),
        ([("a", "*"), ("a", "*")], "'a'"),
        ([("a", "g", "*"), ("g", "*")], "'g'"),
        ([("a", "g", "*"), ("a", "h", "*")], "'a'"),
    ],
)
def test_bad_hierarchies_are_refused(rows: list[tuple[str, ...]], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Taxonomy.of_hierarchy(rows)
