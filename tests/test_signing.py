"""Signatures in OpenSSH's format: who made a release can be told without its ledger."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import sfumato
from command_line import SCHEMA, done, people, refused, run
from sfumato import Account, DiffGen, Release, Schema
from sfumato.errors import ReleaseError
from sfumato.release import signing

needs_openssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
pytestmark = needs_openssh
KEYGEN = shutil.which("ssh-keygen") or "ssh-keygen"


def new_key(path: Path) -> Path:
    subprocess.run([KEYGEN, "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True)
    return path


def allowed(path: Path, **keys: Path) -> Path:
    """Write a file of allowed signers."""
    lines = [f"{name}@example.org {key.with_suffix('.pub').read_text()}" for name, key in keys.items()]
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    Account(folder / "people.ledger", Schema.loads(SCHEMA)).publish(
        people(), DiffGen(specializations=2), 1, out=folder / "release"
    )
    new_key(folder / "office")
    new_key(folder / "stranger")
    return folder


@pytest.fixture
def here(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path in published.iterdir():
        shutil.copytree(path, tmp_path / path.name) if path.is_dir() else shutil.copy(path, tmp_path / path.name)
    allowed(tmp_path / "signers", office=tmp_path / "office")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def author(folder: Path) -> sfumato.Verification:
    return sfumato.verify(folder / "release", signers=folder / "signers")


def test_a_signed_release_names_its_signer(here: Path) -> None:
    assert "manifest.json.sig" in done("sign", "release", "--key", "office")
    told = done("verify", "release", "--signers", "signers")
    assert "ok           author: signed by office@example.org" in told
    assert "--signers" in done("verify", "release")
    assert Release.load(here / "release").manifest.secure, "a signature does not keep a release from being read"


def test_openssh_itself_agrees(here: Path) -> None:
    sfumato.sign("release", "office")
    check = [KEYGEN, "-Y", "verify", "-f", "signers", "-I", "office@example.org", "-n", "sfumato", "-s"]
    with (here / "release" / "manifest.json").open("rb") as manifest:
        subprocess.run([*check, "release/manifest.json.sig"], stdin=manifest, check=True, capture_output=True)


def forged_counts(release: Release) -> Release:
    """Give a release whose last measurement has a thousand people more, as if they had been measured."""
    *others, last = release.draft.measurements
    more = replace(last, noisy=replace(last.noisy, counts=last.counts + 1000))
    return replace(release, draft=replace(release.draft, measurements=(*others, more)))


def test_forged_counts_that_are_resealed_are_caught_without_a_ledger(here: Path) -> None:
    sfumato.sign("release", "office")
    forged = here / "forged"
    forged_counts(Release.load("release")).save(forged)
    shutil.copy("release/manifest.json.sig", forged)
    alone = sfumato.verify(forged)
    assert alone.verified, "without signers and ledger nobody can tell"
    found = sfumato.verify(forged, signers=here / "signers")
    assert [one.about for one in found.failures] == ["author"]
    assert run("verify", forged, "--signers", "signers").exit_code == 2


def test_a_stranger_and_an_unsigned_release_are_refused(here: Path) -> None:
    assert [one.about for one in author(here).failures] == ["author"]
    sfumato.sign("release", "stranger")
    assert [one.about for one in author(here).failures] == ["author"]
    allowed(here / "signers", office=here / "office", stranger=here / "stranger")
    assert author(here).verified


def test_a_signature_for_something_else_is_none(here: Path) -> None:
    subprocess.run([KEYGEN, "-q", "-Y", "sign", "-f", "office", "-n", "git", "release/manifest.json"], check=True)
    assert [one.about for one in author(here).failures] == ["author"]


@pytest.mark.parametrize("what", ["", "not a signature", "-----BEGIN SSH SIGNATURE-----\nAAAA\n"])
def test_what_is_no_signature_is_refused(here: Path, what: str) -> None:
    (here / "release" / "manifest.json.sig").write_text(what)
    assert [one.about for one in author(here).failures] == ["author"]


def test_refusals_say_what_to_do(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ssh-keygen -t ed25519" in refused("sign", "release", "--key", "nothing")
    assert "release folder" in refused("sign", "nothing", "--key", "office")
    assert "private key" in refused("sign", "release", "--key", "people.ledger")
    assert "allowed signers" in str(author_of_nobody(here).failures)
    (here / "release" / "manifest.json").write_text("{}")
    assert "manifest" in refused("sign", "release", "--key", "office")
    monkeypatch.setattr(signing, "TOOL", "no-such-tool")
    with pytest.raises(ReleaseError, match="installed"):
        signing._run(["sign"])


def author_of_nobody(folder: Path) -> sfumato.Verification:
    return sfumato.verify(folder / "release", signers=folder / "nowhere")


def test_a_release_is_signed_once(here: Path) -> None:
    sfumato.sign("release", "office")
    assert "must not exist yet" in refused("sign", here / "release", "--key", "office")


def test_names_are_words_and_no_shell_reads_them(here: Path) -> None:
    odd = here / "a; touch stolen; b"
    shutil.copytree("release", odd)
    sfumato.sign(odd, "office")
    assert not (here / "stolen").exists()
