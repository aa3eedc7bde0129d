r"""Codes that say where they belong by how they begin: postal codes, diagnoses, drugs, occupations, regions.

A schema gives the pattern of a code's first characters (`[A-Z][0-9][0-9]` for ICD-10), and the taxonomy follows from it
without any data: one level for each place of the pattern. A value belongs to the leaf that begins it, so a finer code
than the pattern is generalized as it is read. Blanks, points and hyphens in a code do not count, nor does case.

>>> nested_prefixes("[AB][1-2]")
[{'A': ['A1', 'A2']}, {'B': ['B1', 'B2']}]
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass

from sfumato.errors import SchemaError
from sfumato.schema.taxonomy import Nested

MOST_PREFIXES = 100_000
"""No pattern has more leaves."""
MOST_PLACES = 12
"""No pattern has more places."""
LONGEST_PATTERN = 500
"""No pattern is written with more characters."""
_PLACE = re.compile(r"\[((?:[A-Z0-9](?:-[A-Z0-9])?)+)\]|\(([A-Z0-9]+(?:\|[A-Z0-9]+)*)\)")
_UNCOUNTED = re.compile(r"[\s.\-/]")


def places_of(pattern: str) -> list[list[str]]:
    """What may stand at each place of a pattern, in order."""
    if not 0 < len(pattern) <= LONGEST_PATTERN or _PLACE.sub("", pattern):
        raise SchemaError(
            f"codes ({pattern[:40]}) must be a pattern of a code's first characters",
            "Write for example [A-Z][0-9][0-9], or (AT|DE)[0-9].",
        )
    places = [_letters(one[1]) if one[1] else one[2].split("|") for one in _PLACE.finditer(pattern)]
    leaves = math.prod(len(place) for place in places)
    if len(places) > MOST_PLACES:
        raise SchemaError(f"codes must have at most {MOST_PLACES} places, and have {len(places)}", "Use fewer places.")
    if leaves > MOST_PREFIXES:
        raise SchemaError(f"codes must have at most {MOST_PREFIXES:,} leaves, and have {leaves:,}", "Use fewer places.")
    return [list(dict.fromkeys(place)) for place in places]


def _letters(written: str) -> list[str]:
    found: list[str] = []
    for first, last in re.findall("([A-Z0-9])(?:-([A-Z0-9]))?", written):
        found += [chr(one) for one in range(ord(first), ord(last or first) + 1) if chr(one).isalnum()]
    if not found:
        raise SchemaError(f"codes ([{written[:40]}]) must have ranges that ascend", "Write for example [0-9].")
    return found


def nested_prefixes(pattern: str) -> Nested:
    """The taxonomy of a pattern: every prefix is the category of those that it begins."""

    def below(start: str, places: list[list[str]]) -> Nested:
        first, *rest = places
        return [{start + one: below(start + one, rest)} if rest else start + one for one in first]

    return below("", places_of(pattern))


class PrefixFinder:
    """Finds the number of the leaf of a pattern that begins a code."""

    def __init__(self, pattern: str) -> None:
        """List the leaves of a pattern."""
        self._leaves = {"".join(parts): number for number, parts in enumerate(itertools.product(*places_of(pattern)))}
        self._lengths = sorted({len(leaf) for leaf in self._leaves}, reverse=True)

    def find(self, code: str) -> int | None:
        """The number of the leaf, or None if none begins the code."""
        written, leaves = bare(code), self._leaves
        return next((leaves[written[:length]] for length in self._lengths if written[:length] in leaves), None)


def bare(code: str) -> str:
    """A code as it is compared: without blanks, points and hyphens, in capitals."""
    return _UNCOUNTED.sub("", code).upper()


@dataclass(frozen=True)
class CodeSystem:
    """A system of codes that is known by its shape, and by what columns of it are called."""

    title: str
    named: str
    """a pattern of the names of columns"""
    shape: str
    """a pattern of whole codes, as they are compared"""
    prefix: str
    """the pattern of the first characters that a draft proposes"""
    by_shape: bool = False
    """whether the shape alone tells it, whatever the column is called"""

    def is_named(self, column: str) -> bool:
        """Whether a column is called like one of this system."""
        return re.search(rf"(^|[^a-z])({self.named})([^a-z]|$)", column.lower()) is not None

    def holds(self, text: str) -> bool:
        """Whether a text is a code of this system."""
        return re.fullmatch(self.shape, bare(text)) is not None


_EUROPE = (
    "(AL|AT|BE|BG|CH|CY|CZ|DE|DK|EE|EL|ES|FI|FR|HR|HU|IE|IS|IT|LI|LT|LU|LV|ME|MK|MT|NL|NO|PL|PT|RO|RS|SE|SI|SK|TR|UK)"
)
SYSTEMS = (
    CodeSystem("ATC codes of drugs", "atc\\w*", "[A-V][0-9]{2}[A-Z]{2}[0-9]{2}", "[A-V][0-2][0-9]", by_shape=True),
    CodeSystem(
        "ICD-10 codes of diagnoses",
        "icd\\w*|diag\\w*|dx\\w*|cause",
        "[A-Z][0-9][0-9A-Z][0-9A-Z]{0,5}",
        "[A-Z][0-9][0-9]",
    ),
    CodeSystem("ICD-9 codes of diagnoses", "icd\\w*|diag\\w*|dx\\w*", "[0-9]{1,5}|[EV][0-9]{2,4}", "[0-9EV][0-9][0-9]"),
    CodeSystem("NUTS regions", "nuts\\w*|region\\w*", f"{_EUROPE}[0-9A-Z]{{0,3}}", f"{_EUROPE}[0-9A-Z]"),
    CodeSystem("FIPS codes of counties", "fips\\w*|county\\w*|geoid", "[0-9]{5}", "[0-9][0-9]"),
    CodeSystem("US ZIP codes", "zip\\w*", "[0-9]{5}([0-9]{4})?", "[0-9][0-9][0-9]"),
    CodeSystem(
        "postal codes",
        "plz|post(al)?_?code\\w*|postcode|cap|cp|code_?postal|codigo_?postal",
        "[0-9]{4,6}",
        "[0-9][0-9]",
    ),
    CodeSystem("UK postcodes", "post(al)?_?code\\w*|postcode", "[A-Z]{1,2}[0-9][0-9A-Z]{2,5}", "[A-Z][A-Z0-9]"),
    CodeSystem("ISCO codes of occupations", "isco\\w*|occupation\\w*|soc\\w*", "[0-9]{4,6}", "[0-9][0-9]"),
    CodeSystem(
        "NACE codes of industries",
        "nace\\w*|naics\\w*|sic\\w*|industry\\w*|branche",
        "[0-9]{2,6}",
        "[0-9][0-9]",
    ),
)
"""The systems that a draft knows, the most telling shapes first."""
