"""Random cases of preemption: a seed always gives the same case, and in most, sorting equal victims is unstable."""

from __future__ import annotations

from collections import Counter

from fuzz.victims import random_victims_case

from bayplan.base.go_sort import MAX_INSERTION_SORTED
from bayplan.conformance.answers import answer
from bayplan.conformance.cases import JsonObject, RecordedCase
from bayplan.conformance.victims import victim_ranks
from tests.conformance.recorded import at

COUNT = 20


def test_a_case_depends_only_on_its_seed_and_number() -> None:
    assert random_victims_case(7, 3) == random_victims_case(7, 3)
    assert random_victims_case(7, 4) != random_victims_case(7, 3)


def test_cases_are_accepted_and_many_preempt_among_many_equal_victims() -> None:
    preempting = crowded = 0
    for number in range(COUNT):
        case: JsonObject = random_victims_case(1, number)
        found = answer(RecordedCase("cycles", str(case["id"]), "fuzz", "", "fuzz", case, {}))
        assert not found.failure
        assert found.body["error"] is None
        preemption = at(found.body, "cycles", 0, "preemption")
        preempting += isinstance(preemption, dict) and bool(preemption["victims"])
        crowded += max(Counter(victim_ranks(case).values()).values()) > MAX_INSERTION_SORTED
    assert preempting >= COUNT // 3
    assert crowded >= COUNT // 2
