"""The folder that the studio was started in, and what lies below it: tables, schemas, plans and releases.

Whatever a browser names is looked for below the folder, links followed, and is refused elsewhere; only the table that
was given on the command line may lie anywhere. All that a person confirms is in files, so a restart loses nothing:
the schema and the ledger lie beside the data as the command line has them, and what is the studio's own (a plan, runs
of a comparison) in a hidden folder. A schema is changed only by who has seen its latest text, so that two tabs cannot
undo each other's work unseen.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import sfumato
from sfumato import METHODS, Ledger, Method, Release, Schema, Statement, find_data, tables_below, usual_method
from sfumato.errors import MethodError, ReleaseError, SchemaError, TableError
from sfumato.storage import replaced_file

BUNDLED = "adult"
"""The word for the table that comes with the package."""
OWN = ".sfumato-studio"
"""The folder of what is the studio's own."""
MARK = "::"
"""What stands between a database and its table."""
MOST_UNDONE = 50
"""So many earlier texts of a schema are remembered."""


@dataclass(frozen=True)
class Plan:
    """What a holder means to publish: a method with its parameters, an epsilon, and the questions that matter."""

    method: str = ""
    epsilon: str = "1"
    parameters: Mapping[str, str] = field(default_factory=dict)
    rows: str = ""
    """about how many rows the table has, as publicly known"""
    questions: str = ""
    """conditions, one on each line"""
    out: str = ""
    """the folder of the release"""

    @property
    def asked(self) -> list[str]:
        """The questions."""
        return [line.strip() for line in self.questions.splitlines() if line.strip()]

    def made(self) -> Method:
        """The method with its parameters."""
        if self.method not in METHODS:
            raise MethodError(f"method ({self.method[:40]}) must be one of {', '.join(METHODS)}", "Choose one of them.")
        return made_method(self.method, {name: value for name, value in self.parameters.items() if value != ""})


@dataclass(frozen=True)
class Found:
    """A table that was named: its word, where its files are, and its schema as it stands."""

    word: str
    name: str
    table: Any
    schema_path: Path
    ledger_path: Path
    text: str | None
    """the schema's text; None if there is none yet"""

    @property
    def version(self) -> str:
        """What tells this text of the schema from any other."""
        return hashlib.sha256((self.text or "").encode()).hexdigest()[:16]

    def schema(self) -> Schema:
        """The schema, or a refusal if it was not drafted yet."""
        if self.text is None:
            raise SchemaError(f"table {self.name} must have a schema", "Draft one on the screen Schema.")
        return read_schema(self.text)

    @property
    def opened(self) -> str:
        """What a process opens the table by."""
        return self.word if not isinstance(self.table, str | Path) else str(self.table)

    @property
    def state(self) -> str:
        """What tells the rows of today from those of yesterday: files change."""
        try:
            facts = os.stat(str(self.opened).partition(MARK)[0])
        except OSError:
            return "bundled"
        return f"{facts.st_size}-{facts.st_mtime_ns}"

    def statement(self) -> Statement:
        """What the table has paid, and what is left."""
        if not self.ledger_path.exists():
            budget = self.schema().budget if self.text is not None else None
            return Statement(self.name, budget, ())
        return Ledger.open(self.ledger_path).statement()


class Desk:
    """All that the studio may reach."""

    def __init__(self, folder: Path, given: str | None = None, *, read_only: bool = False) -> None:
        """Sit down in a folder, perhaps with a table that was given."""
        self.folder, self.given, self.read_only = folder.resolve(), given, read_only
        self._earlier: dict[Path, list[str]] = {}
        self._lock = threading.Lock()

    def tables(self) -> list[str]:
        """The words for all tables that can be opened: the given one first, the bundled one last."""
        own = [] if self.given is None else [self.given]
        return list(dict.fromkeys([*own, *tables_below(self.folder), BUNDLED]))

    def releases(self) -> list[str]:
        """The folders of releases, the newest first."""
        found: list[tuple[float, str]] = []
        for place, inner, files in os.walk(self.folder):
            depth = len(Path(place).relative_to(self.folder).parts)
            inner[:] = [one for one in inner if not one.startswith(".")] if depth < 3 else []
            if "manifest.json" in files and "structure.json" in files:
                inner[:] = []
                when = os.stat(Path(place) / "manifest.json").st_mtime
                found.append((when, str(Path(place).relative_to(self.folder))))
        return [word for _, word in sorted(found, reverse=True)]

    def place(self, word: str) -> Path:
        """A path below the folder; one that leads elsewhere, or is hidden, is refused."""
        path = Path(os.path.normpath(self.folder / word))
        hidden = any(part.startswith(".") for part in Path(word).parts)
        if not word or "\0" in word or hidden or word.startswith(("/", "~")) or not _inside(path, self.folder):
            raise TableError("a path must lead to a place below the folder of the studio", "Choose one of the list.")
        return path

    def find(self, word: str) -> Found:
        """Find a table by its word, with its schema."""
        meant = self._meant(word)
        source = _bundled() if meant == BUNDLED else find_data(meant)
        schema_path, ledger_path = (self.folder / one for one in (source.schema_path, source.ledger_path))
        text = schema_path.read_text(encoding="utf-8") if schema_path.is_file() else None
        if text is None and source.bundled is not None:
            text = _bundled_text()
        return Found(word, source.name, source.table, schema_path, ledger_path, text)

    def _meant(self, word: str) -> str:
        """What the library is asked for: the given word as it is, the bundled table, or a path below the folder."""
        if word == self.given:
            return word
        path, mark, table = word.partition(MARK)
        if word == BUNDLED and not (self.folder / word).exists():
            return word
        found = self.place(path)
        if not found.exists() or any(one in word for one in "*?["):
            raise TableError("the table must be a file below the folder of the studio", "Choose one of the list.")
        return f"{found}{mark}{table}"

    def open_release(self, word: str) -> tuple[Path, Release]:
        """Open a release below the folder; one that was opened before and is the same is not read again."""
        path = self.place(word)
        if not (path / "manifest.json").is_file():
            raise ReleaseError("the release must be a folder below that of the studio", "Choose one of the list.")
        return path, _loaded(path, (path / "manifest.json").stat().st_mtime_ns)

    def write_schema(self, found: Found, seen: str, schema: Schema) -> None:
        """Write a schema over the text that its author has seen; the comments of a draft stay."""
        self.write_text(found, seen, schema.dump(like=found.text or ""))

    def write_text(self, found: Found, seen: str, text: str) -> None:
        """Write the text of a schema over the one that its author has seen."""
        with self._lock:
            latest = found.schema_path.read_text(encoding="utf-8") if found.schema_path.is_file() else found.text
            if replace(found, text=latest).version != seen:
                raise SchemaError(
                    "the schema must be the one that you have seen, and was changed meanwhile",
                    "Look at it as it is now, and make your change again.",
                )
            if latest is not None and latest != text:
                self._earlier.setdefault(found.schema_path, []).append(latest)
                del self._earlier[found.schema_path][:-MOST_UNDONE]
            with replaced_file(found.schema_path) as staging:
                staging.write_text(text, encoding="utf-8")

    def can_undo(self, found: Found) -> int:
        """How many changes of a schema can be taken back."""
        return len(self._earlier.get(found.schema_path, ()))

    def undo(self, found: Found, seen: str) -> None:
        """Take the last change of a schema back."""
        if not self.can_undo(found):
            raise SchemaError("there must be a change to take back, and there is none", "Go on.")
        text = self._earlier[found.schema_path].pop()
        self.write_text(found, seen, text)
        self._earlier[found.schema_path].pop()

    def earlier(self, found: Found) -> list[Schema]:
        """The schemas that changes have replaced, the latest first."""
        return [Schema.loads(text) for text in reversed(self._earlier.get(found.schema_path, ()))]

    def own(self, found: Found, what: str) -> Path:
        """A place for something of the studio's own about a table."""
        folder = found.schema_path.parent / OWN
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / f"{found.name}.{what}"

    def plan(self, found: Found) -> Plan:
        """The plan that was kept, or a first one."""
        try:
            kept = json.loads(self.own(found, "plan.json").read_text(encoding="utf-8"))
            plan = Plan(**kept)
        except (OSError, ValueError, TypeError):
            plan = Plan()
        return replace(plan, method=plan.method or usual_method(found.schema()), out=self._free(plan.out, found.name))

    def _free(self, wanted: str, name: str) -> str:
        """A folder for the release that is not taken."""
        names = [wanted, f"{name}-release", *(f"{name}-release-{number}" for number in range(2, 1000))]
        return next(one for one in names if one and not (self.folder / one).exists())

    def keep(self, found: Found, plan: Plan) -> None:
        """Keep a plan."""
        with replaced_file(self.own(found, "plan.json")) as staging:
            staging.write_text(json.dumps(asdict(plan), ensure_ascii=False, indent=1), encoding="utf-8")


@lru_cache(maxsize=16)
def read_schema(text: str) -> Schema:
    """Read the text of a schema; the same text is read once."""
    return Schema.loads(text)


def made_method(name: str, parameters: Mapping[str, Any]) -> Method:
    """Make a method from parameters; refuse one that lacks what it must be told."""
    method = METHODS[name]
    for one in fields(method):
        if one.default is MISSING and one.name not in parameters:
            raise MethodError(f"{name} must be told its {one.name}", "Give it, or choose another method.")
    return method(**parameters)


@lru_cache(maxsize=1)
def _bundled() -> Any:
    """The table that comes with the package; where a file has its name, that is meant."""
    return find_data(BUNDLED)


@lru_cache(maxsize=1)
def _bundled_text() -> str:
    text: str = _bundled().bundled.dump()
    return text


def _inside(path: Path, folder: Path) -> bool:
    """Whether a path leads below a folder, links followed."""
    return path.resolve().is_relative_to(folder) and path.resolve() != folder


@lru_cache(maxsize=4)
def _loaded(path: Path, _written: int) -> Release:
    return sfumato.Release.load(path)
