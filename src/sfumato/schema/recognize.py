"""What the name of a column and the look of its values tell: who is named, what is free text, which order values have.

All of it is common knowledge (words of several languages, shapes of addresses), so what is recognized is the same for
every table; nothing here counts rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal

from sfumato.schema.formats import MONTHS

_PEOPLE = "patient|person|people|subject|user|customer|client|employee|member|student|household|respondent|participant"
_NAMING = re.compile(
    rf"(^|[^a-z])(({_PEOPLE})[_ .-]?(id|no|nr|num|number|key|code)s?|uuid|guid|ssn|nin|mrn|tax_?id|svnr|"
    "(sur|last|first|full|middle|maiden|given|family|user|nick|screen)_?name|nachname|vorname|prenom|prénom|apellidos?|"
    "cognome|passport|iban|signature|login)([^a-z]|$)|"
    rf"^({_PEOPLE}|names?|nom|nombre|first|last|e-?mails?|(phone|telephone|mobile|telefon|fax)([_ ]?(no|nr|number))?|"
    "address|adresse|street|strasse|straße|rue)$"
)
_NUMBERING = re.compile(
    r"(^|[^a-z])(ids?|no|nr|key|index|serial|row|unnamed|names?|e-?mails?|phone|telefon|address|adresse|street|url|ip|"
    r"plate)([^a-z]|$)|name$|number$|code$"
)
_TEXTS = re.compile(r"(^|[^a-z])(text|note|notes|comment|comments|remark|remarks|description|memo|bemerkung)([^a-z]|$)")
_QUANTITIES = re.compile(
    "income|salary|wage|amount|price|cost|charge|fee|balance|weight|height|size|value|score|total|sum|revenue|distance|"
    "duration|volume|area|rate|gain|loss|earning|betrag|preis|einkommen|montant|revenu|population|fnlwgt"
)
SHAPES = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}"),
    "web addresses": re.compile(r"(https?://|www\.)\S+"),
    "phone numbers": re.compile(r"(\+|00)[0-9][0-9 ()/.-]{6,18}|\(?[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}"),
    "social security numbers": re.compile(r"[0-9]{3}-[0-9]{2}-[0-9]{4}"),
    "bank accounts": re.compile(r"[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){2,7}( ?[A-Z0-9]{1,3})?"),
    "network addresses": re.compile(r"([0-9]{1,3}\.){3}[0-9]{1,3}|([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}"),
    "random numbers of records": re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
}
"""What betrays a person by its shape alone."""
ABSENT_WORDS = (
    "",
    "?",
    "NA",
    "NaN",
    "null",
    "N/A",
    "n/a",
    "#N/A",
    "NULL",
    "None",
    "none",
    "nan",
    "-",
    "--",
    ".",
    "missing",
    "Missing",
    "unknown",
    "Unknown",
    "UNKNOWN",
    "not available",
    "k.A.",
    "k. A.",
    "unbekannt",
    "inconnu",
    "NR",
    "n.d.",
)
"""What means "no value" in tables of numbers and dates."""
_SCALES = tuple(
    tuple(scale.split(", "))
    for scale in (
        "strongly disagree, disagree, somewhat disagree, neither agree nor disagree, neutral, "
        "undecided, somewhat agree, agree, strongly agree",
        "never, almost never, rarely, seldom, sometimes, occasionally, often, frequently, usually, "
        "almost always, always",
        "very dissatisfied, dissatisfied, somewhat dissatisfied, neither, neutral, somewhat satisfied, "
        "satisfied, very satisfied",
        "very poor, very bad, poor, bad, fair, moderate, average, good, very good, excellent",
        "none, very low, low, lower, mild, medium, moderate, middle, normal, high, higher, severe, very high, extreme",
        "xs, small, s, m, medium, l, large, xl, extra large, xxl",
        "not at all, a little, slightly, somewhat, moderately, quite a bit, very much, very, extremely",
        "stimme gar nicht zu, stimme nicht zu, stimme eher nicht zu, teils/teils, weder noch, "
        "stimme eher zu, stimme zu, stimme voll zu, stimme voll und ganz zu",
        "nie, fast nie, selten, manchmal, gelegentlich, oft, häufig, meistens, fast immer, immer",
        "sehr schlecht, schlecht, ausreichend, mittel, befriedigend, gut, sehr gut",
        "niedrig, gering, mittel, hoch, sehr hoch",
        "pas du tout d'accord, pas d'accord, plutôt pas d'accord, ni d'accord ni pas d'accord, "
        "plutôt d'accord, d'accord, tout à fait d'accord",
        "jamais, rarement, parfois, souvent, toujours",
        "nunca, casi nunca, rara vez, a veces, a menudo, casi siempre, siempre",
        "muy en desacuerdo, en desacuerdo, neutral, de acuerdo, muy de acuerdo",
    )
)
_WEEK = (
    ("monday", "mon", "montag", "mo", "lundi", "lun", "lunes", "lunedì"),
    ("tuesday", "tue", "tues", "dienstag", "di", "mardi", "mar", "martes", "martedì"),
    ("wednesday", "wed", "mittwoch", "mi", "mercredi", "mer", "miércoles", "mercoledì"),
    ("thursday", "thu", "thur", "thurs", "donnerstag", "do", "jeudi", "jeu", "jueves", "giovedì"),
    ("friday", "fri", "freitag", "fr", "vendredi", "ven", "viernes", "venerdì"),
    ("saturday", "sat", "samstag", "sonnabend", "sa", "samedi", "sam", "sábado", "sabato"),
    ("sunday", "sun", "sonntag", "so", "dimanche", "dim", "domingo", "domenica"),
)
_TRUTH = (
    ("no", "n", "false", "f", "nein", "falsch", "non", "faux", "não", "nao", "nee", "off", "0", "absent", "negative"),
    ("yes", "y", "true", "t", "ja", "j", "wahr", "oui", "vrai", "sí", "si", "sim", "on", "1", "present", "positive"),
)
_FIRST = re.compile(
    r"^(<=?|≤|under|below|less|fewer|up to|until|at most|younger|unter|bis|moins|menos)(?![a-z])", re.IGNORECASE
)
_LAST = re.compile(
    r"^(>=?|≥|over|above|more|greater|at least|from|older|ab|über|mehr|plus|más)(?![a-z])|"
    r"(\+|(and|or) (over|more|older|above)|und (mehr|älter)|et plus|y más)$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[0-9]+(?:[,' ][0-9]{3})*(?:\.[0-9]+)?")
_RANGE = re.compile(
    r"[\[(]?\s*[^0-9\sA-Za-z]{0,3}[0-9][^a-zA-Z]*([a-zA-Z ]{0,12}[0-9][^a-zA-Z]*)?[a-zA-Z ]{0,12}[\])]?"
)


def names_people(column: str) -> bool:
    """Whether a column is called like one that names people, whatever its values are.

    >>> [names_people(one) for one in ("patient_id", "Last Name", "e-mail", "width", "name_of_drug")]
    [True, True, True, False, False]
    """
    return _NAMING.search(_snake(column)) is not None


def numbers_records(column: str) -> bool:
    """Whether a column is called like one that may number or name records: an identifier if its values say so, too."""
    return _NUMBERING.search(_snake(column)) is not None


def is_text(column: str) -> bool:
    """Whether a column is called like one of free text."""
    return _TEXTS.search(_snake(column)) is not None


def is_quantity(column: str) -> bool:
    """Whether a column is called like an amount, of which nearly all values may differ."""
    return _QUANTITIES.search(_snake(column)) is not None


def _snake(column: str) -> str:
    """The name of a column in small letters: patientId is patient_id."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.strip().replace(" ", "_")).lower()


def ordered(names: Sequence[str]) -> tuple[list[str], str]:
    """Names in the order that they have by what they mean, and which order it is; else in that of the alphabet.

    >>> ordered(["65+", "18-24", "<18", "25-64"])
    (['<18', '18-24', '25-64', '65+'], 'ranges in order')
    >>> ordered(["High", "Low", "Medium"])[0], ordered(["10", "9", "2"])[0], ordered(["b", "a"])
    (['Low', 'Medium', 'High'], ['2', '9', '10'], (['a', 'b'], 'categories'))
    """
    if all(_is_number(name) for name in names):
        return sorted(names, key=lambda name: (Decimal(name), name)), "few different numbers, in order"
    folded = {name: name.casefold().rstrip(".") for name in names}
    for title, lists in (("months in order", MONTHS), ("days of the week in order", _WEEK), ("yes or no", _TRUTH)):
        places = {word: place for place, words in enumerate(lists) for word in words}
        if all(word in places for word in folded.values()) and (len(names) > 1 or title == "yes or no"):
            return sorted(names, key=lambda name: (places[folded[name]], name)), title
    for scale in _SCALES:
        if len(names) > 1 and all(word in scale for word in folded.values()):
            return sorted(names, key=lambda name: (scale.index(folded[name]), name)), "a scale in order"
    ranges = {name: span for name in names if (span := _span(name)) is not None}
    if len(ranges) > 1 and len(ranges) >= max(2, math.ceil(0.7 * len(names))):
        return sorted(names, key=lambda name: (name not in ranges, ranges.get(name, (0, 0)), name)), "ranges in order"
    return sorted(names), "categories"


def _is_number(text: str) -> bool:
    return len(text) < 30 and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", text) is not None


def _span(text: str) -> tuple[float, float] | None:
    """The ends of a range such as `[10-20)`, `18 to 24`, `5+` or `under 18`; None for what is none."""
    text = text.strip()
    numbers = [float(re.sub("[,' ]", "", one)) for one in _NUMBER.findall(text)]
    if not 1 <= len(numbers) <= 2:
        return None
    if _FIRST.search(text):
        return -math.inf, numbers[-1]
    if _LAST.search(text):
        return numbers[0], math.inf
    if not _RANGE.fullmatch(text):
        return None
    return numbers[0], numbers[-1]
