"""Comparing methods on the command line: files, refusals, and what survives whoever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from command_line import SCHEMA, done, done_json, people, refused, write
from sfumato.cli.options import read_contestants
from sfumato.errors import MethodError
from sfumato.progress import bar

QUICK = ("--methods", "diffgen:specializations=2,mondrian:k=10", "--epsilon", "0.5,1", "--runs", "2", "--workers", "1")
LIGHT = (*QUICK, "--measures", "information")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save the time that pictures take."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("here")
def test_files_and_text_tell_what_was_found_and_that_it_is_not_private() -> None:
    text = done("compare", "people.csv", *QUICK, "--measures", "classification,cost")
    for expected in (
        *("for the holder's eyes, not private", "no guarantee", "nothing was debited"),
        "2 runs of each by protocol 2/3: means ± standard errors",
        *("groups' tree", "peak MB", "±", "raw data", "most frequent class", "diffgen specializations=2"),
        *("mondrian k=10", "8 runs in comparison/runs, 0 of them kept from before\n", "comparison.html"),
    ):
        assert expected in text
    assert "CANARY" not in text
    made = {path.name for path in Path("comparison").iterdir()}
    assert {"runs", "results.parquet", "summary.csv", "comparison.html"} == made
    page = Path("comparison/comparison.html").read_text()
    for expected in ("we recommend", "Not private, not to be published", "accuracy tree on groups", "peak MB"):
        assert expected in page
    assert page.count('src="data:image/png') == 9
    assert not Path("people.ledger").exists()
    assert pq.read_table("comparison/results.parquet")["value"].null_count == 0


@pytest.mark.usefixtures("here", "undrawn")
def test_starting_again_repeats_nothing_and_tells_what_is_there() -> None:
    done("compare", "people.csv", *LIGHT)
    text = done("compare", "people.csv", *LIGHT, "--runs", "3", "--epsilon", "1")
    assert "6 runs in comparison/runs, 4 of them kept from before, 2 runs of other comparisons beside them" in text
    assert "no verdict" in text
    found = done_json("compare", "people.csv", *LIGHT)
    assert found["kept_before"] == found["runs"] == 6
    assert "no guarantee" in found["guarantee"]
    assert {one["method"] for one in found["summary"]} == {"diffgen specializations=2", "mondrian k=10"}


@pytest.mark.usefixtures("here", "undrawn")
def test_some_attributes_and_another_class() -> None:
    few = ("--attributes", "age,sex", "--measures", "classification", "--runs", "1")
    assert "raw data" in done("compare", "people.csv", *QUICK, *few, "--target", "job")
    Path("people.schema.yaml").write_text(SCHEMA.replace("kind: class", "kind: categorical"))
    told = done(
        "compare", "people.csv", *QUICK, *few, "--methods", "laplace,diffgen", "--measures", "cost,classification"
    )
    assert "diffgen: " in told.partition("Left out")[2]
    assert "Classification: the table has no class attribute" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--methods", "diffgne"), "methods (diffgne) must be one of marginals, diffgen"),
        (("--methods", "diffgen,"), "methods () must be one of"),
        (("--methods", "mondrian"), "Write for example mondrian:k=10."),
        (("--methods", "mondrian:k"), "option (k) of mondrian must be written as name=value"),
        (("--methods", "mondrian:k=1"), "k (1) must be a whole number"),
        (("--methods", "diffgen:k=3"), "option --k must belong to the method"),
        (("--methods", "diffgen,diffgen"), "methods (diffgen) must be named once"),
        (("--epsilon", "much"), "epsilon (much) must be a number"),
        (("--epsilon", "1,0"), "epsilon (0) must be greater than 0"),
        (("--runs", "0"), "Invalid value for '--runs'"),
        (("--protocol", "1/2"), "Invalid value for '--protocol'"),
        (("--measures", "beauty"), "measures (beauty) must be one of all, classification"),
        (("--attributes", "shoe"), "attribute (shoe) must be one of the schema"),
        (("--out", "people.csv"), "out (people.csv) must be a folder"),
        (("--out", "people.csv/there"), "out (people.csv/there) must be a folder that can be written"),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_words_are_refused(options, told) -> None:
    assert told in refused("compare", "people.csv", *LIGHT, *options)


def test_a_table_without_rows_or_that_does_not_fit_is_refused(here: Path) -> None:
    write(people(0), here / "people.csv")
    assert "must have rows" in refused("compare", "people.csv", *LIGHT)
    people(20).to_pandas().assign(job="CANARY").to_csv(here / "people.csv", index=False)
    assert "every value must fit the schema" in refused("compare", "people.csv", *LIGHT)


@pytest.mark.usefixtures("here", "undrawn")
def test_without_matplotlib_there_are_results_and_a_hint() -> None:
    assert "without pictures: pip install 'sfumato[pictures]'" in done("compare", "people.csv", *LIGHT)
    assert Path("comparison/results.parquet").exists()


@pytest.mark.usefixtures("here")
def test_without_scikit_learn_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sfumato.compare.results", None)
    assert "pip install 'sfumato[evaluate]'" in refused("compare", "people.csv", *LIGHT)


def test_methods_are_read_with_their_options() -> None:
    read = read_contestants("diffgen, mondrian:k=10:quasi=age,sex,diffmulti:specializations=5:as-published")
    assert [one.label for one in read] == [
        *("diffgen", "mondrian k=10 quasi=age,sex", "diffmulti specializations=5 as-published")
    ]
    assert read[1].method.parameters["quasi"] == ["age", "sex"]
    assert read[2].method.parameters["schedule"] != "adaptive"
    with pytest.raises(MethodError, match="as-published must go with"):
        read_contestants("mondrian:k=10:as-published")
    assert read_contestants("diffgen:for=counts")[0].method.purpose == "counts"


def test_the_bar_guesses_by_what_was_done_just_now() -> None:
    assert bar("runs", 0, 8, 0, 0.0) == f"runs [{30 * ' '}] 0 of 8"
    assert bar("runs", 4, 8, 1, 60.0) == f"runs [{15 * '#'}{15 * ' '}] 4 of 8, about 4 min left"
    assert bar("runs", 8, 8, 8, 60.0) == f"runs [{30 * '#'}] 8 of 8"


LIGHTEST = ("--methods", "laplace,mondrian:k=10", "--attributes", "sex,job", "--measures", "information")
LONG = (*LIGHTEST, "--epsilon", "1", "--runs", "200")


@contextmanager
def comparing() -> Iterator[subprocess.Popen[str]]:
    """Start a comparison in a session of its own; nothing of it is left behind."""
    command = [sys.executable, "-c", "from sfumato.cli import main; main()", "compare", "people.csv", *LONG]
    command += ["--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until_more_runs(process: subprocess.Popen[str]) -> None:
    """Wait until some more runs are finished."""
    before = len(kept())
    until(lambda: len(kept()) >= before + 3 or process.poll() is not None)
    assert process.poll() is None


def interrupt(process: subprocess.Popen[str]) -> int:
    """Interrupt as a terminal does, all at once. One line tells how many runs are kept, and nobody is left."""
    others = children(process)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130
    number, _, rest = told.strip().partition(" ")
    assert rest == "of 400 runs are kept in comparison; start again to go on."
    until(lambda: not any(alive(pid) for pid in others))
    return int(number)


def until(happened) -> None:
    for _ in range(3600):
        if happened():
            return
        time.sleep(0.05)
    raise AssertionError("it must happen within minutes")


def kept() -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in Path("comparison/runs").glob("*.json")}


def children(process: subprocess.Popen[str]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


in_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")


@pytest.mark.slow
@in_proc
@pytest.mark.usefixtures("here", "undrawn")
def test_whoever_kills_it_loses_only_what_was_under_way() -> None:
    with comparing() as process:
        until_more_runs(process)
        workers = children(process)
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: not any(alive(pid) for pid in workers))
    before = kept()
    assert len(workers) >= 2
    assert 3 <= len(before) < 400

    with comparing() as process:
        until_more_runs(process)
        assert interrupt(process) <= len(kept())
    left = kept()
    assert before.items() <= left.items()
    found = done_json("compare", "people.csv", *LONG, "--runs", "3", "--workers", "1")
    assert 3 <= found["kept_before"] <= found["runs"] == 6
    assert left.items() <= kept().items()


@pytest.mark.slow
@in_proc
@pytest.mark.usefixtures("here")
def test_workers_do_not_hear_an_interrupt_even_while_they_start() -> None:
    with comparing() as process:
        until(lambda: any("numpy" in Path(f"/proc/{pid}/maps").read_text() for pid in children(process)))
        for pid in children(process):
            os.kill(pid, signal.SIGINT)
        until_more_runs(process)
        interrupt(process)
