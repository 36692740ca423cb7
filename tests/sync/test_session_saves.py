"""Tests of a session's saves that the target refuses: their pauses and messages, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.conformance.api import VirtualLoop
from bayplan.sync.feed import Changed, Listed
from bayplan.sync.memory import MEMORY_NAMESPACE
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.session import STATUS, SyncSession
from tests.sync.follower_fixture import LocalCluster, node
from tests.sync.test_session import BROKEN, KINDS, LiveFeed, ScriptedFeed, dumped

pytestmark = pytest.mark.usefixtures("way")

FORBIDDEN = ApiResponse(403, b'{"message": "no more ConfigMaps"}')
GROWING = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


class SavingSession:
    """A session that copies nodes, and whose target refuses chosen saves.

    Attributes:
        refused: the answers to saves, by what is saved: state or status.
        saves: the times of the first request of each save, by what is saved.
    """

    def __init__(self) -> None:
        self.refused: dict[str, ApiResponse] = {}
        self.saves: dict[str, list[float]] = {"state": [], "status": []}
        self.here = LocalCluster()
        self._feed = ScriptedFeed()
        self.session = SyncSession(self._feed, LiveFeed(self.here), self._send, SyncPolicy(), name="test")

    async def _send(self, request: ApiRequest) -> ApiResponse:
        if request.method == "PUT" and f"/{MEMORY_NAMESPACE}/" in request.path:
            what = STATUS if request.path.endswith(f"/{STATUS}") else "state"
            self.saves[what].append(asyncio.get_running_loop().time())
            if what in self.refused:
                return self.refused[what]
        return await self.here.answer(request)

    async def create(self, name: str) -> None:
        """Create a node in the source, and wait until it is copied."""
        created = self.session.status().created
        self._feed.changes.put_nowait(Changed("nodes", dumped(node(name), name), deleted=False))
        while self.session.status().created == created:
            await asyncio.sleep(0.01)

    def pauses(self, what: str, start: int = 0) -> list[int]:
        """Return the whole seconds between saves, from the one with this index."""
        return [int(after - before) for before, after in pairwise(self.saves[what][start:])]

    def run(self, steps: Callable[[], Awaitable[None]]) -> None:
        """Run the session, and cancel it after the steps of the test."""
        loop = VirtualLoop()
        try:
            loop.run_until_complete(self._run(steps))
        finally:
            loop.close()

    async def _run(self, steps: Callable[[], Awaitable[None]]) -> None:
        for plural in KINDS:
            documents = [dumped(node("n0"), "n0")] if plural == "nodes" else []
            self._feed.changes.put_nowait(Listed(plural, documents, 1))
        task = asyncio.create_task(self.session.run())
        while self.session.status().created < 1 or not self.session.status().idle:
            await asyncio.sleep(0.01)
        await asyncio.sleep(20)
        for times in self.saves.values():
            times.clear()
        await steps()
        task.cancel()
        await asyncio.wait([task])


def test_pauses_after_a_refused_state_grow_until_it_is_saved() -> None:
    saving = SavingSession()

    async def steps() -> None:
        saving.refused["state"] = FORBIDDEN
        await saving.create("n1")
        await asyncio.sleep(1200)
        assert saving.pauses("state") == GROWING
        # The status is saved all the time.
        assert saving.session.status().created == 2
        assert saving.saves[STATUS]
        saving.refused.clear()
        await asyncio.sleep(301)
        saved = len(saving.saves["state"])
        saving.refused["state"] = FORBIDDEN
        await saving.create("n2")
        await asyncio.sleep(10)
        assert saving.pauses("state", saved) == [1, 2, 4]

    saving.run(steps)


def test_a_refused_status_is_saved_again_after_growing_pauses_but_does_not_delay_the_state() -> None:
    saving = SavingSession()

    async def steps() -> None:
        saving.refused[STATUS] = FORBIDDEN
        await saving.create("n1")
        await asyncio.sleep(1200)
        assert saving.pauses(STATUS) == GROWING
        saves = len(saving.saves["state"])
        before = asyncio.get_running_loop().time()
        await saving.create("n2")
        await asyncio.sleep(1)
        assert len(saving.saves["state"]) > saves
        assert saving.saves["state"][saves] - before < 1

    saving.run(steps)


def test_a_refused_state_with_deletions_is_saved_again_after_at_most_five_seconds() -> None:
    saving = SavingSession()

    async def steps() -> None:
        saving.refused["state"] = FORBIDDEN
        await saving.create("n1")
        await asyncio.sleep(100)
        assert saving.pauses("state") == GROWING[:6]
        saves = len(saving.saves["state"])
        await saving.here.answer(ApiRequest("DELETE", "/api/v1/nodes/n1"))
        await asyncio.sleep(19)
        # The first one at once, because the last was more than five seconds ago.
        assert saving.pauses("state", saves) == [5, 5, 5]
        assert saving.saves["state"][saves] < asyncio.get_running_loop().time() - 18

    saving.run(steps)


@pytest.mark.parametrize("error", [BROKEN, FORBIDDEN, ApiResponse(503, BROKEN.body)], ids=["500", "403", "503"])
def test_a_sync_continues_although_its_state_cannot_be_saved(
    error: ApiResponse, caplog: pytest.LogCaptureFixture
) -> None:
    saving = SavingSession()

    async def steps() -> None:
        saving.refused |= {"state": error, STATUS: error}
        await saving.create("n1")
        await saving.create("n2")
        await asyncio.sleep(100)
        saving.refused.clear()
        await asyncio.sleep(100)

    with caplog.at_level(logging.WARNING, "bayplan.sync"):
        saving.run(steps)
    assert sorted((each.levelname, each.getMessage()) for each in caplog.records) == [
        ("WARNING", f"the state of the sync could not be saved: {error.message}; retrying"),
        ("WARNING", "the state of the sync is saved again"),
        ("WARNING", f"the status of the sync could not be saved: {error.message}; retrying"),
        ("WARNING", "the status of the sync is saved again"),
    ]


def test_the_last_save_of_a_sync_announces_no_retry(caplog: pytest.LogCaptureFixture) -> None:
    saving = SavingSession()

    async def steps() -> None:
        saving.refused[STATUS] = FORBIDDEN

    saving.run(steps)
    assert [each.getMessage() for each in caplog.records] == [
        "the status of the sync could not be saved: no more ConfigMaps"
    ]
