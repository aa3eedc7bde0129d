"""Methods as the command line knows them: their parameters are options, taken from the methods themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click

from sfumato import METHODS, SYNTACTIC
from sfumato.errors import MethodError
from sfumato.methods import Method
from sfumato.syntactic import SyntacticMethod

Command = Callable[..., Any]

EVERY: Mapping[str, Any] = {**METHODS, **SYNTACTIC}
"""All methods, with and without epsilon."""


def options_of(methods: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Add to a command an option for every parameter of any of these methods."""

    def with_options(command: Command) -> Command:
        for name in reversed(list(dict.fromkeys(one.name for method in methods.values() for one in fields(method)))):
            said = _help(name, methods)
            command = click.option(f"--{name.replace('_', '-')}", name, metavar="VALUE", help=said)(command)
        return command

    return with_options


def _help(name: str, methods: Mapping[str, Any]) -> str:
    """Say what a parameter does, once for methods that agree, and its defaults."""
    declared = {method.name: one for method in methods.values() for one in fields(method) if one.name == name}
    said: dict[str, list[str]] = {}
    for method, one in declared.items():
        said.setdefault(one.metadata["says"], []).append(method)
    texts = [text if len(saying) == len(methods) else f"({', '.join(saying)}) {text}" for text, saying in said.items()]
    defaults = {method: _plain(one.default) for method, one in declared.items() if one.default not in (None, MISSING)}
    if len(set(defaults.values())) == 1:
        defaults = {"default": next(iter(defaults.values()))}
    shown = ", ".join(f"{method} {default}" for method, default in defaults.items())
    return " ".join(texts) + (f" [{shown}]" if shown else "")


def _plain(default: object) -> str:
    return {True: "yes", False: "no"}.get(default, str(default)) if isinstance(default, bool) else str(default)


def _given(value: str, *, file: bool) -> str:
    """Read an option's value, from the file that @ names or that it is the name of."""
    if not (file or value.startswith("@")):
        return value
    path = value.removeprefix("@")
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise MethodError(f"file ({path}) must be text that can be read", "Look at its name.") from problem


def make_method(name: str, given: Mapping[str, Any], *, as_published: bool) -> Method | SyntacticMethod:
    """Make the named method from the options that were given, refusing those that it does not have, or lacks."""
    method = EVERY[name]
    files = {one.name for one in fields(method) if one.metadata["file"]}
    options: dict[str, Any] = {
        key: _given(value, file=key in files) for key, value in given.items() if value is not None
    }
    if as_published and name in SYNTACTIC:
        raise MethodError(f"as-published must go with a method that we changed, and {name} is not", "Leave it out.")
    known = inspect.signature(method.as_published).parameters if as_published else [one.name for one in fields(method)]
    for key in [key for key in options if key not in known]:
        what = f"{name} as published" if as_published else name
        raise MethodError(
            f"option --{key.replace('_', '-')} must belong to the method, and {what} does not have it",
            f"It has {', '.join('--' + one.replace('_', '-') for one in known)}.",
        )
    for key in [one.name for one in fields(method) if one.default is MISSING and one.name not in options]:
        raise MethodError(f"{name} must have its {key}", f"Give --{key}.")
    made: Method | SyntacticMethod = method.as_published(**options) if as_published else method(**options)
    return made
