"""Every method with every set of parameters that its class names: contracts take their cases from here.

No test keeps a list of methods. `EVERY_METHOD` holds all examples of all methods with an epsilon, `SOME_OF_EACH` the
first one and the first as published, for laws that take long; methods without epsilon have theirs. `held_by` tells
which methods a law is held by, so that none is left out (test_contracts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sfumato import METHODS, WITHOUT_EPSILON, Account, Release
from sfumato.methods.method import Parameters

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
    usual = {name: field.default for name, field in type(method).__dataclass_fields__.items()}
    told = [f"{name}={value}" for name in usual if (value := getattr(method, name)) != usual[name]]
    return " ".join((method.name, *told))


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
    marks = getattr(law, "pytestmark", [])
    return {
        method.name
        for mark in marks
        if mark.name == "parametrize" and mark.args[0] == "method"
        for method in mark.args[1]
    }


def publish(account: Account, table: Any, method: Parameters, out: Path | None = None, **how: Any) -> Release:
    """Publish with an epsilon of 1, or without one, as the method has it."""
    return account.publish(table, method, 1 if method.takes_epsilon else None, out=out, **how)
