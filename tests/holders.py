"""Tables as holders have them, made up: a court's, a bank's, a hospital's and a survey's. For tests of drafts.

Each has the troubles of its kind, and canaries: values of single people that must never be written down.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

SURNAMES = [
    "Smith",
    "Jones",
    "Brown",
    "Taylor",
    "Wilson",
    "Davies",
    "Evans",
    "Thomas",
    "Johnson",
    "Roberts",
    "Walker",
    "Wright",
]
"""Frequent surnames: even those must not be written."""


@dataclass(frozen=True)
class Held:
    """A table, what each column should be drafted as, and the values of single people that it hides."""

    table: pa.Table
    kinds: dict[str, str]
    """by column: identifier, categorical, codes, numeric, log or date, as a person would have it"""
    canaries: tuple[str, ...]


def _days(rng: np.random.Generator, rows: int, first: str, last: str) -> list[datetime.date]:
    start = datetime.date.fromisoformat(first)
    span = (datetime.date.fromisoformat(last) - start).days
    return [start + datetime.timedelta(days=int(one)) for one in rng.integers(0, span, rows)]


def _pick(
    rng: np.random.Generator, rows: int, names: Sequence[Any], shares: Sequence[float] | None = None
) -> list[Any]:
    weights = None if shares is None else np.array(shares) / np.sum(shares)
    return [names[one] for one in rng.choice(len(names), rows, p=weights)]


def _hidden(column: list[Any], at: int, value: Any) -> list[Any]:
    """Hide a single person's value in a column."""
    return [*column[:at], value, *column[at + 1 :]]


def court(rows: int = 3000, seed: int = 1) -> Held:
    """Risk scores of defendants, after the fashion of COMPAS: names, dates, case numbers, charges, counts."""
    rng = np.random.default_rng(seed)
    rare = [f"Zx{number}" for number in range(rows)]
    last = [rare[at] if rng.random() < 0.6 else SURNAMES[rng.integers(len(SURNAMES))] for at in range(rows)]
    first = _pick(rng, rows, ["James", "Mary", "Robert", "Linda", "John", "Susan", "Ana", "Paul"])
    born = _days(rng, rows, "1950-01-01", "1998-01-01")
    age = [2014 - day.year for day in born]
    charges = [f"Charge {number}" for number in range(12)]
    desc = [f"Qy offence {at}" if rng.random() < 0.1 else charges[rng.integers(12)] for at in range(rows)]
    columns = {
        "id": list(range(1, rows + 1)),
        "name": [f"{one} {other}" for one, other in zip(first, last, strict=True)],
        "first": first,
        "last": last,
        "compas_screening_date": [day.isoformat() for day in _days(rng, rows, "2013-01-01", "2014-12-31")],
        "sex": _pick(rng, rows, ["Male", "Female"], [0.8, 0.2]),
        "dob": [day.isoformat() for day in born],
        "age": [str(one) for one in _hidden(age, 7, 96)],
        "age_cat": ["Less than 25" if one < 25 else "25 - 45" if one <= 45 else "Greater than 45" for one in age],
        "race": _hidden(_pick(rng, rows, ["African-American", "Caucasian", "Hispanic", "Other"]), 5, "Klingon"),
        "juv_fel_count": [str(one) for one in rng.poisson(0.1, rows)],
        "decile_score": [str(one) for one in rng.integers(1, 11, rows)],
        "priors_count": [str(one) for one in _hidden(list(rng.poisson(3, rows) * rng.integers(1, 4, rows)), 9, 61)],
        "c_case_number": [f"{rng.integers(11, 15)}0{at:05d}CF10A" for at in range(rows)],
        "c_charge_degree": _pick(rng, rows, ["(F3)", "(M1)", "(M2)", "(F2)"]),
        "c_charge_desc": desc,
        "is_recid": _pick(rng, rows, ["0", "1"]),
        "c_jail_in": [f"{day.isoformat()} 06:03:42" for day in _days(rng, rows, "2013-01-01", "2014-12-31")],
        "score_text": _pick(rng, rows, ["Low", "Medium", "High"]),
        "r_days": [None if rng.random() < 0.5 else str(one) for one in rng.integers(0, 900, rows)],
        "two_year_recid": _pick(rng, rows, ["0", "1"]),
    }
    kinds = dict.fromkeys(columns, "categorical") | dict.fromkeys(
        ("id", "name", "first", "last", "c_case_number"), "identifier"
    )
    kinds |= dict.fromkeys(("compas_screening_date", "dob", "c_jail_in"), "date")
    kinds |= dict.fromkeys(("age", "priors_count", "r_days"), "numeric")
    return Held(pa.table(columns), kinds, ("Klingon", "Zx", "Qy", "96", "61", *SURNAMES))


def bank(rows: int = 3000, seed: int = 2) -> Held:
    """Customers of a bank with German numbers and days: `1.234,50 €`, `31.12.1980`."""
    rng = np.random.default_rng(seed)
    balance = rng.lognormal(7, 1.6, rows)
    balance[3] = 7_654_321.0
    columns = {
        "kunde": [f"K{rng.integers(10**7)}" for _ in range(rows)],
        "email": [f"{rng.integers(10**9)}@example.org" for _ in range(rows)],
        "telefon": [f"+49 30 {rng.integers(10**6, 10**7)}" for _ in range(rows)],
        "iban": [
            f"DE{rng.integers(10, 99)} {rng.integers(1000, 9999)} {rng.integers(1000, 9999)} 00" for _ in range(rows)
        ],
        "geboren": [
            f"{day.day:02d}.{day.month:02d}.{day.year}" for day in _days(rng, rows, "1930-01-01", "2004-01-01")
        ],
        "plz": [f"{rng.integers(1000, 99999):05d}" for _ in range(rows)],
        "kontostand": [_german(one) + " €" for one in balance],
        "zins": [f"{one:.1f}".replace(".", ",") + " %" for one in rng.uniform(0, 9, rows)],
        "einkommen": [_german(one) if rng.random() < 0.9 else "k.A." for one in rng.lognormal(10, 0.4, rows)],
        "beruf": _hidden(_pick(rng, rows, ["Angestellte", "Arbeiter", "Beamte", "Rentner"]), 2, "Astronautin"),
        "kredit": _pick(rng, rows, ["ja", "nein"]),
        "monat": _pick(rng, rows, ["Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"]),
        "anruf": [f"{rng.integers(8, 20)}:{rng.integers(60):02d}" for _ in range(rows)],
        "kunde_seit": _pick(rng, rows, ["<1", "1-3", "4-9", "10+"]),
        "wochentag": _pick(rng, rows, ["Mo", "Di", "Mi", "Do", "Fr"]),
    }
    kinds = dict.fromkeys(columns, "categorical") | dict.fromkeys(("kunde", "email", "telefon", "iban"), "identifier")
    kinds |= {"geboren": "date", "plz": "codes", "kontostand": "log"}
    kinds |= dict.fromkeys(("zins", "einkommen", "anruf"), "numeric")
    return Held(pa.table(columns), kinds, ("Astronautin", "7654321", "7.654.321", "example.org", "K1", "+49"))


def _german(number: float) -> str:
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def hospital(rows: int = 3000, seed: int = 3) -> Held:
    """Stays in a hospital: diagnoses, drugs, ages in ranges, notes."""
    rng = np.random.default_rng(seed)
    decades = [f"[{10 * one}-{10 * one + 10})" for one in range(10)]
    columns = {
        "encounter_id": [int(one) for one in rng.choice(10**8, rows, replace=False)],
        "patient_nbr": [int(one) for one in rng.choice(10**7, rows)],
        "race": _hidden(_pick(rng, rows, ["Caucasian", "AfricanAmerican", "?"]), 4, "Vulcan"),
        "age": _pick(rng, rows, decades, [1, 2, 3, 5, 8, 14, 20, 25, 17, 5]),
        "admission_type_id": _pick(rng, rows, [1, 2, 3, 5, 6]),
        "time_in_hospital": [int(one) for one in rng.integers(1, 15, rows)],
        "diag_1": [
            f"{chr(65 + rng.integers(20))}{rng.integers(10)}{rng.integers(10)}.{rng.integers(10)}" for _ in range(rows)
        ],
        "diag_icd9": [str(rng.integers(1, 999)) for _ in range(rows)],
        "drug": [f"C{rng.integers(10):02d}A{chr(65 + rng.integers(5))}{rng.integers(1, 10):02d}" for _ in range(rows)],
        "weight_kg": [round(float(one), 1) for one in _hidden(list(rng.normal(80, 12, rows)), 8, 231.7)],
        "cost": [round(float(one), 2) for one in rng.lognormal(8, 1.5, rows)],
        "note": [f"seen by nurse {at}, stable, to be discharged on day {at % 9}" for at in range(rows)],
        "admitted": [f"{day.month}/{day.day}/{day.year}" for day in _days(rng, rows, "1999-01-01", "2008-12-31")],
        "zip": [f"{rng.integers(501, 99950):05d}" for _ in range(rows)],
        "insulin": _pick(rng, rows, ["No", "Steady", "Up", "Down"]),
        "readmitted": _pick(rng, rows, ["NO", "<30", ">30"]),
    }
    kinds = dict.fromkeys(columns, "categorical")
    kinds |= dict.fromkeys(("encounter_id", "patient_nbr", "note"), "identifier")
    kinds |= dict.fromkeys(("diag_1", "diag_icd9", "drug", "zip"), "codes")
    kinds |= {"time_in_hospital": "numeric", "weight_kg": "numeric", "cost": "log", "admitted": "date"}
    return Held(pa.table(columns), kinds, ("Vulcan", "231.7", "231", "nurse"))


def survey(rows: int = 2000, seed: int = 4) -> Held:
    """Answers to a survey: scales, ranges of income, yes and no, open answers."""
    rng = np.random.default_rng(seed)
    agreement = ["Strongly agree", "Agree", "Neutral", "Disagree", "Strongly disagree"]
    columns = {
        "respondent": [f"r-{at:05d}" for at in range(rows)],
        "q1": _pick(rng, rows, agreement),
        "q2": _pick(rng, rows, ["Never", "Rarely", "Sometimes", "Often", "Always"]),
        "q3": _pick(rng, rows, ["Yes", "No"]),
        "income_band": _pick(rng, rows, ["$0-$9,999", "$10,000-$24,999", "$25,000-$49,999", "$50,000+"]),
        "age_band": _pick(rng, rows, ["18-24", "25-34", "35-44", "45-64", "65+"]),
        "weekday": _pick(rng, rows, ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]),
        "children": [int(one) for one in _hidden(list(rng.poisson(1.2, rows)), 3, 17)],
        "nuts": _pick(
            rng, rows, [f"{one}{two}{three}" for one in ("AT", "DE", "FR") for two in "123" for three in "12345"]
        ),
        "isco": [
            f"{rng.integers(1, 10)}{rng.integers(1, 5)}{rng.integers(1, 5)}{rng.integers(1, 5)}" for _ in range(rows)
        ],
        "weight": [round(float(one), 4) for one in rng.uniform(0.3, 3, rows)],
        "open_answer": [f"I think that {at} is a good number" for at in range(rows)],
    }
    kinds = dict.fromkeys(columns, "categorical") | {"respondent": "identifier", "open_answer": "identifier"}
    kinds |= {"nuts": "codes", "isco": "codes", "weight": "numeric"}
    return Held(pa.table(columns), kinds, ("17", "good number", "r-0"))


TABLES = {"court": court, "bank": bank, "hospital": hospital, "survey": survey}
"""All of them, by name."""
