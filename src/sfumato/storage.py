"""Write folders and files that appear whole or not at all, and folders for rows beyond memory.

A release is written into a hidden folder beside its destination and renamed there when it is complete and on disk.
The space it will need is set aside first, so that a full disk is noticed before any budget is spent.

A private folder is for what must not stay: only its owner may enter, and it goes when the work is done. What a process
that was killed left behind goes with the next one: whoever holds the lock beside a folder is alive; a lock that can be
had belongs to nobody.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import ReleaseError, TableError

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
            refuse_existing(target)
            made = [folder for folder in target.parents if not folder.exists()]
            target.parent.mkdir(parents=True, exist_ok=True)
            staging.mkdir()
            _set_aside(staging / RESERVE, size)
        yield staging
        with _explained(target):
            give_room(staging)
            _sync(staging)
            refuse_existing(target)
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
            refuse_existing(target)
            yield staging
            _sync_file(staging)
            refuse_existing(target)
            staging.rename(target)
            _sync_folder(target.parent)
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
            _sync_file(staging)
            staging.replace(target)
            _sync_folder(target.parent)
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


def refuse_existing(target: Path) -> None:
    """Refuse to write over something."""
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
        _sync_file(path)
    _sync_folder(folder)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


PREFIX = ".sfumato-rows-"
LOCK = ".lock"


@contextmanager
def private_folder(beside: Path) -> Iterator[Path]:
    """Give a folder that nobody else may enter; first remove those that dead processes left here.

    A place that had to be made for it goes with it.
    """
    try:
        made = [folder for folder in (beside, *beside.parents) if not folder.exists()]
        beside.mkdir(parents=True, exist_ok=True)
        sweep(beside)
        lock, home = _claimed(beside)
    except (OSError, ValueError) as error:
        raise TableError(
            f"folder {str(beside)[:200]} must be writable ({reason_of(error)}): rows beyond memory go there",
            "Make room or choose another folder.",
        ) from None
    try:
        yield home
    finally:
        _remove(home)
        os.close(lock)
        with suppress(OSError):
            for folder in made:
                folder.rmdir()


def sweep(beside: Path) -> None:
    """Remove the folders whose process is gone; what others have put into a folder that all may write to is theirs."""
    for path in beside.glob(f"{PREFIX}*{LOCK}"):
        with suppress(OSError):
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid != os.geteuid():
                    continue
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path.with_suffix(""))
            finally:
                os.close(lock)


def _claimed(beside: Path) -> tuple[int, Path]:
    """Make a lock and hold it, then the folder: in the moment between making and holding, another may sweep it."""
    while True:
        home = beside / f"{PREFIX}{uuid.uuid4().hex[:12]}"
        lock = os.open(_lock_of(home), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(_lock_of(home)).st_ino == os.fstat(lock).st_ino:
                home.mkdir(mode=0o700)
                return lock, home
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            _remove(home)
            os.close(lock)
            raise
        os.close(lock)


def _remove(home: Path) -> None:
    """Remove a folder and then its lock; what cannot be removed stays locked for the next one to sweep."""
    shutil.rmtree(home, ignore_errors=True)
    if not home.exists():
        with suppress(OSError):
            _lock_of(home).unlink(missing_ok=True)


def _lock_of(home: Path) -> Path:
    return home.with_name(home.name + LOCK)
