"""Every method with every set of parameters that its class names: contracts take their cases from here.

No test keeps a list of methods. `EVERY_METHOD` holds all examples of all methods with an epsilon, `SOME_OF_EACH` the
first one and the first as published, for laws that take long, `ONE_OF_EACH` the first alone; methods without epsilon
have theirs. `left_out` tells which methods a module's laws do not know (test_contracts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sfumato import METHODS, WITHOUT_EPSILON, Account, Release
from sfumato.methods.method import Method, Parameters

Registry = Mapping[str, type[Parameters]]


def examples(registry: Registry) -> Iterator[Parameters]:
    """Give every method with every set of parameters that is worth testing."""
    return (one for method in registry.values() for one in method.examples())


def first_examples(registry: Registry) -> Iterator[Parameters]:
    """Give every method with the first set of parameters, and the first as published."""
    for method in registry.values():
        every = method.examples()
        yield from every[:1]
        yield from every[len(method.EXAMPLES) :][:1]


def first_of_each(registry: Registry) -> Iterator[Parameters]:
    """Give every method once, with the first set of parameters."""
    return (one for method in registry.values() for one in method.examples()[:1])


def short(method: Parameters) -> str:
    """Name a method and what is not as usual about it."""
    usual = {one.name: one.default for one in fields(method)}
    told = [f"{name}={_words(value)}" for name in usual if (value := getattr(method, name)) != usual[name]]
    return " ".join((method.name, *told))


def _words(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def cases(methods: Iterable[Parameters]) -> pytest.MarkDecorator:
    """Make a test's parameter `method` of methods."""
    return pytest.mark.parametrize("method", list(methods), ids=short)


EVERY_METHOD = cases(examples(METHODS))
SOME_OF_EACH = cases(first_examples(METHODS))
ONE_OF_EACH = cases(first_of_each(METHODS))
EVERY_OPEN_METHOD = cases(examples(WITHOUT_EPSILON))
ONE_OF_EACH_OPEN = cases(first_of_each(WITHOUT_EPSILON))
EVERY_KIND = cases([*examples(METHODS), *examples(WITHOUT_EPSILON)])
ONE_OF_EVERY_KIND = cases([*first_of_each(METHODS), *first_of_each(WITHOUT_EPSILON)])


def held_by(law: Callable[..., Any]) -> set[str]:
    """Tell which methods a test is run with."""
    marks = [mark for mark in getattr(law, "pytestmark", []) if mark.name == "parametrize" and mark.args[0] == "method"]
    return {method.name for mark in marks for method in mark.args[1]}


def laws_of(module: ModuleType) -> dict[str, set[str]]:
    """Give the tests of a module that are run with methods, and which those are."""
    tests = {name: held_by(one) for name, one in vars(module).items() if name.startswith("test_")}
    return {name: methods for name, methods in tests.items() if methods}


def left_out(module: ModuleType, *registries: Registry) -> set[str]:
    """Tell which methods of registries are held to no law of a module, or to some of its laws and not to others.

    A law is about all methods with an epsilon, about all without, or about all.
    """
    laws = laws_of(module).values()
    partial = (set(registry) - law for registry in registries for law in laws if law & set(registry))
    return set().union(*registries).difference(*laws).union(*partial)


def publish(account: Account, table: Any, method: Parameters, out: Path | None = None, **how: Any) -> Release:
    """Publish with an epsilon of 1, or without one, as the method has it."""
    return account.publish(table, method, 1 if isinstance(method, Method) else None, out=out, **how)
