"""What a holder says about a release: who publishes it, when, under which licence, how to cite it.

It is read from a file such as

    title: Survey of living conditions, 2025
    publisher: Office of Statistics
    licence: CC-BY-4.0
    contact: data@office.example

and stands in the manifest, which seals it. Nothing here comes from the rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from sfumato.errors import ReleaseError

LARGEST_FILE = 1 << 20
"""No such file has more bytes."""
LONGEST = 5000
"""No text has more letters."""


def _listed(value: Any) -> Any:
    return [one.strip() for one in value.split(",")] if isinstance(value, str) else value


class About(BaseModel):
    """Who publishes a release, and what users must know. Everything may be left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(default="", max_length=LONGEST)
    """What the release is called."""
    description: str = Field(default="", max_length=LONGEST)
    """What it is about, in a few sentences."""
    publisher: str = Field(default="", max_length=LONGEST)
    """Who publishes it."""
    date: str = ""
    """The day of publication, such as 2026-01-31 [default: the day on which it was made]."""
    version: str = Field(default="", max_length=100)
    """Its version, such as 1.0.0."""
    licence: str = Field(default="", max_length=LONGEST)
    """Under which terms it may be used: an SPDX identifier such as CC-BY-4.0, or an address."""
    citation: str = Field(default="", max_length=LONGEST)
    """How to cite it."""
    doi: str = Field(default="", max_length=200)
    """Its digital object identifier, such as 10.1234/abcd."""
    url: str = Field(default="", max_length=LONGEST)
    """Where it is published."""
    contact: str = Field(default="", max_length=LONGEST)
    """Whom to ask."""
    purpose: str = Field(default="", max_length=LONGEST)
    """What it is meant to be used for."""
    keywords: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Words by which it is found."""

    @field_validator("date")
    @classmethod
    def _check_date(cls, value: str) -> str:
        if value:
            datetime.date.fromisoformat(value)
        return value

    @classmethod
    def parse(cls, plain: Any) -> About:
        """Read plain values; refuse names that there are not, and what is no text."""
        try:
            return cls.model_validate(plain or {})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "about"
            known = ", ".join(cls.model_fields)
            raise ReleaseError(f"about ({place[:60]}): {first['msg'].lower()[:200]}", f"It may have {known}.") from None

    @classmethod
    def load(cls, path: str | Path) -> About:
        """Read a file."""
        from sfumato.schema.yaml import read_yaml

        try:
            if Path(path).stat().st_size > LARGEST_FILE:
                raise ReleaseError(f"about ({str(path)[:200]}) must be a short file", "Leave out what is not needed.")
            return cls.parse(read_yaml(Path(path).read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError):
            raise ReleaseError(f"about ({str(path)[:200]}) must be a readable file", "Name another file.") from None

    @classmethod
    def of(cls, given: About | Mapping[str, Any] | str | Path | None) -> About:
        """Take what is given: a file, plain values, or nothing."""
        if isinstance(given, About):
            return given
        return cls.load(given) if isinstance(given, str | Path) else cls.parse(given)

    def dated(self, day: datetime.date) -> About:
        """Add a date, if there is none."""
        return self if self.date else self.model_copy(update={"date": day.isoformat()})

    def plain(self) -> dict[str, Any]:
        """What was said, as plain values."""
        return self.model_dump(mode="json", exclude_defaults=True)
