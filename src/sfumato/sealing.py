"""From a draft to a release: the certificate is written from the ledger's lines, and drafts that belie it are refused.

Apart from the account because here the order no longer matters: everything was looked at, and nothing can be spent.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from sfumato.errors import PrivacyError
from sfumato.methods.base import Draft, Method
from sfumato.privacy.budget import Debit, NonPrivate
from sfumato.promises import Promise
from sfumato.release.manifest import Manifest
from sfumato.release.release import Release
from sfumato.schema import Schema
from sfumato.syntactic.base import OpenDraft, SyntacticMethod

MISTAKE = "Nothing was released. Report this: it is a mistake of the method."


def certificate(
    method: Method | SyntacticMethod, publication: str, schema: Schema, steps: tuple[str, ...], *, secure: bool
) -> Manifest:
    """Say what was published and how; what it cost, or what is promised instead, is still to be filled in."""
    return Manifest(
        version=version("sfumato"),
        publication=publication,
        method=method.name,
        parameters=method.parameters,
        debits=(),
        secure=secure,
        schema_digest=schema.digest,
        steps=steps,
    )


def sealed(draft: Draft, schema: Schema, blank: Manifest, debits: tuple[Debit, ...]) -> Release:
    """Make a release with an epsilon; refuse counts that have no noise, whatever was paid for them."""
    bought = [draft.counts, *(one.noisy for one in draft.earlier if len(one.nodes))]
    bought += [] if draft.histogram is None else [draft.histogram]
    if any(noisy.is_exact for noisy in bought):
        raise PrivacyError("counts published with an epsilon must have noise, and some have none", MISTAKE)
    return Release(
        schema,
        draft.partition,
        draft.counts,
        draft.margins,
        replace(blank, debits=debits),
        draft.earlier,
        draft.consistency,
        draft.histogram,
    )


def sealed_openly(
    draft: OpenDraft, schema: Schema, blank: Manifest, promise: Promise, looks: tuple[NonPrivate, ...]
) -> Release:
    """Make a release without epsilon; refuse groups that break its promise, and counts that nobody noted."""
    if not draft.counts.is_exact or not promise.kept(draft.partition, draft.counts.counts):
        raise PrivacyError(f"every group must have the promised {promise.model}, and one has not", MISTAKE)
    if not looks:
        raise PrivacyError("a method without epsilon must have looked at the table through its exact counts", MISTAKE)
    manifest = replace(blank, promise=promise, looks=looks)
    return Release(schema, draft.partition, draft.counts, {}, manifest, notes=draft.notes)
