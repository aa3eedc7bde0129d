"""Methods to compare as they are written on the command line: `diffgen,mondrian:k=10,diffmulti:as-published`."""

from __future__ import annotations

from dataclasses import MISSING, fields

from sfumato.cli.methods import EVERY, make_method
from sfumato.compare.contest import Contestant
from sfumato.errors import MethodError

AS_PUBLISHED = "as-published"
HOW = "Write for example diffgen:specializations=10,mondrian:k=10,mondrian:k=60."


def read_contestants(text: str) -> list[Contestant]:
    """Read methods, separated by commas, each with its options after colons.

    A comma before what is no method's name belongs to the option before it, as in `mondrian:k=10:quasi=age,sex`.
    """
    written: list[str] = []
    for word in (word.strip() for word in text.split(",")):
        if word.split(":")[0] in EVERY:
            written.append(word)
        elif written and "=" in written[-1]:
            written[-1] += f",{word}"
        else:
            raise MethodError(f"methods ({word[:40]}) must be one of {', '.join(EVERY)}", HOW)
    return [_contestant(one) for one in written]


def _contestant(written: str) -> Contestant:
    name, *options = [part.strip() for part in written.split(":")]
    as_published = AS_PUBLISHED in options
    given: dict[str, str] = {}
    for option in options:
        if option == AS_PUBLISHED:
            continue
        key, equals, value = option.partition("=")
        if not equals or not key or not value:
            raise MethodError(f"option ({option[:40]}) of {name} must be written as name=value", HOW)
        given[key.strip().replace("-", "_")] = value.strip()
    lacking = [one.name for one in fields(EVERY[name]) if one.default is MISSING and one.name not in given]
    if lacking:
        some = "10" if lacking[0] == "k" else "..."
        raise MethodError(f"{name} must have its {lacking[0]}", f"Write for example {name}:{lacking[0]}={some}.")
    return Contestant(" ".join([name, *options]), make_method(name, given, as_published=as_published))
