"""Record the decision hashes of all benchmark rows, and check that an engine still makes the same decisions.

    python -m benchmarks.hashes check --size small
    python -m benchmarks.hashes check --size large --rows 'engine/*'
    python -m benchmarks.hashes record --size medium --rows '*Volumes*' --timeout 600

`record` runs every row under two values of PYTHONHASHSEED and rejects rows that differ. It merges rows into the file,
so you can record a few at a time. A row that exceeds the time limit is listed under "left_out".
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.hash_rows import SIZES, Hashes, MissingDataError, Row, hash_rows

BASELINE = Path(__file__).with_name("decision_hashes.json")
HASH_SEEDS = ("0", "20261123")
DEFAULT_TIMEOUT_S = 300

Baseline = dict[str, dict[str, dict[str, str]]]
"""``{"rows": {size: {name: "decisions records"}}, "left_out": {size: {name: reason}}}``."""


def load_baseline() -> Baseline:
    """Return the recorded hashes, empty if nothing was recorded."""
    if not BASELINE.exists():
        return {"rows": {}, "left_out": {}}
    found: Baseline = json.loads(BASELINE.read_text())
    return found


def selected(pattern: str, size: str) -> list[Row]:
    """Return the rows that have this size and whose name matches the shell pattern (case-sensitive)."""
    return [row for row in hash_rows() if size in row.sizes and fnmatch.fnmatchcase(row.name, pattern)]


def recorded(baseline: Baseline, size: str, name: str) -> Hashes | None:
    """Return the recorded hashes of a row, or None."""
    text = baseline["rows"].get(size, {}).get(name)
    return Hashes(*text.split()) if text else None


# Recording.


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the block when this process has used this much CPU time."""

    def stop(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"took longer than {seconds} s of processor time")

    # Use CPU time, because wall time depends on the load of the machine.
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answer_rows(size: str, timeout_s: int) -> None:
    """Read names of rows, one per line, and print a JSON line for each: its hashes, or why there are none."""
    rows = {row.name: row for row in hash_rows()}
    for line in sys.stdin:
        try:
            with time_limit(timeout_s):
                answer = {"hashes": " ".join(rows[line.strip()].run(size))}
        except (TimeoutError, MissingDataError) as error:
            answer = {"left_out": str(error)}
        print(json.dumps(answer), flush=True)


def _ask(process: subprocess.Popen[str], name: str) -> dict[str, str]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"row {name!r} ended its process; its error is above")
    answer: dict[str, str] = json.loads(line)
    return answer


def record(pattern: str, size: str, timeout_s: int) -> int:
    """Record rows; return the number of rows whose hashes depend on PYTHONHASHSEED."""
    command = [sys.executable, "-m", "benchmarks.hashes", "answer", "--size", size, "--timeout", str(timeout_s)]
    processes = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in HASH_SEEDS
    ]
    unequal = 0
    for row in selected(pattern, size):
        start = time.monotonic()
        answers = [_ask(processes[0], row.name)]
        if "hashes" in answers[0]:
            answers += [_ask(process, row.name) for process in processes[1:]]
        reasons = [answer["left_out"] for answer in answers if "left_out" in answer]
        texts = {answer["hashes"] for answer in answers if "hashes" in answer}
        if len(texts) > 1:
            unequal += 1
            reasons.append(f"depends on PYTHONHASHSEED: {sorted(texts)}")
        _store(size, row.name, texts.pop() if not reasons else "", reasons[0] if reasons else "")
        print(f"{size:<7} {row.name:<90} {reasons or 'recorded'} {time.monotonic() - start:.1f} s", flush=True)
    for process in processes:
        process.communicate()
    return unequal


def _store(size: str, name: str, text: str, reason: str) -> None:
    baseline = load_baseline()
    stored, cleared = ("left_out", "rows") if reason else ("rows", "left_out")
    baseline[stored].setdefault(size, {})[name] = reason or text
    baseline[cleared].get(size, {}).pop(name, None)
    BASELINE.write_text(json.dumps(baseline, indent=1, sort_keys=True) + "\n")


# Checking.


def check(pattern: str, size: str) -> int:
    """Run rows and compare their hashes; return the number of rows that differ."""
    baseline = load_baseline()
    different = 0
    for row in selected(pattern, size):
        wanted = recorded(baseline, size, row.name)
        if wanted is None:
            print(f"{size:<7} {row.name:<90} not recorded: {baseline['left_out'].get(size, {}).get(row.name, '')}")
            continue
        start = time.monotonic()
        try:
            found = row.run(size)
        except MissingDataError as error:
            print(f"{size:<7} {row.name:<90} not run: {error}")
            continue
        verdict = difference(wanted, found)
        different += bool(verdict)
        print(f"{size:<7} {row.name:<90} {verdict or 'equal'} {time.monotonic() - start:.1f} s", flush=True)
    print(f"{different} rows differ")
    return different


def difference(wanted: Hashes, found: Hashes) -> str:
    """Return the difference between two hashes of a row as text, "" if they are equal."""
    if wanted.decisions != found.decisions:
        return f"DECISIONS DIFFER: got {found.decisions}, expected {wanted.decisions}"
    if wanted.records != found.records:
        return f"RECORDS DIFFER (times, outcomes or messages): got {found.records}, expected {wanted.records}"
    return ""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hashes", description="Record or check decision hashes.")
    parser.add_argument("command", choices=("record", "check", "answer", "list"))
    parser.add_argument("--rows", default="*", help="names to run, as a shell pattern [default: all]")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument(
        "--timeout",
        type=int,
        default=DEFAULT_TIMEOUT_S,
        help="processor time that a row may take when recorded, in seconds [default: 300]",
    )
    options = parser.parse_args()
    if options.command == "answer":
        _answer_rows(options.size, options.timeout)
        return
    rows = selected(options.rows, options.size)
    if not rows:
        parser.error(f"no row of size {options.size} matches {options.rows!r}; try 'list --rows \"*\"'")
    if options.command == "list":
        print("\n".join(row.name for row in rows))
        return
    if options.command == "record":
        sys.exit(bool(record(options.rows, options.size, options.timeout)))
    sys.exit(bool(check(options.rows, options.size)))


if __name__ == "__main__":
    main()
