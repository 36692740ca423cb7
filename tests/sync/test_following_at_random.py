"""Random histories of a source, delivered in random ways: the target depends only on the source's delivered state."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.base.plain_data import part
from bayplan.sync.followed_kinds import ObjectRef
from tests.sync.world import NS, World, node, pod

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

    def __init__(self, world: World) -> None:
        self.world = world
        self.kept: dict[str, str] = {}
        self.deleted_here: set[str] = set()

    def copies(self) -> dict[str, str]:
        """Return the source's uids of the copies here, by name."""
        found: dict[str, str] = {}
        for document in self.world.here.list("pods")[0]:
            metadata = part(document, "metadata")
            found[str(metadata["name"])] = str(part(metadata, "annotations")["bayplan.io/source-uid"])
        return found

    def delete_local(self, name: str) -> None:
        """Delete a copy, as preemption does."""
        uid = self.copies().get(name)
        if uid is not None:
            self.world.here.delete_pod(name)
            self.deleted_here.add(uid)

    def check(self) -> None:
        """Compare the cluster here with what is known of each pod."""
        copies = self.copies()
        for name in NAMES:
            source = self.world.source.get(ObjectRef("pods", NS, name))
            here = self.world.here.get("pods", name)
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


def act(world: World, model: Model, what: str, name: str, number: int) -> None:
    """Do one step."""
    source = world.source.get(ObjectRef("pods", NS, name))
    if what == "create" and source is None:
        world.put("pods", pod(name))
    elif what == "label" and source is not None:
        world.put("pods", {**source, "metadata": {**part(source, "metadata"), "labels": {"l": str(number)}}})
    elif what == "bind" and source is not None:
        world.put("pods", {**source, "spec": {**part(source, "spec"), "nodeName": "there"}})
    elif what == "finish" and source is not None:
        world.put("pods", {**source, "status": {"phase": "Succeeded"}})
    elif what == "delete" and source is not None:
        world.remove("pods", name)
    elif what in ("tell", "tell merged"):
        world.tell(merged=what == "tell merged")
    elif what == "relist":
        world.relist()
    elif what == "relist here":
        world.relist_local()
    elif what == "work":
        world.work()
    elif what == "begin writes":
        world.begin_writes()
    elif what == "end writes":
        world.end_writes()
    elif what == "restart":
        world.start()
    elif what == "delete here":
        model.delete_local(name)
    elif what == "bind here":
        here = world.here.get("pods", name)
        if here is not None and not part(here, "spec").get("nodeName") and part(here, "status")["phase"] == "Pending":
            world.here.bind(name, "here")


@settings(max_examples=150, deadline=None)
@given(beginning=st.lists(st.sampled_from(("", "waits", "there")), min_size=3, max_size=3), steps=STEPS)
def test_random_histories_and_deliveries_end_in_the_expected_state(
    beginning: list[str], steps: list[tuple[str, str]]
) -> None:
    world = World()
    world.put("nodes", node("there"))
    world.put("nodes", node("here"))
    model = Model(world)
    for name, kind in zip(NAMES, beginning, strict=True):
        if kind:
            made = world.put("pods", pod(name, node_name="there" if kind == "there" else ""))
            if kind == "there":
                model.kept[str(part(made, "metadata")["uid"])] = "there"
    world.start()
    for number, (what, name) in enumerate(steps):
        act(world, model, what, name, number)
    world.tell()
    world.work()
    model.check()
