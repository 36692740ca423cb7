"""Batches: writes whose batch is refused, lost or too large, and writes that batches do not support."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from bayplan.apiserver.kinds.pods import PodStrategy
from bayplan.apiserver.model.errors import Cause, forbidden_value
from bayplan.base.plain_data import Document, part
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.sync import batching
from bayplan.sync.document_feed import DocumentFeed
from bayplan.sync.feed import Changed, Listed, OnChange
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.session import AT_ONCE, SyncSession, SyncStatus
from tests.sync.follower_fixture import LocalCluster, node, pod
from tests.sync.test_session import LiveFeed, dumped

PATH = "/bayplan/v1/objects"


class Sender:
    """Sends requests to the target, and replaces responses to batches.

    Args:
        here: the target.
        spoil: the responses to the first batches that are not empty.
    """

    def __init__(self, here: LocalCluster, *spoil: ApiResponse) -> None:
        self.here = here
        self.spoil = list(spoil)
        self.batches: list[int] = []
        self.empty_batches = 0
        self.others: list[str] = []

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Answer a request."""
        await asyncio.sleep(0)
        if request.path != PATH:
            if "configmaps" not in request.path and request.method != "GET":
                self.others.append(f"{request.method} {request.path.rpartition('/')[2]}")
            return await self.here.answer(request)
        if not request.body.strip():
            self.empty_batches += 1
            return await self.here.answer(request)
        self.batches.append(len(request.body.split(b"\n")))
        if self.spoil and self.spoil[0].status not in (NO_ANSWER, 200):
            return self.spoil.pop(0)
        answer = await self.here.answer(request)
        return self.spoil.pop(0) if self.spoil else answer


@pytest.fixture(autouse=True)
def _batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalCluster, "supports_batches", True)


def run_once(sender: Sender, *documents: Document) -> SyncStatus:
    async def run() -> SyncStatus:
        session = SyncSession(DocumentFeed(documents), LiveFeed(sender.here), sender.send, SyncPolicy())
        async with asyncio.timeout(20):
            await session.run(once=True)
        return session.status()

    return asyncio.run(run())


def some() -> list[Document]:
    return [dumped(node("n"), "n"), *(dumped(pod(f"p{number}", node_name="n"), f"u{number}") for number in range(5))]


def pods(here: LocalCluster) -> dict[str, tuple[object, object]]:
    """Return node and phase of each pod."""
    found = {}
    for each in here.list("pods")[0]:
        found[str(part(each, "metadata")["name"])] = (part(each, "spec").get("nodeName"), part(each, "status")["phase"])
    return found


ALL = {f"p{number}": ("n", "Running") for number in range(5)}


def test_all_objects_are_created_by_batches() -> None:
    sender = Sender(LocalCluster())
    status = run_once(sender, *some())
    assert (status.created, status.problems) == (6, [])
    assert pods(sender.here) == ALL
    assert sender.batches == [1, 5]
    assert [each for each in sender.others if each.startswith("POST")] == ["POST namespaces"]


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(ApiResponse(NO_ANSWER, b"connection reset"), 0, id="the response was lost after all writes"),
        pytest.param(ApiResponse(503, b"busy"), 0, id="the server was busy"),
        pytest.param(ApiResponse(413, b"too large"), 1, id="the batch was refused as a whole"),
        pytest.param(ApiResponse(403, b"no"), 1, id="batches are forbidden"),
        pytest.param(
            ApiResponse(200, b'{"items": [{"outcome": "refused", "code": 409}]}'), 1, id="a write met a conflict"
        ),
        pytest.param(
            ApiResponse(200, b'{"items": [{"outcome": "refused", "code": 500}]}'), 1, id="a write met an internal error"
        ),
        pytest.param(ApiResponse(200, b"<html>"), 0, id="the response is empty after all writes"),
        pytest.param(ApiResponse(200, b'{"items": []}'), 0, id="the response belongs to another request"),
    ],
)
def test_objects_are_created_despite_a_failed_batch(answer: ApiResponse, want: int) -> None:
    sender = Sender(LocalCluster(), answer)
    status = run_once(sender, *some())
    assert status.problems == []
    assert pods(sender.here) == ALL
    assert sender.here.get("nodes", "n") is not None
    # If the batch was refused, a single request must have created the node. If only its answer was damaged, none is
    # needed.
    assert sender.others.count("POST nodes") >= want


def test_a_refused_object_does_not_block_the_rest_of_its_batch() -> None:
    sender = Sender(LocalCluster())
    bad = dumped(pod("bad", node_name="n", restartPolicy="Sometimes"), "bad")
    status = run_once(sender, *some(), bad)
    assert [(each.ref.name, "restartPolicy" in each.message) for each in status.problems] == [("bad", True)]
    assert pods(sender.here) == ALL


@pytest.mark.parametrize("supports_batches", [True, False])
def test_nominated_pods_with_a_node_run_in_the_target(supports_batches: bool) -> None:
    sender = Sender(LocalCluster())
    sender.here.supports_batches = supports_batches
    preemptor = dumped(pod("preemptor", node_name="n"), "preemptor")
    part(preemptor, "status")["nominatedNodeName"] = "n"
    status = run_once(sender, *some(), preemptor)
    assert status.problems == []
    assert pods(sender.here) == {**ALL, "preemptor": ("n", "Running")}


@pytest.mark.parametrize("supports_batches", [True, False])
def test_an_object_with_a_refused_status_is_created_without_it(
    supports_batches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: PodStrategy, context: object, new: object, old: object) -> list[Cause]:
        return [forbidden_value("status", "not today")]

    monkeypatch.setattr(PodStrategy, "validate_status", refused)
    sender = Sender(LocalCluster())
    sender.here.supports_batches = supports_batches
    status = run_once(sender, *some())
    assert [each.message.endswith("not today") for each in status.problems] == [True] * 5
    assert pods(sender.here) == dict.fromkeys(ALL, ("n", "Pending"))


def test_large_batches_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 1200)
    sender = Sender(LocalCluster())
    run_once(sender, *some())
    assert pods(sender.here) == ALL
    assert sum(sender.batches) == 6
    assert len(sender.batches) > 2


def test_a_write_above_the_size_of_a_batch_is_sent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 1)
    sender = Sender(LocalCluster())
    run_once(sender, *some())
    assert pods(sender.here) == ALL
    # The empty one asks whether the target supports batches.
    assert (sender.batches, sender.empty_batches) == ([1] * 6, 1)


def test_fields_that_differ_after_a_batch_are_written_afterwards() -> None:
    sender = Sender(LocalCluster())
    # The target's API adds fields to the status of nodes, so the status differs from the source's after the batch.
    status = run_once(sender, dumped(node("n"), "n"))
    assert (status.created, status.problems) == (1, [])
    assert (sender.batches, sender.others[-1]) == ([1], "PUT status")


@pytest.mark.parametrize("supports_batches", [True, False])
def test_an_object_created_by_another_client_is_updated_after_its_event(supports_batches: bool) -> None:
    sender = Sender(LocalCluster())
    sender.here.supports_batches = supports_batches

    class LateFeed(LiveFeed):
        async def run(self, on_change: OnChange) -> None:
            for plural in self.kinds:
                on_change(Listed(plural, [], 1))
            made = await sender.here.answer(ApiRequest("POST", "/api/v1/nodes", msgspec.json.encode(node("n"))))
            await asyncio.sleep(0.2)
            on_change(Changed("nodes", msgspec.json.decode(made.body)))

    async def run() -> SyncStatus:
        source = DocumentFeed([dumped(node("n", unschedulable=True), "n")])
        session = SyncSession(source, LateFeed(sender.here), sender.send, SyncPolicy())
        async with asyncio.timeout(20):
            await session.run(once=True)
        return session.status()

    assert asyncio.run(run()).problems == []
    assert len(sender.batches) + sender.others.count("POST nodes") == 1
    assert part(sender.here.get("nodes", "n") or {}, "spec")["unschedulable"] is True


def test_deletions_are_batched() -> None:
    sender = Sender(LocalCluster())
    run_once(sender, *some())
    sender.batches.clear()
    run_once(sender, dumped(node("n"), "n"))
    assert pods(sender.here) == {}
    assert sender.batches[-1] == 5
    assert not [each for each in sender.others if each.startswith("DELETE")]


def test_a_target_without_batch_support_gets_no_batches() -> None:
    sender = Sender(LocalCluster())
    sender.here.supports_batches = False
    run_once(sender, *some())
    assert pods(sender.here) == ALL
    assert sender.batches == []


def test_single_requests_next_to_batches_respect_the_concurrency_limit() -> None:
    class CrowdedSender(Sender):
        under_way = most = 0

        async def send(self, request: ApiRequest) -> ApiResponse:
            if not request.path.startswith("/api/v1/nodes/"):
                return await super().send(request)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await asyncio.sleep(0.001)
            answer = await super().send(request)
            self.under_way -= 1
            return answer

    sender = CrowdedSender(LocalCluster())
    names = [f"n{number}" for number in range(3 * AT_ONCE)]
    run_once(sender, *(dumped(node(name), name) for name in names))
    # First the second part of a batch (the status), then writes that batches do not support (changes).
    assert sender.most == AT_ONCE
    sender.most = 0
    status = run_once(sender, *(dumped(node(name, unschedulable=True), name) for name in names))
    assert (status.updated, sender.most) == (len(names), AT_ONCE)
    assert all(part(each, "spec")["unschedulable"] is True for each in sender.here.list("nodes")[0])


@pytest.mark.parametrize("status", [500, 503, 504])
def test_targets_without_batch_support_get_single_requests_and_one_log_line(
    status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class ProxySender(Sender):
        async def send(self, request: ApiRequest) -> ApiResponse:
            if request.path == PATH:
                return ApiResponse(status, b"no such upstream")
            return await super().send(request)

    monkeypatch.setattr(batching, "PROBES", 2)
    sender = ProxySender(LocalCluster())
    with caplog.at_level(logging.WARNING, "bayplan.sync"):
        outcome = run_once(sender, *some())
    assert (outcome.created, outcome.problems, pods(sender.here)) == (6, [], ALL)
    assert [record.getMessage() for record in caplog.records] == [
        f"the target refuses batches: the server answered with status {status}; using single requests"
    ]


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param([(503, 1)], True, id="it is busy once"),
        pytest.param([(503, batching.PROBES - 1)], True, id="it is busy one time less than the limit"),
        pytest.param([(503, batching.PROBES)], False, id="it is busy always"),
        pytest.param([(NO_ANSWER, 3 * batching.PROBES)], True, id="it is away for long"),
        pytest.param([(429, 3 * batching.PROBES)], True, id="it is overloaded for a long time"),
        pytest.param([(404, 1)], False, id="it is not a Bayplan server"),
    ],
)
def test_batch_support_is_probed_with_a_limited_number_of_retries(answers: list[tuple[int, int]], want: bool) -> None:
    exchange = batching.supports_batches()
    reported = [ApiResponse(status, b"") for status, times in answers for _ in range(times)]
    reported.append(ApiResponse(200, b'{"items": []}'))
    step: ApiRequest | float = next(exchange)
    found: bool | None = None
    while found is None:
        try:
            step = exchange.send(reported.pop(0)) if isinstance(step, ApiRequest) else next(exchange)
        except StopIteration as end:
            found = end.value
    assert found is want
