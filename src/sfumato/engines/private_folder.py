"""A folder for rows that must not stay: only its owner may enter, it goes when the work is done, and what a process
that was killed left behind goes with the next one.

Whoever holds the lock beside a folder is alive; a lock that can be had belongs to nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import TableError
from sfumato.storage import reason_of

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
        with contextlib.suppress(OSError):
            for folder in made:
                folder.rmdir()


def sweep(beside: Path) -> None:
    """Remove the folders whose process is gone; what others have put into a folder that all may write to is theirs."""
    for path in beside.glob(f"{PREFIX}*{LOCK}"):
        with contextlib.suppress(OSError):
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
        with contextlib.suppress(OSError):
            _lock_of(home).unlink(missing_ok=True)


def _lock_of(home: Path) -> Path:
    return home.with_name(home.name + LOCK)
