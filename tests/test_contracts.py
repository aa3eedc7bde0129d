"""No method is left out of a law: what tests are run with is compared with the registries."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import pytest

import test_audit
import test_engine_releases
import test_exact_counts
import test_hostile_neighbours
import test_paths
import test_replay
import test_report
import test_verify
from contracts import Registry, cases, examples, first_examples, first_of_each, held_by, laws_of, left_out, short
from sfumato import METHODS, WITHOUT_EPSILON, DiffGen, Laplace, Mondrian

LAWS: dict[ModuleType, tuple[Registry, ...]] = {
    test_replay: (METHODS,),
    test_hostile_neighbours: (METHODS,),
    test_engine_releases: (METHODS,),
    test_audit: (METHODS,),
    test_exact_counts: (METHODS, WITHOUT_EPSILON),
    test_verify: (METHODS, WITHOUT_EPSILON),
    test_report: (METHODS, WITHOUT_EPSILON),
}
"""Modules of laws, and whom they are about."""
EVERY_MODULE = pytest.mark.parametrize("module", LAWS, ids=lambda module: module.__name__)


@EVERY_MODULE
def test_every_method_is_held_to_every_law(module: ModuleType) -> None:
    assert laws_of(module)
    assert left_out(module, *LAWS[module]) == set()


@dataclass(frozen=True, kw_only=True)
class Untested(Laplace):
    """A method that came after the tests were made."""

    name = "untested"


@dataclass(frozen=True, kw_only=True)
class WithoutExamples(Laplace):
    """A method that names no parameters worth testing."""

    name = "without examples"
    EXAMPLES = ()


@EVERY_MODULE
def test_a_method_that_is_tested_nowhere_is_named(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, registry in enumerate(LAWS[module]):
        monkeypatch.setitem(registry, f"untested {number}", Untested)
    assert left_out(module, *LAWS[module]) == {f"untested {number}" for number in range(len(LAWS[module]))}


def module_of(*laws: set[str]) -> ModuleType:
    """Make a module of tests that are run with methods of these names."""
    module = ModuleType("laws")
    for number, names in enumerate(laws):

        @cases(method for method in examples(METHODS) if method.name in names)
        def law(method: object) -> None: ...

        setattr(module, f"test_{number}", law)
    return module


def test_a_method_that_one_law_of_several_knows_is_named() -> None:
    every = set(METHODS)
    assert left_out(module_of(every, every), METHODS) == set()
    assert left_out(module_of(every, every - {"diffgen"}), METHODS) == {"diffgen"}
    assert left_out(module_of({"diffgen"}), METHODS) == every - {"diffgen"}
    assert left_out(module_of(), METHODS) == every
    assert left_out(module_of(every), METHODS, WITHOUT_EPSILON) == set(WITHOUT_EPSILON)


@pytest.mark.parametrize("take", [examples, first_examples, first_of_each])
def test_a_method_is_a_case_of_all_that_is_made_from_its_registry(take) -> None:
    found = {method.name for method in take({**METHODS, Untested.name: Untested})}
    assert found == {*METHODS, "untested"}
    assert {method.name for method in take({WithoutExamples.name: WithoutExamples})} == set()


def test_a_test_that_is_run_with_no_methods_is_no_law() -> None:
    assert held_by(test_replay.test_an_honest_method_of_that_shape_passes) == set()
    assert "test_an_honest_method_of_that_shape_passes" not in laws_of(test_replay)


@pytest.mark.parametrize("registry", [METHODS, WITHOUT_EPSILON], ids=["with epsilon", "without"])
def test_examples_are_as_many_as_are_named_and_differ(registry: Registry) -> None:
    names = [short(method) for method in examples(registry)]
    assert len(names) == sum(len(one.EXAMPLES) + len(one.PUBLISHED) for one in registry.values())
    assert len(set(names)) == len(names)


def test_methods_are_called_by_what_is_not_as_usual() -> None:
    assert short(DiffGen()) == "diffgen"
    assert short(DiffGen(specializations=3, score="max")) == "diffgen specializations=3 score=max"
    assert short(Mondrian(k=3, quasi="a,b")) == "mondrian k=3 quasi=a,b"


def test_what_every_path_pays_is_proved_for_every_method_of_trees() -> None:
    trees = {one.name for one in test_paths.of_trees(examples(METHODS))}
    assert held_by(test_paths.test_no_record_loses_more_than_its_path_pays) == trees != set()
