"""The comparers are strict: each change to a recorded answer is one difference, and Bayplan's answers have none."""

from __future__ import annotations

import copy
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bayplan.conformance.answers import Answer, answer
from bayplan.conformance.cases import Json, RecordedCase, read_case_files
from bayplan.conformance.comparer import compare
from tests.conformance.recorded import at, put
from tests.shared import shared_path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "conformance"
CYCLES = sorted(path.name for path in (FOLDER / "cycles").glob("*.jsonl.gz"))

KINDS = ("score", "total", "reason", "code", "victim", "candidate", "node", "text", "plugin")
"""The kinds of change: one number, reason, pod, node or text of an answer."""

SAMPLE = 40
"""The number of places of each kind that are changed in a file."""

Place = tuple[str | int, ...]


def places(case: RecordedCase) -> Iterator[tuple[str, Place]]:
    """Yield the values in an answer's first cycle that can be changed: the kind of each, and its place."""
    cycles = case.want["cycles"]
    if not isinstance(cycles, list) or not cycles:
        return
    first: Place = ("cycles", 0)
    for plugin, scores in _items(at(cycles, 0, "scores")):
        for part in ("raw", "normalized"):
            for name, _ in _items(at(scores, part)):
                yield "score", (*first, "scores", plugin, part, name)
    for name, _ in _items(at(cycles, 0, "total")):
        yield "total", (*first, "total", name)
    for name, reported in _items(at(cycles, 0, "filter")):
        yield "code", (*first, "filter", name, "code")
        yield "plugin", (*first, "filter", name, "plugin")
        yield from (("reason", (*first, "filter", name, "reasons", n)) for n in range(_length(at(reported, "reasons"))))
    for plugin, nodes in _items(at(cycles, 0, "filterAll")):
        for name, reported in _items(nodes):
            yield "code", (*first, "filterAll", plugin, name, "code")
            reasons = range(_length(at(reported, "reasons")))
            yield from (("reason", (*first, "filterAll", plugin, name, "reasons", n)) for n in reasons)
    for part in ("chosen", "message"):
        if at(cycles, 0, part) is not None:
            yield "node" if part == "chosen" else "text", (*first, part)
    for part in ("feasible", "best"):
        yield from (("node", (*first, part, n)) for n in range(_length(at(cycles, 0, part))))
    yield from _places_of_preemption(at(cycles, 0, "preemption"), (*first, "preemption"))


def _places_of_preemption(preemption: Json, path: Place) -> Iterator[tuple[str, Place]]:
    if not isinstance(preemption, dict):
        return
    yield "code", (*path, "code")
    yield from (("reason", (*path, "reasons", n)) for n in range(_length(preemption["reasons"])))
    if preemption.get("nominatedNode"):
        yield "node", (*path, "nominatedNode")
    for name, reported in _items(preemption["candidates"]):
        assert isinstance(reported, dict)
        # The README calls these fields ambiguous, so they are not compared.
        if not reported.get("ambiguous"):
            yield "candidate", (*path, "candidates", name, "numPDBViolations")
            victims = range(_length(reported["victims"]))
            yield from (("victim", (*path, "candidates", name, "victims", n)) for n in victims)


def _items(value: Json) -> list[tuple[str, Json]]:
    return list(value.items()) if isinstance(value, dict) else []


def _length(value: Json) -> int:
    return len(value) if isinstance(value, list) else 0


def _another(value: Json) -> Json:
    return value + 1 if isinstance(value, int) else f"{value} x"


@pytest.mark.parametrize("name", CYCLES)
def test_any_single_change_in_a_recorded_answer_is_a_difference(name: str) -> None:
    cases = {case.id: case for case in read_case_files([FOLDER / "cycles" / name])[0]}
    found: dict[str, list[tuple[str, Place]]] = {kind: [] for kind in KINDS}
    for case in cases.values():
        for kind, place in places(case):
            found[kind].append((case.id, place))
    draw = random.Random(name)
    overlooked = []
    for chosen in found.values():
        for case_id, place in draw.sample(chosen, min(SAMPLE, len(chosen))):
            case = cases[case_id]
            ours = copy.deepcopy(case.want)
            put(ours, place, _another(at(ours, *place)))
            if not compare(case, Answer(ours)).differences:
                overlooked.append((case_id, place))
    assert overlooked == []


def test_recorded_cases_cover_every_kind_of_change() -> None:
    kinds = {
        kind for name in CYCLES for case in read_case_files([FOLDER / "cycles" / name])[0] for kind, _ in places(case)
    }
    assert kinds == set(KINDS)


def compared_by_the_reference(recorded: Path, folder: Path) -> str:
    """Write Bayplan's answers to a file of recorded cases, and return the output of compare.py; empty if all agree."""
    ours = folder / "ours.jsonl"
    lines = []
    for case in read_case_files([recorded])[0]:
        lines.append(msgspec.json.encode(answer(case).body) + b"\n")
    ours.write_bytes(b"".join(lines))
    done = subprocess.run(
        [sys.executable, FOLDER / "compare.py", recorded, ours], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("name", ["cycles/dynamic_resources", "cycles/preemption", "cycles/volumes", "config/cases"])
def test_bayplan_answers_satisfy_the_reference_comparer(name: str, tmp_path: Path) -> None:
    assert compared_by_the_reference(FOLDER / f"{name}.jsonl.gz", tmp_path) == ""


def test_bayplan_answers_for_real_objects_satisfy_the_reference_comparer(tmp_path: Path) -> None:
    assert compared_by_the_reference(shared_path("data", "answers", "cycles_real.jsonl.gz"), tmp_path) == ""


def test_the_reference_comparer_equals_the_shared_one() -> None:
    assert (FOLDER / "compare.py").read_bytes() == shared_path("conformance", "compare.py").read_bytes()
