"""Lists in parts: objects are written while the rest of a list still arrives, with the same result."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.base.plain_data import Document, part
from bayplan.client.connection import ApiConnection, ConnectionLost
from bayplan.client.reflector import RetryTimes
from bayplan.sync.feed import FeedChange, Listed, PartListed
from bayplan.sync.followed_kinds import ObjectRef
from bayplan.sync.follower import Follower
from bayplan.sync.memory import Memory
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.reflected_feed import ReflectedFeed
from bayplan.sync.writing import read_memory, save_memory
from tests.sync.follower_fixture import NS, FollowerFixture, node, pod
from tests.sync.test_reflected_feed import Script, end_of_list, event, service

pytestmark = pytest.mark.usefixtures("way")


class InitialSync(FollowerFixture):
    """A source and a target, with a follower that a test lets list the source."""

    def __init__(self) -> None:
        super().__init__(("nodes", "pods"))
        self.put("nodes", node("n"))
        self.begin()

    def begin(self) -> None:
        """Start or restart the follower: it knows the target's objects, and none of the source."""
        memory = Memory()
        memory.load(self.here.drive(read_memory()))
        self.follower = Follower(self.policy, memory, self.kinds)
        self.list_local()

    def list_part(self, plural: str, *names: str) -> None:
        """Deliver some objects before the list is complete."""
        self.follower.source_part_listed(plural, [self.source[self.ref(plural, name)] for name in names])

    def list_all(self, plural: str, *reported: str) -> None:
        """Deliver the whole list, except the objects of earlier parts."""
        refs = [self.ref(plural, name) for name in reported]
        rest = [each for ref, each in self.source.items() if ref.plural == plural and ref not in refs]
        self.follower.source_listed(plural, rest, refs)

    def ref(self, plural: str, name: str) -> ObjectRef:
        """Return the name of an object."""
        return ObjectRef(plural, NS if plural == "pods" else "", name)

    def do(self) -> None:
        """Write what can be written now."""
        for _ in range(20):
            self.deliver_local_events()
            self._execute(self.follower.next_writes(5))

    def pods(self) -> dict[str, str]:
        """Return the node of each pod of the target."""
        found = self.here.list("pods")[0]
        return {str(part(each, "metadata")["name"]): str(part(each, "spec").get("nodeName", "")) for each in found}


def test_pods_are_created_while_their_list_arrives_and_after_nodes() -> None:
    fixture = InitialSync()
    fixture.put("pods", pod("a", node_name="n"))
    fixture.put("pods", pod("b", node_name="n"))
    fixture.list_part("pods", "a")
    fixture.do()
    assert fixture.pods() == {}, "nodes are not listed yet"
    fixture.list_all("nodes")
    fixture.do()
    assert fixture.here.get("nodes", "n") is not None
    assert fixture.pods() == {"a": "n"}
    assert not fixture.follower.is_idle
    fixture.list_all("pods", "a")
    fixture.work()
    assert fixture.pods() == {"a": "n", "b": "n"}


def test_pods_missing_in_the_complete_list_are_deleted() -> None:
    fixture = InitialSync()
    fixture.list_all("nodes")
    for name in "ab":
        fixture.put("pods", pod(name, node_name="n"))
    fixture.list_part("pods", "a", "b")
    fixture.do()
    fixture.remove("pods", "a")
    fixture.list_all("pods", "b")
    fixture.work()
    assert fixture.pods() == {"b": "n"}


def test_copies_are_not_deleted_before_all_lists_are_complete() -> None:
    fixture = InitialSync()
    for name in "abc":
        fixture.put("pods", pod(name, node_name="n"))
    fixture.start()
    fixture.work()
    fixture.remove("pods", "c")
    fixture.begin()
    fixture.list_all("nodes")
    fixture.list_part("pods", "a")
    fixture.do()
    assert set(fixture.pods()) == {"a", "b", "c"}
    fixture.list_all("pods", "a")
    fixture.work()
    assert set(fixture.pods()) == {"a", "b"}


def test_an_interrupted_initial_sync_resumes() -> None:
    fixture = InitialSync()
    fixture.list_all("nodes")
    for name in "abcd":
        fixture.put("pods", pod(name, node_name="n" if name != "d" else ""))
    fixture.list_part("pods", "a", "b", "d")
    fixture.do()
    assert fixture.pods() == {"a": "n", "b": "n", "d": ""}
    assert fixture.here.drive(save_memory(fixture.follower.memory.take_changes())) is None
    fixture.here.delete_pod("b")
    fixture.put("pods", pod("d", node_name="n"))
    fixture.begin()
    assert not fixture.follower.memory.began
    fixture.list_all("nodes")
    fixture.list_all("pods")
    fixture.work()
    # A pod that was deleted locally stays deleted; a pod without a node is left to the local scheduler.
    assert fixture.pods() == {"a": "n", "c": "n", "d": ""}


NAMES = "abcd"
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "bind", "remove", "part", "do", "delete here", "again"]), st.sampled_from(NAMES)),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_changes_during_the_initial_list_end_in_the_state_of_the_source(
    steps: list[tuple[str, str]],
) -> None:
    fixture = InitialSync()
    fixture.list_all("nodes")
    deleted: dict[str, object] = {}
    for what, name in steps:
        known = fixture.source.get(fixture.ref("pods", name))
        if what == "put" and known is None:
            fixture.put("pods", pod(name))
        elif what == "bind" and known is not None:
            fixture.put("pods", pod(name, node_name="n"))
        elif what == "remove" and known is not None:
            fixture.remove("pods", name)
        elif what == "part" and known is not None:
            fixture.list_part("pods", name)
        elif what == "do":
            fixture.do()
        elif what == "delete here" and name in fixture.pods():
            fixture.do()
            if name in fixture.pods():
                found = fixture.here.get("pods", name)
                assert found is not None
                deleted[name] = part(part(found, "metadata"), "annotations")["bayplan.io/source-uid"]
                fixture.here.delete_pod(name)
                fixture.do()
        elif what == "again":
            assert fixture.here.drive(save_memory(fixture.follower.memory.take_changes())) is None
            fixture.begin()
            fixture.list_all("nodes")
    fixture.list_all("pods")
    fixture.work()
    there = {ref.name: part(each, "metadata")["uid"] for ref, each in fixture.source.items() if ref.plural == "pods"}
    here = {}
    for each in fixture.here.list("pods")[0]:
        metadata = part(each, "metadata")
        here[str(metadata["name"])] = part(metadata, "annotations")["bayplan.io/source-uid"]
    want = {name: uid for name, uid in there.items() if deleted.get(name) != uid}
    assert {name: uid for name, uid in here.items() if deleted.get(name) != uid} == want
    assert not fixture.follower.problems


def short(change: FeedChange) -> str:
    """Return a short form of complete and partial lists."""
    assert isinstance(change, Listed | PartListed)
    names = ",".join(str(part(each, "metadata")["name"]) for each in change.documents)
    emitted = ",".join(each.name for each in change.emitted) if isinstance(change, Listed) else "part"
    return f"{names} ({emitted})"


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        pytest.param(
            True, ["x (part)", "x (part)", "y (part)", " (x,y)"], id="parts as they arrive, again after a cut"
        ),
        pytest.param(False, ["x,y ()"], id="the whole list"),
    ],
)
def test_a_feed_reports_partial_lists_on_request(parts: bool, want: list[str]) -> None:
    first: list[Document | Exception] = [event("ADDED", service("x", 3)), ConnectionLost("away")]
    second: list[Document | Exception] = [
        event("ADDED", service("x", 3)),
        event("ADDED", service("y", 4)),
        end_of_list(5),
    ]

    async def run() -> list[str]:
        script, found = Script([first, second]), list[str]()
        times = RetryTimes(first_pause_seconds=0.0)
        feed = ReflectedFeed(
            cast("ApiConnection", script), SyncPolicy(), kinds=("services",), once=True, parts=parts, retry_times=times
        )
        await feed.open()
        await asyncio.wait_for(feed.run(lambda change: found.append(short(change))), 10)
        return found

    assert asyncio.run(run()) == want
