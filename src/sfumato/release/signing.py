"""Signatures: who made a release, by keys that people have, in OpenSSH's format.

A signature is over `manifest.json`, which has the digests of all other files, and lies beside it. It is made and
checked by `ssh-keygen -Y`, OpenSSH's own tool: so keys in agents, behind passphrases and on hardware work, and so do
files of allowed signers with their dates and authorities, and anyone can check a signature without Sfumato. Its
namespace is `sfumato`: a signature for something else (a commit, an e-mail) is none for a release.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import ReleaseError
from sfumato.release.folder import MANIFEST_FILE, SIGNATURE_FILE, read_text
from sfumato.release.manifest import AGAIN, Manifest
from sfumato.storage import refuse_existing, refuse_special

NAMESPACE = "sfumato"
TOOL = "ssh-keygen"
PATIENCE = 300
"""How many seconds a person may take for a passphrase or a touch of a key."""


def sign(folder: str | Path, key: str | Path) -> Path:
    """Sign a release with a private key, or a public one whose private key an agent has; return the signature's file.

    The release must be as it was published: nobody should sign what they would refuse.
    """
    place = Path(folder)
    if not (place / MANIFEST_FILE).is_file():
        raise ReleaseError(f"{str(place)[:200]} must be a release folder", "Name the folder that publish wrote.")
    if not Path(key).is_file():
        raise ReleaseError(f"key ({str(key)[:200]}) must be a file", "Make one with ssh-keygen -t ed25519.")
    Manifest.loads(read_text(place / MANIFEST_FILE))
    refuse_existing(place / SIGNATURE_FILE)
    done = _run(["sign", "-f", str(key), "-n", NAMESPACE, str(place / MANIFEST_FILE)])
    if done.returncode or not (place / SIGNATURE_FILE).is_file():
        raise ReleaseError(
            f"key ({str(key)[:200]}) must be a private key of OpenSSH that can be used, and is not",
            "Check its passphrase and that only you may read it (chmod 600).",
        )
    return place / SIGNATURE_FILE


def is_signed(folder: Path) -> bool:
    """Whether there is a signature, whoever made it."""
    return (folder / SIGNATURE_FILE).is_file()


def signer_of(folder: Path, signers: str | Path) -> str:
    """Name who of a file of allowed signers signed the manifest; refuse any other, and any other manifest."""
    signature = folder / SIGNATURE_FILE
    if not Path(signers).is_file():
        raise ReleaseError(
            f"signers ({str(signers)[:200]}) must be a file of allowed signers",
            "Write lines such as: office@example.org ssh-ed25519 AAAA...",
        )
    if not signature.is_file() or signature.is_symlink():
        raise ReleaseError("the release must be signed, and is not", AGAIN)
    refuse_special(folder / MANIFEST_FILE)
    with_signature = ["-s", str(signature), "-f", str(signers)]
    found = _run(["find-principals", *with_signature])
    names = found.stdout.decode("utf-8", "backslashreplace").splitlines() if found.returncode == 0 else []
    sealed = (folder / MANIFEST_FILE).read_bytes()
    for name in names:
        if _run(["verify", "-I", name, "-n", NAMESPACE, *with_signature], sealed).returncode == 0:
            return name
    raise ReleaseError(
        "the signature must be one of the allowed signers' and be made for this manifest, and is not", AGAIN
    )


def _run(arguments: Sequence[str], given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the tool on exactly these words: no shell reads them."""
    tool = shutil.which(TOOL)
    if tool is None:
        raise ReleaseError(f"{TOOL} must be installed: it makes and checks signatures", "Install OpenSSH.")
    try:
        return subprocess.run([tool, "-Y", *arguments], input=given, capture_output=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        raise ReleaseError(f"{TOOL} must answer, and does not", "Try it by hand.") from None
