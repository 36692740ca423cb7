"""Compare the real scheduler and Bayplan on random cases: ``python -m fuzz --kind queue --cases 5000``.

Exit code 1 if any case differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bayplan.conformance.cases import JsonObject
from fuzz.classic import random_classic_case
from fuzz.classic_queue import random_classic_queue_case
from fuzz.clusters import random_case
from fuzz.config_texts import random_config_case
from fuzz.oracle import CASES_A_PROCESS, Oracle
from fuzz.queue_traces import random_queue_case
from fuzz.sampling import random_sampled_case
from fuzz.shrinking import shrink
from fuzz.trial import CLASSIC, CLASSIC_QUEUE, CONFIG, CYCLES, QUEUE, SAMPLED, VICTIMS, Trial, try_cases
from fuzz.victims import random_victims_case

BUILT_ORACLE = Path(__file__).resolve().parents[1] / "oracle" / "BIN"

PROGRAMS = {
    CYCLES: "cycle",
    SAMPLED: "cycle",
    VICTIMS: "cycle",
    QUEUE: "queue",
    CONFIG: "config",
    CLASSIC: "classic/cycle",
    CLASSIC_QUEUE: "classic/queue",
}
"""The program that answers each kind of case."""


UNITS = {
    CYCLES: "cycles",
    SAMPLED: "pods",
    VICTIMS: "cycles",
    QUEUE: "operations",
    CONFIG: "texts",
    CLASSIC: "cycles",
    CLASSIC_QUEUE: "operations",
}
"""The unit in which the steps of cases are counted, by kind."""

MAKERS = {
    CYCLES: random_case,
    SAMPLED: random_sampled_case,
    VICTIMS: random_victims_case,
    CONFIG: random_config_case,
    CLASSIC: random_classic_case,
    CLASSIC_QUEUE: random_classic_queue_case,
}


def main() -> int:
    """Compare the cases, print those that differ in reduced form, and the counts at the end; return the exit code."""
    options = _options()
    oracle = Oracle(options.oracle, PROGRAMS[options.kind])
    if not oracle.program.exists():
        print(
            f"{oracle.program} does not exist: build it with 'make oracle', or name another folder with --oracle",
            file=sys.stderr,
        )
        return 2
    start, told_nothing, steps = time.monotonic(), 0, 0
    differing: list[Trial] = []
    numbers = range(options.first, options.first + options.cases)
    for at in range(0, len(numbers), CASES_A_PROCESS):
        cases = _cases(oracle, options.kind, options.seed, numbers[at : at + CASES_A_PROCESS])
        for trial in try_cases(oracle.answers, cases, options.kind):
            reported = trial.want.get("cycles") or trial.want.get("sampled") or trial.want.get("steps")
            told_nothing += trial.refused
            steps += len(reported) if isinstance(reported, list) else 1
            if trial.differences:
                differing.append(trial)
                if len(differing) <= options.show:
                    # A configuration is one text, which has no parts that could be removed.
                    whole = options.whole or options.kind == CONFIG
                    _show(trial if whole else shrink(oracle.answers, trial), str(trial.case["id"]))
        done = min(at + CASES_A_PROCESS, len(numbers))
        print(f"{done:,} cases, {len(differing):,} differ", file=sys.stderr, flush=True)
    what = UNITS[options.kind]
    print(
        f"{len(numbers):,} cases ({steps:,} {what}; {told_nothing:,} cases without an answer to compare), seed {options.seed}, "
        f"first {options.first}: {len(differing):,} differ. {time.monotonic() - start:.0f} s"
    )
    if len(differing) > options.show:
        print("not shown:", *(trial.case["id"] for trial in differing[options.show :]))
    return 1 if differing else 0


def _cases(oracle: Oracle, kind: str, seed: int, numbers: Sequence[int]) -> list[JsonObject]:
    if kind == QUEUE:
        return oracle.resolved([random_queue_case(seed, number) for number in numbers])
    return [MAKERS[kind](seed, number) for number in numbers]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz this engine against the real scheduler.")
    parser.add_argument("--kind", choices=PROGRAMS, default=CYCLES, help="kind of cases (default: %(default)s)")
    parser.add_argument("--cases", type=int, default=5000, metavar="N", help="number of cases (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices (default: %(default)s)")
    parser.add_argument(
        "--first", type=int, default=0, metavar="N", help="number of the first case (with --cases 1, the only case)"
    )
    parser.add_argument(
        "--show", type=int, default=5, metavar="N", help="differing cases to print (default: %(default)s)"
    )
    parser.add_argument("--whole", action="store_true", help="print cases unchanged instead of shrinking them")
    parser.add_argument(
        "--oracle",
        type=Path,
        default=BUILT_ORACLE,
        metavar="DIR",
        help="folder of the programs that 'make oracle' builds",
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
