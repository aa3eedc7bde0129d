"""A release held against its account: the ledger must know the publication, by id, method, lines and digest.

A release that the ledger does not know was made by somebody else, or the ledger is an older copy or another table's;
which of these it is nobody can tell from here.
"""

from __future__ import annotations

import json
from pathlib import Path

from sfumato.errors import ReleaseError
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.statement import Publication
from sfumato.release.folder import read_text
from sfumato.release.manifest import AGAIN, Manifest

KNOWN = {"published", "open", "settled by hand"}
"""How a publication may have ended whose release exists; one that died when all was written is open, then settled."""


def refuse_unknown(manifest: Manifest, place: Path, book: Ledger) -> str:
    """Refuse a release that the account does not know as it is; else say how it knows it."""
    statement = book.statement()
    named = json.loads(read_text(place / "schema.json")).get("name", "table")
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
    if publication.digest not in (None, manifest.digest):
        raise ReleaseError("the manifest must be the one whose digest the account has noted, and is another", AGAIN)
