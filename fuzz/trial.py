"""One case, answered by the real scheduler and by Bayplan, and compared as in conformance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bayplan.conformance.answers import answer
from bayplan.conformance.cases import JsonObject, RecordedCase
from bayplan.conformance.comparer import Difference, compare

Ask: TypeAlias = Callable[[Sequence[JsonObject]], Iterator[JsonObject]]
"""A function that yields the real scheduler's answers to cases."""

CYCLES = "cycles"
SAMPLED = "sampled"
QUEUE = "queue"
CONFIG = "config"
VICTIMS = "victims"
CLASSIC = "classic"
CLASSIC_QUEUE = "classic-queue"


@dataclass(frozen=True, slots=True)
class Trial:
    """A case, the real answer, and the differences from ours. An inconclusive trial has no differences."""

    case: JsonObject
    want: JsonObject
    differences: tuple[Difference, ...]
    kind: str = CYCLES

    @property
    def refused(self) -> bool:
        """Return whether the answer of the real scheduler is inconclusive.

        It refused the case, or its answers to the same case differ because of the order of a Go map. The error of a
        configuration is an answer.
        """
        return tells_nothing(self.kind, self.want)

    @property
    def parts(self) -> frozenset[str]:
        """Return the parts of the answer that differ."""
        return frozenset(each.part for each in self.differences)


def try_cases(ask: Ask, cases: Sequence[JsonObject], kind: str = CYCLES) -> Iterator[Trial]:
    """Yield a trial for each case."""
    for case, want in zip(cases, ask(cases), strict=True):
        if kind == SAMPLED:
            case = follow_hosts(case, want)
        recorded = RecordedCase(
            CYCLES if kind == VICTIMS else kind, str(case["id"]), "fuzz", str(case.get("note", "")), "fuzz", case, want
        )
        # The API already rejects the objects that the real scheduler rejects or panics at, so there is nothing to
        # compare.
        nothing = tells_nothing(kind, want)
        differences = () if nothing else tuple(compare(recorded, answer(recorded)).differences)
        yield Trial(case, want, differences, kind)


def follow_hosts(case: JsonObject, want: JsonObject) -> JsonObject:
    """Return a sampled case with the nodes that the real scheduler chose, which are random among the best."""
    sampled = want.get("sampled")
    pods = sampled if isinstance(sampled, list) else []
    return {**case, "follow": [pod.get("host") if isinstance(pod, dict) else None for pod in pods]}


def tells_nothing(kind: str, want: JsonObject) -> bool:
    """Return whether an answer of the real scheduler to a case of this kind can't be compared with ours."""
    if kind == CONFIG:
        # The program panics if it can't reset the gates after another case.
        return want.get("stage") in ("featureGates", "panic") or bool(want.get("unstable"))
    return bool(want.get("error") or want.get("unstable"))
