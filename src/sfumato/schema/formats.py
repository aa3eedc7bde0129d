"""How numbers, days and times are written in a table, where that is not the way of this program: `1.234,50 €`,
`31.12.1980`, `14:30`.

A schema names the form of a numeric column in its field `written`. A value is then rewritten by a rule for that value
alone into the plain form that all readers know (`1234.50`, `1980-12-31`, minutes after midnight); one that is not
written so stays as it is, and does not fit. Forms are strict: `1.5` is no number where the comma is the decimal mark,
because it may mean 15 or 1.5, and nobody should guess.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import cache

from sfumato.errors import SchemaError

POINT, COMMA, CLOCK = "1,234.5", "1.234,5", "HH:MM"
NUMBERS = {POINT: ".", COMMA: ","}
"""The forms of numbers and their decimal marks; the other mark, blanks and apostrophes may part thousands."""
DAYS = (
    "DD.MM.YYYY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "YYYY/MM/DD",
    "DD-MM-YYYY",
    "MM-DD-YYYY",
    "YYYY.MM.DD",
    "DD-MON-YYYY",
    "DD MON YYYY",
    "MON DD, YYYY",
    "DD.MM.YY",
    "DD/MM/YY",
    "MM/DD/YY",
    "YYYYMMDD",
)
"""The forms of days that a draft tries, in this order: of two that fit all values, the first is written down."""
MONTHS = (
    ("january", "jan", "januar", "jän", "jänner", "janvier", "janv", "enero", "ene", "gennaio", "gen", "januari"),
    ("february", "feb", "februar", "février", "fevrier", "févr", "febrero", "febbraio", "februari"),
    ("march", "mar", "märz", "maerz", "mär", "mrz", "mars", "marzo", "maart", "mrt"),
    ("april", "apr", "avril", "avr", "abril", "abr", "aprile"),
    ("may", "mai", "mayo", "maggio", "mag", "mei"),
    ("june", "jun", "juni", "juin", "junio", "giugno", "giu"),
    ("july", "jul", "juli", "juillet", "juil", "julio", "luglio", "lug"),
    ("august", "aug", "août", "aout", "agosto", "ago", "augustus"),
    ("september", "sep", "sept", "septembre", "septiembre", "settembre", "set"),
    ("october", "oct", "oktober", "okt", "octobre", "octubre", "ottobre", "ott"),
    ("november", "nov", "novembre", "noviembre"),
    ("december", "dec", "dezember", "dez", "décembre", "decembre", "déc", "diciembre", "dic", "dicembre"),
)
"""What months are called: English, German, French, Spanish, Italian, Dutch."""
CENTURY = 30
"""Years of two digits: up to 30 they are of this century, after it of the last."""
MONEY = r"(?:[$€£¥₹₽₩]|US\$|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|CAD|AUD|Fr\.|kr\.?|zł)"
_GAP = "[\u0020\u00a0\u202f\u2009]?"
_TOKENS = {
    "YYYY": r"(?P<year>[0-9]{4})",
    "MON": r"(?P<name>[^\W\d_]{3,12})\.?",
    "DD": r"(?P<day>[0-9]{1,2})",
    "MM": r"(?P<month>[0-9]{1,2})",
    "YY": r"(?P<short>[0-9]{2})",
}
_TIME = r"(?:[ T,]+[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?: ?[AaPp][Mm])?)?"
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::[0-5][0-9](?:[.,][0-9]+)?)?(?: ?([AaPp])\.?[Mm]\.?)?")

Rewriting = Callable[[str], str | None]
"""Gives the plain form of a text, or None if it is not written in the form."""


def refuse_unknown(form: str, *, days: bool) -> None:
    """Refuse a form that is none, or that is not one of days (or of numbers) where the attribute's bounds are."""
    if _is_form_of_days(form) is not days or not (days or form in (*NUMBERS, CLOCK)):
        known = f"{DAYS[0]} or {DAYS[2]}" if days else f"{POINT}, {COMMA} or {CLOCK}"
        raise SchemaError(f"written ({form[:40]}) must be a form of {'days' if days else 'numbers'}", f"Use {known}.")


def _is_form_of_days(form: str) -> bool:
    parts = sorted(re.findall("YYYY|YY|MON|MM|DD", form))
    known = [["DD", "MM", "YYYY"], ["DD", "MM", "YY"], ["DD", "MON", "YYYY"], ["DD", "MON", "YY"]]
    between = re.sub("YYYY|YY|MON|MM|DD", "", form)
    exchanged = form == "YYYY-DD-MM"  # looks like the plain way, in which typed days are written
    return parts in known and len(form) <= 20 and re.fullmatch("[-./, ]*", between) is not None and not exchanged


@cache
def rewriting(form: str) -> Rewriting:
    """The rule by which values of a form are rewritten.

    >>> [rewriting("1.234,5")(text) for text in ("1.234,50 €", "-3,5", "12 %", "1.5", "7")]
    ['1234.50', '-3.5', '12', None, '7']
    >>> rewriting("DD.MM.YYYY")("31.12.1980"), rewriting("MM/DD/YY")("2/9/99"), rewriting("HH:MM")("2:30 pm")
    ('1980-12-31', '1999-02-09', '870')
    """
    if form in NUMBERS:
        return _number(form)
    return _minutes if form == CLOCK else _day(form)


def _number(form: str) -> Rewriting:
    mark = NUMBERS[form]
    other = re.escape({".": ",", ",": "."}[mark])
    groups = f"[0-9]{{1,3}}(?:(?P<gap>[{other}'’\u0020\u00a0\u202f\u2009])[0-9]{{3}})(?:(?P=gap)[0-9]{{3}})*"
    digits = rf"(?P<whole>{groups}|[0-9]+)(?:{re.escape(mark)}(?P<part>[0-9]+))?"
    shape = re.compile(
        rf"(?P<open>\()?(?P<sign>[+-]|−)?{_GAP}(?:{MONEY}{_GAP})?(?P<late>[+-]|−)?{digits}{_GAP}(?:{MONEY}|%)?(?P<close>\))?"
    )

    def plain(text: str) -> str | None:
        found = shape.fullmatch(text)
        if found is None or (found["open"] is None) != (found["close"] is None):
            return None
        minus = found["open"] or "-" in (found["sign"], found["late"]) or "−" in (found["sign"], found["late"])
        whole = re.sub("[^0-9]", "", found["whole"])
        return f"{'-' if minus else ''}{whole}{'.' + found['part'] if found['part'] else ''}"

    return plain


def _day(form: str) -> Rewriting:
    pieces = re.split("(YYYY|YY|MON|MM|DD)", form)
    if form == "YYYYMMDD":
        shape = re.compile(r"(?P<year>[12][0-9]{3})(?P<month>[01][0-9])(?P<day>[0-3][0-9])")
    else:
        shape = re.compile("".join(_TOKENS.get(piece, re.escape(piece)) for piece in pieces) + _TIME)

    def plain(text: str) -> str | None:
        found = shape.fullmatch(text)
        if found is None:
            return None
        told = found.groupdict()
        month = _MONTH_NUMBERS.get(told["name"].casefold()) if told.get("name") else int(told["month"])
        year = int(told["year"]) if told.get("year") else _full_year(int(told["short"]))
        try:
            return None if month is None else datetime.date(year, month, int(told["day"])).isoformat()
        except ValueError:
            return None

    return plain


_MONTH_NUMBERS = {name: number for number, names in enumerate(MONTHS, start=1) for name in names}


def _full_year(short: int) -> int:
    return short + (2000 if short <= CENTURY else 1900)


def _minutes(text: str) -> str | None:
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, half = int(found[1]), (found[3] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return str(60 * hour + int(found[2]))
