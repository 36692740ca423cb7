"""Attempts of an external scheduler are read from the annotations that it writes on pods of our API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from bayplan.app.annotation_reader import known_entries
from bayplan.base.go_text.json import go_json
from bayplan.engine.decision import Outcome, Record
from bayplan.formats.result_annotations import (
    EARLIER_PREFIX,
    HISTORY,
    PREFIX,
    SchedulingResults,
    encode,
    history_of,
    write,
)
from tests.app.servers import FULL, Server, running

OUTSIDE = replace(FULL, schedules=False)
MERGE = "application/merge-patch+json"
PATH = "/api/v1/namespaces/default/pods/p"


def failed(*reasons: str) -> SchedulingResults:
    """Return the results of an attempt that found no node, with one reason for each node."""
    rows = {f"n{number}": {"Licence": reason} for number, reason in enumerate(reasons, start=1)}
    return SchedulingResults(filter=rows, post_filter={name: {} for name in rows})


PLACED = SchedulingResults(
    filter={"n1": {"Licence": "passed"}, "n2": {"Licence": "passed"}},
    score={"n1": {"Licence": 3}, "n2": {"Licence": 7}},
    final_score={"n1": {"Licence": 30}, "n2": {"Licence": 70}},
    selected_node="n2",
)


def annotations_of(*attempts: SchedulingResults) -> dict[str, str]:
    """Return the annotations of a pod after some attempts."""
    found: dict[str, str] = {}
    for attempt in attempts:
        found = write(attempt, found, by_interest=tuple).annotations
    return found


async def annotate(server: Server, annotations: Mapping[str, str | None]) -> None:
    """Annotate the pod as an external scheduler does, and wait until the annotations are read."""
    await server.send("PATCH", PATH, {"metadata": {"annotations": annotations}}, MERGE)
    await server.settle()
    await server.until(lambda: server.simulator.reader.is_idle)


def records(server: Server) -> list[Record]:
    decisions = server.simulator.decisions
    assert all(decisions.is_annotated(number) for number in decisions.numbers_of("default/p"))
    return [decisions[number] for number in decisions.numbers_of("default/p")]


async def all_written(server: Server) -> None:
    """Wait until the server's annotations are written and read back: writing them changes the pod once more."""
    annotator, reader = server.simulator.annotator, server.simulator.reader
    assert annotator is not None
    for _ in range(3):
        await server.settle()
        await server.until(lambda: annotator.is_idle and reader.is_idle)


async def with_pod(server: Server) -> None:
    await server.add_nodes("n1", "n2", "n3")
    await server.add_pod("p")
    await server.settle()


def test_each_new_attempt_in_the_annotations_is_recorded_once() -> None:
    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await with_pod(server)
            await annotate(server, annotations_of(failed("no seat", "no seat")))
            await annotate(server, annotations_of(failed("no seat", "no seat"), PLACED))
            # Changes of the pod that do not touch its annotations add no attempt.
            await server.send("PATCH", PATH, {"metadata": {"labels": {"a": "b"}}}, MERGE)
            await annotate(server, annotations_of(failed("no seat", "no seat"), PLACED))
            found = records(server)
            assert [(it.attempt, it.outcome, it.node, it.message) for it in found] == [
                (1, Outcome.UNSCHEDULABLE, "", "0/3 nodes are available: 2 no seat."),
                (2, Outcome.SCHEDULED, "n2", ""),
            ]
            decision = server.simulator.decisions.decision(server.simulator.decisions.numbers_of("default/p")[1])
            assert decision.names == ("n1", "n2", "n3")
            assert decision.examined.tolist() == [True, True, False]
            assert server.simulator.decisions.annotation_problems == {}

    asyncio.run(scenario())


def test_the_newest_attempt_has_the_message_of_the_pod_condition() -> None:
    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await with_pod(server)
            message = "0/3 nodes are available: 1 no seat. preemption: not helpful."
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            await server.send("PATCH", PATH + "/status", {"status": {"conditions": [condition]}}, MERGE)
            await annotate(server, annotations_of(failed("no desk"), failed("no seat")))
            assert [it.message for it in records(server)] == ["0/1 nodes are available: 1 no desk.", message]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("versions", "want"),
    [
        pytest.param([["a"], ["a", "b"], ["a", "b", "c"]], ["a", "b", "c"], id="it grows"),
        pytest.param([["a", "b"], ["b", "c"]], ["a", "b", "c"], id="its oldest entry is cut off"),
        pytest.param([["a", "b"], ["c", "d"]], ["a", "b", "c", "d"], id="every entry is new"),
        pytest.param([["a"], ["a", "a"]], ["a", "a"], id="an attempt ends as the one before"),
        pytest.param([["a", "b"], ["b"]], ["a", "b"], id="entries are dropped and none is added"),
    ],
)
def test_each_history_entry_is_recorded_once(versions: Sequence[Sequence[str]], want: list[str]) -> None:
    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await with_pod(server)
            for version in versions:
                attempts = [encode(failed(reason)) for reason in version]
                await annotate(server, {**attempts[-1], HISTORY: go_json(attempts)})
            found = records(server)
            assert [it.message.split(": 1 ")[1].rstrip(".") for it in found] == want
            assert [it.attempt for it in found] == list(range(1, len(want) + 1))

    asyncio.run(scenario())


def test_annotations_without_a_history_are_one_attempt_per_change() -> None:
    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await with_pod(server)
            for attempt in (failed("a"), failed("a"), PLACED):
                await annotate(server, encode(attempt))
            assert [(it.attempt, it.node) for it in records(server)] == [(1, ""), (2, "n2")]

    asyncio.run(scenario())


def test_annotations_with_the_prefix_before_v0_4_0_are_read() -> None:
    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await with_pod(server)
            annotations = annotations_of(failed("a"), PLACED)
            earlier = {
                key.replace(PREFIX, EARLIER_PREFIX): text.replace(PREFIX, EARLIER_PREFIX)
                for key, text in annotations.items()
            }
            await annotate(server, earlier)
            assert [(it.attempt, it.node) for it in records(server)] == [(1, ""), (2, "n2")]

    asyncio.run(scenario())


def test_annotations_of_created_pods_are_recorded() -> None:
    """Imported pods may have annotations. The matrix has only their nodes: the cluster's nodes may be different ones."""

    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await server.add_nodes("n1", "n2", "n3")
            container = {"name": "c", "image": "i:1"}
            metadata = {"name": "p", "annotations": annotations_of(failed("a"), PLACED)}
            spec = {"containers": [container], "nodeName": "n2"}
            await server.send("POST", "/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
            await server.settle()
            await server.until(lambda: server.simulator.reader.is_idle)
            assert [(it.attempt, it.node) for it in records(server)] == [(1, ""), (2, "n2")]
            assert server.simulator.decisions.decision(1).names == ("n1", "n2")

    asyncio.run(scenario())


def test_attempt_numbers_restart_for_a_new_pod_with_the_same_name() -> None:
    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await with_pod(server)
            for _ in range(2):
                await annotate(server, annotations_of(PLACED))
                await server.send("DELETE", PATH, {"gracePeriodSeconds": 0})
                await server.add_pod("p")
            assert [it.attempt for it in records(server)] == [1, 1]

    asyncio.run(scenario())


def test_a_pod_deleted_during_reading_is_forgotten() -> None:
    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            reader = server.simulator.reader
            await with_pod(server)
            body = {"metadata": {"annotations": annotations_of(PLACED)}}
            await server.send("PATCH", PATH, body, MERGE)
            await server.send("DELETE", PATH, {"gracePeriodSeconds": 0})
            await server.until(lambda: reader.is_idle)
            assert reader.cached_pods == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        pytest.param({PREFIX + "filter-result": "[1]"}, "filter-result: expected the result", id="another shape"),
        pytest.param(
            {PREFIX + "filter-result": '{"n1":'}, "filter-result: expected the result", id="JSON that ends early"
        ),
        pytest.param(
            {HISTORY: '"x"'}, "result-history: expected a JSON list of attempts", id="a history that is not a list"
        ),
        pytest.param(
            {
                PREFIX + "filter-result": '{"n1":{"F":"passed"}}',
                PREFIX + "score-result": '{"n1":{"F":"1180591620717411303424"}}',
                PREFIX + "finalscore-result": '{"n1":{"F":"1"}}',
            },
            "expected 64-bit scores, got a larger one",
            id="a score beyond 64 bits",
        ),
    ],
)
def test_invalid_annotations_are_logged(
    annotations: dict[str, str], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await with_pod(server)
            with caplog.at_level(logging.WARNING):
                await annotate(server, annotations)
            assert problem in server.simulator.decisions.annotation_problems["default/p"]
            assert problem in caplog.text
            assert records(server) == []
            # The problem is removed when a later version of the pod has valid annotations.
            await annotate(server, dict.fromkeys(annotations) | annotations_of(PLACED))
            assert server.simulator.decisions.annotation_problems == {}
            assert [it.node for it in records(server)] == ["n2"]

    asyncio.run(scenario())


def test_history_entries_without_results_are_not_recorded() -> None:
    """256 KiB hold 87,000 of them; comparing two such histories took minutes."""

    async def scenario() -> None:
        async with running(OUTSIDE) as server:
            await with_pod(server)
            (real,) = history_of(annotations_of(PLACED))
            for first in ({}, {"x": "y"}):
                await annotate(server, {HISTORY: go_json([first, *[{}] * 80_000, real])})
            assert [it.node for it in records(server)] == ["n2"]
            await annotate(server, {HISTORY: "[]"})
            assert len(records(server)) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("before", "now", "want"),
    [
        pytest.param("", "ab", 0, id="nothing was read before"),
        pytest.param("ab", "abc", 2, id="the history has grown"),
        pytest.param("abc", "bcd", 2, id="it has lost its oldest entry"),
        pytest.param("abc", "def", 0, id="all entries are new"),
        pytest.param("abc", "abc", 3, id="nothing has changed"),
        pytest.param("abc", "bc", 2, id="it has only lost its oldest entry"),
        pytest.param("aab", "aaba", 3, id="entries repeat at the beginning"),
        pytest.param("abab", "ababab", 4, id="entries repeat in turn"),
    ],
)
def test_known_entries_counts_the_longest_suffix_that_starts_the_history(before: str, now: str, want: int) -> None:
    assert known_entries([*map(ord, before)], [*map(ord, now)]) == want


def test_known_entries_takes_linear_time() -> None:
    """100,000 entries of which only the last or the first differs: comparing all suffixes took minutes."""
    assert known_entries([*[1] * 99_999, 2], [1] * 100_000) == 0
    assert known_entries([2, *[1] * 99_999], [1] * 100_000) == 99_999


def test_own_result_annotations_are_not_read_as_external_attempts() -> None:
    async def scenario() -> None:
        async with running(replace(FULL, annotations=True)) as server:
            await with_pod(server)
            await server.add_pod("big", cpu="50")
            await all_written(server)
            assert history_of((await server.pod("p"))["metadata"]["annotations"])
            decisions = server.simulator.decisions
            assert len(decisions)
            assert not any(decisions.is_annotated(number) for number in range(len(decisions)))

    asyncio.run(scenario())


def test_own_and_external_attempts_are_distinguished() -> None:
    """A pod is created with annotations; Bayplan then schedules it and adds its own."""

    async def scenario() -> None:
        async with running(replace(FULL, annotations=True)) as server:
            container = {"name": "c", "image": "i:1"}
            metadata = {"name": "p", "annotations": annotations_of(failed("a"))}
            document = {"metadata": metadata, "spec": {"containers": [container]}}
            await server.send("POST", "/api/v1/namespaces/default/pods", document)
            await server.settle()
            await server.add_nodes("n1")
            await all_written(server)
            decisions = server.simulator.decisions
            kinds = [decisions.is_annotated(number) for number in decisions.numbers_of("default/p")]
            assert sorted(kinds) == [False] * (len(kinds) - 1) + [True]
            history = history_of((await server.pod("p"))["metadata"]["annotations"])
            assert history[0] == encode(failed("a"))
            assert len(history) == len(kinds)

    asyncio.run(scenario())
