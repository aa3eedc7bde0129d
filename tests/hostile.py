"""Everything that Sfumato reads and somebody else may have written, each as a function of bytes.

A target returns, or raises a `SfumatoError`; anything else is a finding. The ordinary suite feeds them from Hypothesis,
`make fuzz` from a fuzzer that follows the code's branches.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from forging import reseal
from handmade import BOXES, release_of
from kinds import SMALL
from sfumato import Account, Confidence, Mondrian, Release, Schema, Taxonomy, verify
from sfumato.cli.holder import _rows
from sfumato.cli.query import read_questions
from sfumato.errors import SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.release.manifest import Manifest
from sfumato.release.risk import claims_about
from sfumato.schema.codebooks import read_codebook
from sfumato.schema.conditions import read_condition
from sfumato.without_epsilon.confidence import read_knowledge
from test_confidence_releases import RULES, STATISTICS
from test_confidence_releases import SCHEMA as PATIENTS
from test_confidence_releases import TABLE as SICK

Target = Callable[[bytes], None]
WRITTEN = b"""\
attributes:
  a: {kind: numeric, lower: 0, upper: 5000, grid: log, written: "1.234,5"}
  b: {kind: numeric, lower: 2000-01-01, upper: 2009-12-31, borders: [2005-01-01], written: DD.MM.YYYY}
  c: {kind: categorical, codes: "[A-Z](AT|DE)[0-9]", taxonomy: [Other], unseen: Other}
  d: {kind: class, taxonomy: [no, yes], labels: {"0": no, "1": yes}}
"""
BOOK = (
    b'{"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}}], '
    b'"missingValues": ["-9"], "primaryKey": "id"}'
)


@cache
def workplace() -> Path:
    """Give a folder for this process, in memory if possible."""
    shared = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="hostile", dir=shared if os.access(shared, os.W_OK) else None))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@cache
def release() -> Release:
    """Give a release to ask, with margins."""
    return release_of(margins={0: np.array([5, 10, -2, 4, 1]), 3: np.arange(8)})


@cache
def capped() -> Release:
    """Give a release with capped confidence."""
    account = Account(workplace() / "patients.ledger", PATIENTS)
    method = Confidence(sensitive="disease", statistics=STATISTICS, rules=RULES)
    return account.publish(SICK, method, unsafe_seed=3)


@cache
def folders() -> tuple[Path, ...]:
    """Give a saved release of every kind, and two that were published without epsilon."""
    anonymous = Account(workplace() / "patients.ledger", PATIENTS).publish(SICK, Mondrian(k=50))
    kinds = {kind: make() for kind, make in SMALL.items()} | {"people": release()}
    for name, one in (kinds | {"capped": capped(), "anonymous": anonymous}).items():
        if not (workplace() / name).exists():
            one.save(workplace() / name)
    return tuple(workplace() / name for name in (*kinds, "capped", "anonymous"))


def text_of(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def schema_file(data: bytes) -> None:
    path = workplace() / "hostile.yaml"
    path.write_bytes(data)
    schema = Schema.load(path)
    assert Schema.loads(schema.dump()).digest == schema.digest
    assert len(schema.shape) == len(schema.predictors)


def taxonomy_file(data: bytes) -> None:
    path = workplace() / "hostile.csv"
    path.write_bytes(data)
    tree = Taxonomy.of_hierarchy(_rows(str(path)))
    assert Taxonomy.of_hierarchy(tree.hierarchy).leaves == tree.leaves


def code_book(data: bytes) -> None:
    """Read JSON, codes and labels, or a hierarchy: the first byte says which."""
    kind, columns = (data[0] if data else 0) % 3, ["sex", "age"]
    folder = workplace() / "books"
    folder.mkdir(exist_ok=True)
    path = (workplace() / "book.json", workplace() / "people_sex.csv", folder / "age.csv")[kind]
    path.write_bytes(data[1:])
    found = read_codebook(folder if kind == 2 else path, columns)
    assert found.columns or kind == 0


def condition(data: bytes) -> None:
    read_condition(release().schema, text_of(data))
    release().count(text_of(data))


def question_file(data: bytes) -> None:
    path = workplace() / "asked.csv"
    path.write_bytes(data)
    asked = read_questions(path)
    release().count_many(asked.conditions[:50], asked.place)


def sql(data: bytes) -> None:
    release().sql(text_of(data))


def record(data: bytes) -> None:
    claims_about(capped(), text_of(data))


def manifest(data: bytes) -> None:
    Manifest.loads(text_of(data))


def statistics_file(data: bytes) -> None:
    schema = Confidence(sensitive="disease", statistics="x").narrowed(PATIENTS)
    read_knowledge(text_of(data), None, schema, "public")


def rules_file(data: bytes) -> None:
    schema = Confidence(sensitive="disease", statistics="x").narrowed(PATIENTS)
    read_knowledge(STATISTICS, text_of(data), schema, "public")


def ledger_file(data: bytes) -> None:
    path = workplace() / "hostile.ledger"
    path.write_bytes(data)
    try:
        ledger = Ledger.open(path)
        ledger.statement()
        ledger.settle("nothing", "failed")
    finally:
        for rest in workplace().glob("hostile.ledger-*"):
            rest.unlink(missing_ok=True)


def release_file(data: bytes) -> None:
    """Put bytes in the place of one file of a release, with fitting digests; the first two bytes say which."""
    folder = folders()[data[0] % len(folders())] if data else folders()[0]
    names = sorted(path.name for path in folder.iterdir())
    name = names[data[1] % len(names)] if len(data) > 1 else names[0]
    place = workplace() / "forged"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    (place / name).write_bytes(data[2:])
    if name != "manifest.json":
        reseal(place)
    verify(place)
    opened = Release.load(place)
    opened.count()
    opened.records()
    opened.describe()
    opened.explain()
    opened.sample_codes(5, seed=1)
    opened.model.marginal([0], by_class=True)


TARGETS: dict[str, Target] = {
    one.__name__: one
    for one in (
        *(schema_file, taxonomy_file, code_book, condition, question_file, sql, record),
        *(manifest, statistics_file, rules_file, ledger_file, release_file),
    )
}


def attempt(target: str, data: bytes) -> None:
    """Feed a target; a refusal in a sentence is as good as an answer."""
    with contextlib.suppress(SfumatoError):
        TARGETS[target](data)


def seeds() -> dict[str, list[bytes]]:
    """Give good inputs to begin with, by target."""
    ledger = Ledger(workplace() / "good.ledger", "people", None)
    ledger.amend(None)
    files = [
        bytes([kind, at]) + path.read_bytes()
        for kind, folder in enumerate(folders())
        for at, path in enumerate(sorted(folder.iterdir()))
    ]
    return {
        "schema_file": [release().schema.dump().encode(), BOXES.dump().encode(), PATIENTS.dump().encode(), WRITTEN],
        "code_book": [
            b"\0" + BOOK,
            b"\1code;label\n1;Female\n2;Male\n",
            b"\02" + b"1;[0, 5[;*\n2;[0, 5[;*\n7;[5, 10[;*\n",
        ],
        "taxonomy_file": [b"Dancer;Artist;*\nWriter;Artist;*\nRetired;Retired;*\n"],
        "condition": [b"age between 30 and 40 and job = 'Artist'", b"born < 1990-01-20 and job in (Lawyer, Writer)"],
        "question_file": [b'condition\nage < 30\n"job in (Lawyer, Writer)"\n', b"age < 30\nwage >= 30\n"],
        "sql": [
            b"select job, count(*) from release where age >= 40 group by job",
            b"with a as (select age, avg(wage) w from release group by 1) select sum(w) from a",
        ],
        "record": [b"age=34,sex=male", b"town=Aa"],
        "manifest": [(folder / "manifest.json").read_bytes() for folder in folders()],
        "statistics_file": [STATISTICS.encode()],
        "rules_file": [RULES.encode()],
        "ledger_file": [ledger.path.read_bytes()],
        "release_file": files,
    }
