"""The manifest: what a release promises and what was paid for it, as JSON that a person can read.

It is sealed by the account from the ledger's lines: the debits of a differentially private release, or the looks of one
that promises something else. Its digest reveals an edit by accident or by a careless hand; it is no signature, and
someone who means to forge one can.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.exact import can_be_summed, read_fraction, read_json
from sfumato.privacy.budget import INFINITE, Debit, NonPrivate, Total
from sfumato.release.about import About
from sfumato.release.promises import ConfidenceCap, KAnonymity, Promise

PRIVATE, OPEN = 1, 2
"""The formats of manifests with an epsilon, and with another promise."""
FORMAT = OPEN
"""The newest format that can be read."""
SECURE, UNSAFE = "secure", "unsafe seed"
"""Where randomness came from: the operating system, or a known seed."""
PROMISES: Mapping[str, type[KAnonymity] | type[ConfidenceCap]] = {one.model: one for one in (KAnonymity, ConfidenceCap)}
"""The promises without epsilon, by name."""

AGAIN = "Get the release again from its publisher."
"""The way out where a release is not as it was published."""
WARNING = "warning: "
"""How a step begins that warns those who use the release."""
NEIGHBOURS = "tables that differ by adding or removing one record"
"""Between which tables an epsilon holds, unless the table is about persons."""


@dataclass(frozen=True)
class Manifest:
    """The certificate of a release."""

    version: str
    publication: str
    method: str
    parameters: Mapping[str, Any]
    debits: tuple[Debit, ...]
    secure: bool
    """whether randomness, if there was any, came from the operating system"""
    schema_digest: str
    steps: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """the digests of the release's files"""
    promise: Promise | None = None
    """what is promised instead of an epsilon"""
    looks: tuple[NonPrivate, ...] = ()
    """the looks at exact counts, which no epsilon bounds"""
    rows_per_person: int | None = None
    """how many rows of a person count at most; None if the promise is about each record"""
    about: Mapping[str, Any] = field(default_factory=dict)
    """what the holder says about the release: see `About`"""

    @property
    def unit(self) -> str:
        """What the promise is about: each record, or each person with all rows."""
        return "record" if self.rows_per_person is None else "person"

    @property
    def counted(self) -> str:
        """What counts are of: people, where each record is taken for one, or rows of persons."""
        return "people" if self.rows_per_person is None else "rows"

    @property
    def neighbours(self) -> str:
        """Between which tables an epsilon holds."""
        if self.rows_per_person is None:
            return NEIGHBOURS
        count = "one, drawn by lot, counts" if self.rows_per_person == 1 else "{}, drawn by lot, count"
        return "tables that differ by adding or removing one person with all rows, of which at most " + count.format(
            f"{self.rows_per_person:,}"
        )

    @property
    def epsilon(self) -> Total:
        """What was paid in all, which is what is promised; infinite if something else is promised."""
        return sum((debit.epsilon for debit in self.debits), Fraction(0)) if self.promise is None else INFINITE

    @property
    def warnings(self) -> tuple[str, ...]:
        """The steps in which the method warns of something."""
        return tuple(step for step in self.steps if step.startswith(WARNING))

    @property
    def guarantee(self) -> str:
        """The promise in words."""
        if self.promise is not None and not self.secure:
            return (
                "This release carries NO guarantee: its sample was drawn by a known seed, for tests and benchmarks "
                f"only. With secure randomness: {self.promise.guarantee}"
            )
        if self.promise is not None:
            return self.promise.guarantee
        if not self.secure:
            return (
                "This release carries NO guarantee: its noise came from a known seed, for tests and benchmarks only "
                f"(with secure randomness it would be differentially private with epsilon = {self.epsilon})."
            )
        return (
            f"This release is differentially private with epsilon = {self.epsilon}: no event among releases that cost "
            f"no more is over exp({self.epsilon}) times as probable on one of two neighbouring tables as on the other, "
            f"neighbours being {self.neighbours}."
        )

    @property
    def sampling(self) -> Fraction:
        """The probability with which each record was drawn to be published."""
        return Fraction(1) if self.promise is None else self.promise.sampling

    def with_files(self, files: Mapping[str, str]) -> Manifest:
        """The manifest with the digests of the files that it seals."""
        return replace(self, files=dict(files))

    def plain(self) -> dict[str, Any]:
        """Write the manifest as plain values, its own digest last."""
        body: dict[str, Any] = {
            "format": PRIVATE if self.promise is None else OPEN,
            "sfumato": self.version,
            "guarantee": self.guarantee,
            **self._promised(),
            "publication": self.publication,
            "method": {"name": self.method, "parameters": dict(self.parameters)},
            "ledger": [_plain_debit(one) for one in self.debits] + [_plain_look(one) for one in self.looks],
            "steps": list(self.steps),
            **({"about": dict(self.about)} if self.about else {}),
            "schema_digest": self.schema_digest,
            "files": dict(self.files),
        }
        return body | {"digest": _digest(body)}

    def _promised(self) -> dict[str, Any]:
        """The terms of the promise: an epsilon and where the noise came from, or another promise and against whom."""
        if self.promise is not None:
            seeded = {} if self.secure else {"randomness": UNSAFE}
            return {"promise": self.promise.plain(), "adversary": self.promise.adversary} | seeded
        persons = {} if self.rows_per_person is None else {"unit": self.unit, "rows_per_person": self.rows_per_person}
        return {
            "epsilon": str(self.epsilon),
            "neighbours": self.neighbours,
            **persons,
            "randomness": SECURE if self.secure else UNSAFE,
        }

    @property
    def digest(self) -> str:
        """The fingerprint of everything that it says."""
        return str(self.plain()["digest"])

    def dump(self) -> str:
        """Write it as JSON."""
        return json.dumps(self.plain(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def loads(cls, text: str) -> Manifest:
        """Read it; refuse one that was edited or is too new."""
        try:
            plain = read_json(text)
            body = {key: value for key, value in plain.items() if key != "digest"}
            if isinstance(plain["format"], int) and plain["format"] > FORMAT:
                raise ReleaseError(
                    f"release format ({plain['format']:.3g}) must be at most {FORMAT}", "Upgrade Sfumato."
                )
            if plain["digest"] != _digest(body):
                raise ReleaseError("manifest.json must be as it was published, and was edited", AGAIN)
            private = "promise" not in plain
            if not private and not plain["ledger"]:
                raise ValueError("a release without epsilon must tell what was looked at")
            manifest = cls(
                version=str(plain["sfumato"]),
                publication=str(plain["publication"]),
                method=str(plain["method"]["name"]),
                parameters=dict(plain["method"]["parameters"]),
                debits=tuple(_debit(line) for line in plain["ledger"]) if private else (),
                secure=(plain["randomness"] if private else plain.get("randomness", SECURE)) == SECURE,
                schema_digest=str(plain["schema_digest"]),
                steps=tuple(map(str, plain["steps"])),
                files={str(name): str(digest) for name, digest in plain["files"].items()},
                promise=None if private else PROMISES[plain["promise"]["model"]].of_plain(plain["promise"]),
                looks=() if private else tuple(_look(line) for line in plain["ledger"]),
                rows_per_person=_rows(plain.get("rows_per_person")),
                about=About.parse(plain["about"]).plain() if "about" in plain else {},
            )
            if not can_be_summed(debit.epsilon for debit in manifest.debits):
                raise ValueError("debits must add up to an epsilon that can be written")
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise ReleaseError("manifest.json must be a Sfumato manifest, and is not", AGAIN) from None
        if manifest.digest != plain["digest"]:
            raise ReleaseError("manifest.json must say what its ledger says, and does not", AGAIN)
        return manifest


def _plain_debit(debit: Debit) -> dict[str, Any]:
    return {
        "label": debit.label,
        "mechanism": debit.mechanism,
        "epsilon": str(debit.epsilon),
        "sensitivity": str(debit.sensitivity),
        "cells": debit.cells,
    }


def _plain_look(look: NonPrivate) -> dict[str, Any]:
    return {"label": look.label, "mechanism": "none: exact counts", "reason": look.reason}


def _debit(line: Mapping[str, Any]) -> Debit:
    epsilon, sensitivity = read_fraction(line["epsilon"]), read_fraction(line["sensitivity"])
    if epsilon is None or sensitivity is None:
        raise ValueError("a debit must have an epsilon and a sensitivity")
    return Debit(str(line["label"]), str(line["mechanism"]), epsilon, sensitivity, int(line["cells"]))


def _rows(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError("a person must have a whole number of rows that count")
    return value


def _look(line: Mapping[str, Any]) -> NonPrivate:
    return NonPrivate(str(line["label"]), str(line["reason"]))


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a mapping; refuse a name that stands twice: a person would believe the first, and a program the last."""
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise ValueError("names must stand once")
    return plain


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
