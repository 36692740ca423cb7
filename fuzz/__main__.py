"""Ask the real scheduler and us about random cases: ``python -m fuzz --cases 5000 --seed 1``. Exit code 1 on a difference."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec

from fuzz.clusters import random_case
from fuzz.oracle import CASES_A_PROCESS, Oracle
from fuzz.shrinking import shrink
from fuzz.trial import Trial, try_cases

BUILT_ORACLE = Path(__file__).resolve().parents[1] / "oracle" / "BIN"


def main() -> int:
    """Print differing cases, made small, and the counts at the end."""
    options = _options()
    oracle = Oracle(options.oracle)
    if not oracle.program.exists():
        print(f"{oracle.program} isn't there: make oracle builds it, --oracle names another folder", file=sys.stderr)
        return 2
    start, refused, cycles = time.monotonic(), 0, 0
    differing: list[Trial] = []
    numbers = range(options.first, options.first + options.cases)
    for at in range(0, len(numbers), CASES_A_PROCESS):
        cases = [random_case(options.seed, number) for number in numbers[at : at + CASES_A_PROCESS]]
        for trial in try_cases(oracle.answers, cases):
            told = trial.want.get("cycles")
            refused += trial.refused
            cycles += len(told) if isinstance(told, list) else 0
            if trial.differences:
                differing.append(trial)
                if len(differing) <= options.show:
                    _show(trial if options.whole else shrink(oracle.answers, trial), str(trial.case["id"]))
        done = min(at + CASES_A_PROCESS, len(numbers))
        print(f"{done:,} cases, {len(differing):,} differ", file=sys.stderr, flush=True)
    print(
        f"{len(numbers):,} cases ({cycles:,} cycles; {refused:,} cases refused by the real scheduler), seed {options.seed}, "
        f"first {options.first}: {len(differing):,} differ. {time.monotonic() - start:.0f} s"
    )
    if len(differing) > options.show:
        print("not shown:", *(trial.case["id"] for trial in differing[options.show :]))
    return 1 if differing else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz this engine against the real scheduler.")
    parser.add_argument("--cases", type=int, default=5000, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all choices (default: %(default)s)")
    parser.add_argument(
        "--first", type=int, default=0, metavar="N", help="number of the first case; with --cases 1: that one"
    )
    parser.add_argument(
        "--show", type=int, default=5, metavar="N", help="differing cases to print (default: %(default)s)"
    )
    parser.add_argument("--whole", action="store_true", help="print cases as they are, instead of making them smaller")
    parser.add_argument(
        "--oracle", type=Path, default=BUILT_ORACLE, metavar="DIR", help="the programs that make oracle builds"
    )
    return parser.parse_args()


def _show(trial: Trial, name: str) -> None:
    print(f"== {name} differs in {', '.join(sorted(trial.parts))}")
    for part, where, want, got in trial.differences[:6]:
        print(f"{part}  {where}\n  want  {_text(want)}\n  got   {_text(got)}")
    print(msgspec.json.encode(trial.case).decode(), flush=True)


def _text(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 600 else f"{text[:600]}..."


if __name__ == "__main__":
    sys.exit(main())
