"""Random sampled cases: a seed always gives the same case, some cycles sample nodes, and all pods are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuzz.sampling import random_sampled_case
from fuzz.trial import SAMPLED, try_cases

from bayplan.conformance.answers import answer
from bayplan.conformance.cases import Json, JsonObject, RecordedCase
from tests.conformance.recorded import at

COUNT = 30


def ours(case: JsonObject) -> JsonObject:
    found = answer(RecordedCase(SAMPLED, str(case["id"]), "fuzz", "", "fuzz", case, {}))
    assert not found.failure, case["id"]
    return found.body


def pods_of(body: JsonObject) -> list[Json]:
    sampled = body["sampled"]
    assert isinstance(sampled, list)
    return sampled


def test_a_case_depends_only_on_its_seed_and_number() -> None:
    assert random_sampled_case(7, 3) == random_sampled_case(7, 3)
    assert random_sampled_case(7, 4) != random_sampled_case(7, 3)


def test_cases_are_accepted_and_some_searches_end_early() -> None:
    ended, looked_at_all = 0, 0
    for number in range(COUNT):
        case = random_sampled_case(1, number)
        body = ours(case)
        assert body["error"] is None
        objects = case["objects"]
        assert isinstance(objects, list)
        count = sum(at(item, "kind") == "Node" for item in objects)
        for pod in pods_of(body):
            evaluated = at(pod, "evaluated")
            assert isinstance(evaluated, int)
            ended += 0 < evaluated < count
            looked_at_all += evaluated >= count
    assert ended > COUNT
    assert looked_at_all > COUNT


def test_later_pods_are_compared_after_following_the_recorded_hosts() -> None:
    """A real scheduler that always takes the last of the best nodes instead of the first agrees with us."""

    def ask(cases: Sequence[JsonObject]) -> Iterator[JsonObject]:
        for case in cases:
            follow: list[Json] = []
            body: JsonObject = {}
            for number in range(len(pods_of(ours(case)))):
                body = ours({**case, "follow": [*follow]})
                hosts = at(pods_of(body)[number], "hosts")
                assert isinstance(hosts, list)
                follow.append(hosts[-1] if hosts else None)
            body = ours({**case, "follow": follow})
            yield body

    trials = list(try_cases(ask, [random_sampled_case(3, number) for number in range(6)], SAMPLED))
    assert [trial.differences for trial in trials] == [()] * 6
    # At least once the recorded node must not be the first by name, or the test would prove nothing.
    assert any(
        at(pod, "host") != at(pod, "hosts", 0)
        for trial in trials
        for pod in pods_of(trial.want)
        if at(pod, "host") is not None
    )
