"""Feed one reader of other people's files with what a coverage-guided fuzzer makes up, for a given time.

    python fuzz/fuzz.py condition 60

Anything but an answer or a `SfumatoError` ends the run and leaves the input in fuzz/findings/.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "src")]

with atheris.instrument_imports(include=["sfumato", "yaml"]):
    import hostile


def main() -> None:
    """Run one target; say how many inputs it took."""
    target, seconds = sys.argv[1], int(sys.argv[2])
    corpus, findings = Path(tempfile.mkdtemp(prefix="corpus")), HERE / "findings"
    findings.mkdir(exist_ok=True)
    for number, data in enumerate(hostile.seeds()[target]):
        (corpus / str(number)).write_bytes(data)
    run, told, began = 0, False, time.monotonic()

    def feed(data: bytes) -> None:
        nonlocal run, told
        run += 1
        hostile.attempt(target, data)
        if not told and time.monotonic() - began > seconds - 1:
            told = True
            print(f"fuzzed {target}: {run:,} inputs in {seconds} s, nothing found", flush=True)

    limits = [f"-max_total_time={seconds}", "-rss_limit_mb=3000", "-timeout=20", "-verbosity=0", "-max_len=20000"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={findings}/{target}-", str(corpus)], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
