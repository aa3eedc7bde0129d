"""What a release shows, worked out a second time: its records from its counts, its promise from its records, and what
its noise is worth.

Apart from reading, which has no use for it: queries and samples rest on the counts alone.

A release held against its account: the ledger must know the publication, by id, method, lines and digest.

A release that the ledger does not know was made by somebody else, or the ledger is an older copy or another table's;
which of these it is nobody can tell from here.

Is a release what it says it is? Each claim of its manifest held against its files, its arithmetic, its account.

Loading a release refuses at the first thing that is wrong. Here everything is looked at, and each check tells what it
found, so that a tampered release is named by what was tampered with. What is left is who made it: digests are no
signature. A signature by a known key tells that, and so does the holder's ledger, which knows what was published.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.exact import can_be_summed, read_fraction, read_json
from sfumato.models.regions import DECIMALS
from sfumato.privacy.ledger import Ledger, Publication
from sfumato.privacy.measurements import each_is_paid, most_paid
from sfumato.release.folder import (
    EXPLAINING,
    MANIFEST_FILE,
    RECORDS_FILE,
    SCHEMA_FILE,
    SIGNATURE_FILE,
    SYNTHETIC,
    read_batches,
    read_table,
    read_text,
    write_people,
)
from sfumato.release.manifest import AGAIN, SECURE, Manifest
from sfumato.release.readme import WORTH
from sfumato.release.records import count_names
from sfumato.release.release import Release
from sfumato.release.signing import is_signed, signer_of
from sfumato.storage import sha256

ROUNDING = 1
"""On another machine a person may be rounded into the next cell,"""
LAST_DIGIT = 1.5 * 10.0**-DECIMALS
"""and an estimate to the next number that is shown."""
NEARLY = 0.02
"""Expected errors that a text tells may differ by so much on another machine, in shares of themselves."""
NUMBER = re.compile(r"\d+(?:\.\d+)?(?= %)")
OTHER = "records.parquet must follow from the counts, and does not"


def refuse_other_records(place: Path, release: Release) -> None:
    """Refuse records that are not those that the release's counts make."""
    batches = release.published_batches()
    first = next(batches)
    count, exact, people = count_names(release.schema)[1], release.is_exact, [0, 0]
    shown = read_batches(place / RECORDS_FILE, first.schema)
    for own, made in _side_by_side(shown, chain([first], batches), first.schema):
        if own.num_rows != made.num_rows or not all(
            _same(own[name], made[name], ROUNDING if name == count and not exact else 0) for name in made.schema.names
        ):
            raise ReleaseError(OTHER, AGAIN)
        people = [total + (pc.sum(one[count]).as_py() or 0) for total, one in zip(people, (own, made), strict=True)]
    if people[0] != people[1]:
        raise ReleaseError(OTHER, AGAIN)


def _side_by_side(
    one: Iterator[pa.RecordBatch], other: Iterator[pa.RecordBatch], fields: pa.Schema
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Cut two streams of rows at the same places; where one has ended, what the other has left is beside nothing."""
    nothing = pa.RecordBatch.from_pylist([], fields)
    left, right, one, other = nothing, nothing, filter(len, one), filter(len, other)
    while True:
        left, right = (left if len(left) else next(one, nothing)), (right if len(right) else next(other, nothing))
        if not len(left) and not len(right):
            return
        rows = min(len(left) or len(right), len(right) or len(left))
        yield left.slice(0, rows), right.slice(0, rows)
        left, right = left.slice(rows), right.slice(rows)


def _same(shown: pa.Array, made: pa.Array, slack: int) -> bool:
    """Compare names exactly, and numbers to within the slack; estimates to within the last digit that is shown."""
    if shown.null_count != made.null_count or not shown.is_valid().equals(made.is_valid()):
        return False
    if pa.types.is_date(made.type):
        return bool(shown.equals(made))
    if made.null_count:
        shown, made = shown.drop_null(), made.drop_null()
    if pa.types.is_dictionary(made.type):
        codes = pc.take(pc.index_in(shown.dictionary, made.dictionary), shown.indices)
        names = pc.take(pc.index_in(made.dictionary, made.dictionary), made.indices)
        return bool(codes.equals(names))
    own, other = (one.to_numpy(zero_copy_only=False) for one in (shown, made))
    reach = slack if pa.types.is_integer(made.type) else LAST_DIGIT
    return bool(((other - reach <= own) & (own <= other + reach)).all())


def refuse_small_groups(place: Path, release: Release) -> None:
    """Refuse records that break the promise, by the generalized values that they show."""
    promise = release.manifest.promise
    if promise is None or not promise.kept(release.draft.structure, release.draft.final.counts):
        raise ReleaseError("the published groups must be as promised, and are not", AGAIN)
    table = read_table(place / RECORDS_FILE, next(release.published_batches()).schema).unify_dictionaries()
    count = count_names(release.schema)[1]
    quasi = {name: _codes(table[name]) for name in promise.quasi}
    groups = pa.table(quasi | {count: table[count]}).group_by(list(quasi)).aggregate([(count, "sum"), (count, "count")])
    if not promise.kept_by_records(groups[f"{count}_sum"].to_numpy(), groups[f"{count}_count"].to_numpy()):
        raise ReleaseError("the published records must be as promised, and are not", AGAIN)


def _codes(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([chunk.indices for chunk in names.chunks], pa.int32())


KNOWN = {"published", "open", "settled by hand"}
"""How a publication may have ended whose release exists; one that died when all was written is open, then settled."""


def refuse_unknown(manifest: Manifest, place: Path, book: Ledger) -> str:
    """Refuse a release that the account does not know as it is; else say how it knows it."""
    statement = book.statement()
    named = read_json(read_text(place / SCHEMA_FILE)).get("name", "table")
    if named != statement.name:
        raise ReleaseError(f"the ledger must be that of table {named}, and is that of {statement.name}", AGAIN)
    found = [one for one in statement.publications if one.id == manifest.publication]
    if not found:
        seeded = "" if manifest.secure else " (a release made with a known seed never is)"
        raise ReleaseError(
            f"publication {manifest.publication[:60]} must be in the ledger, and is not{seeded}: the release is "
            "another account's, or the ledger is older than it",
            AGAIN,
        )
    (publication,) = found
    _refuse_other_terms(manifest, publication)
    ended = publication.outcome
    if publication.digest is None:
        return f"its account knows it, with the same lines ({ended}); the manifest's digest was not noted there"
    return f"its account knows it, with the same lines and the same digest ({ended})"


def _refuse_other_terms(manifest: Manifest, publication: Publication) -> None:
    lines = manifest.debits if manifest.promise is None else manifest.looks
    if publication.outcome not in KNOWN:
        raise ReleaseError(f"the ledger must not have noted the publication as {publication.outcome}", AGAIN)
    if publication.method != manifest.method:
        raise ReleaseError(f"the method ({manifest.method[:40]}) must be the ledger's, {publication.method}", AGAIN)
    if publication.debits != lines:
        raise ReleaseError(
            f"the manifest's lines (epsilon {manifest.epsilon}) must be those that the account was charged "
            f"(epsilon {publication.paid})",
            AGAIN,
        )
    if publication.unit.partition(" ")[0] != manifest.unit:
        raise ReleaseError(f"the unit ({manifest.unit}) must be the ledger's, {publication.unit[:60]}", AGAIN)
    if publication.digest not in (None, manifest.digest):
        raise ReleaseError("the manifest must be the one whose digest the account has noted, and is another", AGAIN)


UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
    pa.ArrowException,
)
"""What reading something else than was expected raises."""
MANY = 20
"""More files than this are not listed one by one."""
UNSIGNED = "who made it: digests are no signature, and whoever rewrites a release can rewrite them"
SIGNED = "who made it: it is signed, and --signers tells whether by someone whom you trust"
SHUT = "not looked into, because it is not as it was published"


@dataclass(frozen=True)
class Check:
    """One claim about a release and what became of it."""

    about: str
    passed: bool | None
    """None if it could not be checked"""
    says: str

    @property
    def outcome(self) -> str:
        """Say in a word what became of it."""
        return {True: "passed", False: "failed", None: "not checked"}[self.passed]


@dataclass(frozen=True)
class Verification:
    """Everything that was checked of a release, and what was not."""

    release: str
    checks: tuple[Check, ...]

    @property
    def verified(self) -> bool:
        """Whether nothing that was checked is wrong."""
        return all(check.passed is not False for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """What is wrong."""
        return tuple(check for check in self.checks if check.passed is False)


def verify(
    folder: str | Path,
    ledger: str | Path | None = None,
    *,
    signers: str | Path | None = None,
    allow_seeded: bool = False,
) -> Verification:
    """Check a release's folder; that its account knows it, if the ledger is given; that one of the signers signed it.

    A release that was made with a known seed fails, because it protects nobody, unless that is allowed.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ReleaseError(f"{str(place)[:200]} must be a release folder", "Name the folder that publish wrote.")
    book = None if ledger is None else Ledger.open(ledger)
    plain = _plain(place)
    checks = [
        _checked("manifest", lambda: _sealed(place)),
        _checked("sum", lambda: _summed(plain)),
        *_files(place, plain),
    ]
    checks += _inside(place, whole=all(check.passed for check in checks))
    checks += [_randomness(plain, allow_seeded), _account(place, book), _author(place, signers)]
    return Verification(str(folder), tuple(checks))


def _checked(about: str, action: Callable[[], str]) -> Check:
    """Look at one thing; a refusal is a failure, and so is what cannot even be read."""
    try:
        return Check(about, True, action())
    except SfumatoError as error:
        return Check(about, False, error.problem)
    except UNREADABLE:
        return Check(about, False, f"{about} must be readable, and is not")


def _plain(place: Path) -> Any:
    """Read the manifest as it stands, believing nothing."""
    try:
        return json.loads(read_text(place / MANIFEST_FILE))
    except (OSError, ValueError, RecursionError):
        return None


def _sealed(place: Path) -> str:
    if not (place / MANIFEST_FILE).is_file():
        raise ReleaseError(f"{MANIFEST_FILE} must be in the folder", AGAIN)
    Manifest.loads(read_text(place / MANIFEST_FILE))
    return f"{MANIFEST_FILE} is as it was sealed, and says in words what it says in numbers"


def _summed(plain: Any) -> str:
    """Add up the debits as they are written, without the code that wrote the sum."""
    lines = plain["ledger"]
    if "promise" in plain:
        if not lines or any("epsilon" in line for line in lines):
            raise ReleaseError("a release without epsilon must list what was looked at, and no price", AGAIN)
        return f"its ledger names {_many(lines, 'look')} without epsilon, and it claims none"
    parts = [read_fraction(line["epsilon"]) for line in lines]
    known = [part for part in parts if part is not None and part >= 0]
    if len(known) < len(parts) or not can_be_summed(known):
        raise ReleaseError("the epsilons of the manifest must be fractions, none of them negative", AGAIN)
    total, claim = str(sum(known, Fraction(0))), str(plain["epsilon"])
    if total != claim:
        raise ReleaseError(f"the ledger's lines (sum {total}) must sum to the claimed epsilon, {_short(claim)}", AGAIN)
    return f"its ledger's {_many(lines, 'line')} sum to the epsilon that it claims, exactly {claim}"


def _many(things: Any, name: str) -> str:
    return f"{len(things):,} {name}{'' if len(things) == 1 else 's'}"


def _files(place: Path, plain: Any) -> Iterator[Check]:
    """Hold every file in the folder against the manifest, and every file of the manifest against the folder."""
    sealed = plain.get("files") if isinstance(plain, dict) else None
    sealed = sealed if isinstance(sealed, dict) else {}
    wrong = []
    for name, digest in sealed.items():
        path = place / Path(str(name)).name
        if path.name != name or path.is_symlink() or not path.is_file():
            wrong.append(f"{_short(name)} must be a file in the folder, and is missing")
        elif sha256(path) != digest:
            wrong.append(f"{_short(name)} must be as it was published, and was changed")
    known = {*sealed, MANIFEST_FILE, SIGNATURE_FILE}
    strangers = sorted(path.name for path in place.iterdir() if path.name not in known)
    wrong += [f"{_short(name)} must not be in the folder: the manifest does not know it" for name in strangers]
    if (place / MANIFEST_FILE).is_symlink():
        wrong.append(f"{MANIFEST_FILE} must be a file in the folder, and is a link")
    if not wrong:
        yield Check("files", True, f"its {_many(sealed, 'file')} are as they were published, and there are no others")
    yield from (Check("files", False, one) for one in wrong[:MANY])
    if len(wrong) > MANY:
        yield Check("files", False, f"{len(wrong) - MANY:,} more files must be as the manifest says")


def _short(name: str) -> str:
    """Write a name that anyone may have chosen."""
    return str(name)[:80].encode("ascii", "backslashreplace").decode() if str(name).isprintable() else repr(name)[:80]


def _inside(place: Path, *, whole: bool) -> Iterator[Check]:
    """Look at what the files say, if they are those that were published."""
    abouts = ("contents", "records", "explanations", "promise")
    if not whole:
        yield from (Check(about, None, SHUT) for about in abouts)
        return
    opened: list[Release] = []

    def load() -> str:
        opened.append(Release.load(place))
        return "schema, structure and measurements fit together"

    yield _checked("contents", load)
    for release in opened:
        yield _checked("records", partial(_derived, place, release))
        yield _explained(place, release)
        yield _checked("promise", partial(_kept, place, release))
    if not opened:
        yield from (Check(about, None, SHUT) for about in abouts[1:])


def _derived(place: Path, release: Release) -> str:
    refuse_other_records(place, release)
    return "the records follow from the counts and the schema"


def _explained(place: Path, release: Release) -> Check:
    """Write the texts that explain a release again, and hold them against those in the folder."""
    files = release.manifest.files
    told = [name for name in EXPLAINING if name in files]
    if not told:
        return Check("explanations", None, "there are none: it was made by an older version")
    return _checked("explanations", partial(_follow, place, release))


def _follow(place: Path, release: Release) -> str:
    files = release.manifest.files
    digests = {name: digest for name, digest in files.items() if name not in EXPLAINING}
    for name, text in release.explained(digests).items():
        if name not in files or not _same_text(read_text(place / name), text):
            raise ReleaseError(f"{name} must follow from the release, and does not", AGAIN)
    people = [name for name in SYNTHETIC.values() if name in files]
    again = [name for name in people if _drawn_again(place / name, release)]
    told = "; the synthetic people are those that anyone draws from it" if again else ""
    if people and not again:
        told = "; its synthetic people are not those that are drawn here: another version may have drawn them"
    return f"README, dictionary and metadata follow from the release{told}"


def _same_text(shown: str, made: str) -> bool:
    """Compare texts exactly, but for the numbers of the section about errors, which are rounded estimates."""
    ours, theirs = made.partition(WORTH), shown.partition(WORTH)
    if (ours[0], ours[1]) != (theirs[0], theirs[1]):
        return False
    (mine, _, rest), (other, _, remains) = (text[2].partition("\n## ") for text in (ours, theirs))
    if rest != remains or NUMBER.sub("#", mine) != NUMBER.sub("#", other):
        return False
    numbers = [[float(one) for one in NUMBER.findall(text)] for text in (mine, other)]
    return all(abs(a - b) <= NEARLY * max(a, b) for a, b in zip(*numbers, strict=True))


def _drawn_again(path: Path, release: Release) -> bool:
    """Whether the same people are drawn again from the release."""
    written = pa.BufferOutputStream()
    write_people(written, release.people(), path.suffix)
    return sha256(path) == hashlib.sha256(written.getvalue()).hexdigest()


def _kept(place: Path, release: Release) -> str:
    """Hold the noise of the counts against the epsilon, or the groups against the promise."""
    manifest = release.manifest
    if manifest.promise is not None:
        refuse_small_groups(place, release)
        return f"every published group keeps the promised {manifest.promise.model}"
    records = manifest.rows_per_person or 1
    paid = most_paid(release.draft, records)
    if paid > manifest.epsilon:
        raise ReleaseError(
            f"what the counts cost by their noise ({paid}) must be at most the claimed epsilon, {manifest.epsilon}",
            AGAIN,
        )
    if not each_is_paid(release.draft, manifest.debits, records):
        raise ReleaseError("every measurement must have a line of its own name that pays for its noise", AGAIN)
    return f"by their noise, its counts cost {float(paid):.4g} at most of its epsilon {manifest.epsilon}"


def _randomness(plain: Any, allow_seeded: bool) -> Check:
    """Where the noise, or the sample, came from, as the manifest has it."""
    told = plain.get("randomness", SECURE) if isinstance(plain, dict) else None
    if told == SECURE:
        return Check("randomness", True, "it says that its randomness came from the operating system")
    allowed = ", which was allowed" if allow_seeded else ""
    return Check("randomness", allow_seeded, f"it was made with a known seed and carries NO GUARANTEE{allowed}")


def _author(place: Path, signers: str | Path | None) -> Check:
    """Who made it, if that can be told."""
    if signers is not None:
        return _checked("author", lambda: f"signed by {_short(signer_of(place, signers))}, one of the allowed signers")
    return Check("author", None, SIGNED if is_signed(place) else UNSIGNED)


def _account(place: Path, book: Ledger | None) -> Check:
    if book is None:
        return Check("account", None, "whether the table's account knows it: give the ledger")
    return _checked("account", lambda: refuse_unknown(Manifest.loads(read_text(place / MANIFEST_FILE)), place, book))
