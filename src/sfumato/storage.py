"""Write folders and files that appear whole or not at all.

A release is written into a hidden folder beside its destination and renamed there when it is complete and on disk.
The space it will need is set aside first, so that a full disk is noticed before any budget is spent.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import ReleaseError

RESERVE = ".reserved"
"""The file that holds the space set aside."""


@contextmanager
def staged_folder(destination: str | Path, size: int) -> Iterator[Path]:
    """Open a folder to write into, with `size` bytes set aside; it becomes the destination if the block succeeds.

    Otherwise no trace is left, neither of it nor of the folders above it that had to be made.
    """
    target = Path(destination)
    staging = target.parent / f".{uuid.uuid4().hex[:12]}.partial"
    made: list[Path] = []
    try:
        with _explained(target):
            _refuse_existing(target)
            made = [folder for folder in target.parents if not folder.exists()]
            target.parent.mkdir(parents=True, exist_ok=True)
            staging.mkdir()
            _set_aside(staging / RESERVE, size)
        yield staging
        with _explained(target):
            give_room(staging)
            _sync(staging)
            _refuse_existing(target)
            staging.rename(target)
            try:
                _sync_folder(target.parent)
            except OSError:
                target.rename(staging)
                raise
            made = []
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


def give_room(staging: Path) -> None:
    """Free the space that was set aside, right before it is filled."""
    (staging / RESERVE).unlink(missing_ok=True)


@contextmanager
def staged_file(destination: str | Path) -> Iterator[Path]:
    """Name a file to write; it becomes the destination if the block succeeds. Existing files are refused."""
    target = Path(destination)
    staging = target.parent / f".{uuid.uuid4().hex[:12]}.partial{target.suffix}"
    try:
        with _explained(target):
            _refuse_existing(target)
            yield staging
            with staging.open("rb") as written:
                os.fsync(written.fileno())
            _refuse_existing(target)
            staging.rename(target)
    finally:
        with suppress(OSError):
            staging.unlink(missing_ok=True)


@contextmanager
def replaced_file(destination: str | Path) -> Iterator[Path]:
    """Name a file to write; it replaces the destination if the block succeeds."""
    target = Path(destination)
    staging = target.parent / f".{uuid.uuid4().hex[:12]}.partial{target.suffix}"
    try:
        yield staging
        with _explained(target):
            staging.replace(target)
    finally:
        with suppress(OSError):
            staging.unlink(missing_ok=True)


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Replace an error of the system by one sentence on why a place cannot be written."""
    try:
        yield
    except OSError as error:
        raise ReleaseError(
            f"{str(target)[:200]} must be writable ({reason_of(error)})", "Make room or choose another place."
        ) from None


def reason_of(error: Exception) -> str:
    """The system's reason for an error, without its details."""
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if number else "the system refuses"


def refuse_no_folder(out: Path) -> None:
    """Refuse a place for many files that exists and is no folder."""
    if out.exists() and not out.is_dir():
        raise ReleaseError(f"out ({str(out)[:200]}) must be a folder", "Name another place.")


def refuse_special(path: Path) -> None:
    """Refuse to open what is not a regular file: a device or a pipe could be read for ever."""
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def sha256(path: Path) -> str:
    """The SHA-256 digest of a file."""
    refuse_special(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_existing(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise ReleaseError(
            f"{target} must not exist yet", "Choose another name or move it away; nothing is overwritten."
        )


def _set_aside(path: Path, size: int) -> None:
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)


def _sync(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
