"""All methods under attack, and all planted mistakes, at length: `make audit` prints the tables of docs/privacy.md."""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

from contracts import examples, short
from planted import BUGS, Bug, audited, found_by_replay, planted
from sfumato import METHODS
from sfumato.audit import Finding, attack


def audit_methods(runs: int, processes: int, only: str) -> None:
    print("| method | claimed | shown | runs of each table | most telling pair | by | minutes |")
    print("| --- | ---: | ---: | ---: | --- | --- | ---: |")
    for method in examples(METHODS):
        if only in (name := short(method)):
            start = time.perf_counter()
            found = attack(method, Fraction(1), runs=runs, processes=processes)
            minutes = (time.perf_counter() - start) / 60
            mark = " **REFUTED**" if found.refuted else ""
            event = found.event.split(" is at ")[0]
            print(
                f"| {name} | 1 | {found.shown:.2f}{mark} | {runs:,} | {found.pair} | {event} | {minutes:.1f} |",
                flush=True,
            )


def audit_bugs(times: int) -> None:
    print("| planted mistake | in | replay | attack shows (claimed 1) | also found by |")
    print("| --- | --- | --- | ---: | --- |")
    for bug in BUGS:
        found = planted(bug, lambda one: audited(one, times * one.runs))
        print(line(bug, found), flush=True)


def line(bug: Bug, found: Finding) -> str:
    return f"| {bug.words} | {bug.method.name} | {caught(found_by_replay(bug))} | {told(found)} | {bug.also} |"


def caught(found: bool) -> str:
    return "caught" if found else "not to be seen"


def told(found: Finding) -> str:
    return f"{found.shown:.2f}, {'caught' if found.refuted else 'not caught'}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="publications of each table")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="methods whose name has this in it")
    parser.add_argument("--bugs", choices=["too", "only", "not"], default="too")
    given = parser.parse_args()
    if given.bugs != "only":
        audit_methods(given.runs, given.processes, given.only)
        print()
    if given.bugs != "not":
        audit_bugs(max(given.runs // 5000, 1))
