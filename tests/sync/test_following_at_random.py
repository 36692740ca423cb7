"""Random histories of a source, delivered in random ways: the target depends only on the source's delivered state."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.base.plain_data import part
from bayplan.sync.followed_kinds import ObjectRef
from tests.sync.follower_fixture import NS, FollowerFixture, node, pod

pytestmark = pytest.mark.usefixtures("way")

NAMES = ("a", "b", "c")

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "create",
                "bind",
                "finish",
                "label",
                "delete",
                "tell",
                "tell merged",
                "relist",
                "relist here",
                "work",
                "begin writes",
                "end writes",
                "restart",
                "bind here",
                "delete here",
            )
        ),
        st.sampled_from(NAMES),
    ),
    max_size=30,
)


class Model:
    """The expected local objects, with every event delivered immediately: by source uid, whether it keeps its node."""

    def __init__(self, fixture: FollowerFixture) -> None:
        self.fixture = fixture
        self.kept: dict[str, str] = {}
        self.deleted_here: set[str] = set()

    def copies(self) -> dict[str, str]:
        """Return the source's uids of the copies in the target, by name."""
        found: dict[str, str] = {}
        for document in self.fixture.here.list("pods")[0]:
            metadata = part(document, "metadata")
            found[str(metadata["name"])] = str(part(metadata, "annotations")["bayplan.io/source-uid"])
        return found

    def delete_local(self, name: str) -> None:
        """Delete a copy, as preemption does."""
        uid = self.copies().get(name)
        if uid is not None:
            self.fixture.here.delete_pod(name)
            self.deleted_here.add(uid)

    def check(self) -> None:
        """Compare the target with the model of each pod."""
        copies = self.copies()
        for name in NAMES:
            source = self.fixture.source.get(ObjectRef("pods", NS, name))
            here = self.fixture.here.get("pods", name)
            if source is None:
                assert here is None, f"{name} is gone there"
                continue
            uid = str(part(source, "metadata")["uid"])
            if uid in self.deleted_here:
                assert here is None, f"{name} was deleted here"
                continue
            finished = part(source, "status")["phase"] == "Succeeded"
            if here is None:
                assert finished, f"{name} is missing"
                continue
            assert copies[name] == uid
            if uid in self.kept:
                assert part(here, "spec").get("nodeName") == self.kept[uid]
            else:
                assert part(here, "spec").get("nodeName") in (None, "here")
            assert (part(here, "status").get("phase") == "Succeeded") is finished
            if not finished and not part(source, "spec").get("nodeName"):
                assert part(part(here, "metadata"), "labels") == part(part(source, "metadata"), "labels")


def act(fixture: FollowerFixture, model: Model, what: str, name: str, number: int) -> None:
    """Do one step."""
    source = fixture.source.get(ObjectRef("pods", NS, name))
    if what == "create" and source is None:
        fixture.put("pods", pod(name))
    elif what == "label" and source is not None:
        fixture.put("pods", {**source, "metadata": {**part(source, "metadata"), "labels": {"l": str(number)}}})
    elif what == "bind" and source is not None:
        fixture.put("pods", {**source, "spec": {**part(source, "spec"), "nodeName": "there"}})
    elif what == "finish" and source is not None:
        fixture.put("pods", {**source, "status": {"phase": "Succeeded"}})
    elif what == "delete" and source is not None:
        fixture.remove("pods", name)
    elif what in ("tell", "tell merged"):
        fixture.tell(merged=what == "tell merged")
    elif what == "relist":
        fixture.relist()
    elif what == "relist here":
        fixture.relist_local()
    elif what == "work":
        fixture.work()
    elif what == "begin writes":
        fixture.begin_writes()
    elif what == "end writes":
        fixture.end_writes()
    elif what == "restart":
        fixture.start()
    elif what == "delete here":
        model.delete_local(name)
    elif what == "bind here":
        here = fixture.here.get("pods", name)
        if here is not None and not part(here, "spec").get("nodeName") and part(here, "status")["phase"] == "Pending":
            fixture.here.bind(name, "here")


@settings(max_examples=150, deadline=None)
@given(beginning=st.lists(st.sampled_from(("", "waits", "there")), min_size=3, max_size=3), steps=STEPS)
def test_random_histories_and_deliveries_end_in_the_expected_state(
    beginning: list[str], steps: list[tuple[str, str]]
) -> None:
    fixture = FollowerFixture()
    fixture.put("nodes", node("there"))
    fixture.put("nodes", node("here"))
    model = Model(fixture)
    for name, kind in zip(NAMES, beginning, strict=True):
        if kind:
            made = fixture.put("pods", pod(name, node_name="there" if kind == "there" else ""))
            if kind == "there":
                model.kept[str(part(made, "metadata")["uid"])] = "there"
    fixture.start()
    for number, (what, name) in enumerate(steps):
        act(fixture, model, what, name, number)
    fixture.tell()
    fixture.work()
    model.check()
