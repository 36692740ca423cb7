"""The object store: versions, uids, events, indexes; a model test of random writes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from msgspec.structs import replace

from bayplan.base.errors import InputError, InvariantError
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.owned_pods import JOB_TRACKING_FINALIZER, is_active, is_finished, is_ready
from bayplan.cluster.store import ADDED, DELETED, MODIFIED, ObjectStore
from bayplan.objects.meta import KubernetesObject, ObjectMeta, OwnerReference
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodCondition, PodSpec, PodStatus
from bayplan.objects.workloads import ReplicaSet


def store(seed: int = 1) -> ObjectStore:
    return ObjectStore(RandomStreams(seed).stream("uids"))


def owner(uid: str, *, controller: bool = True, kind: str = "ReplicaSet") -> OwnerReference:
    return OwnerReference(api_version="apps/v1", kind=kind, name=f"name-{uid}", uid=uid, controller=controller)


def make_pod(name: str, *, node: str = "", owners: tuple[OwnerReference, ...] = (), phase: str = "Pending") -> Pod:
    metadata = ObjectMeta(name=name, namespace="default", owner_references=owners)
    return Pod(metadata=metadata, spec=PodSpec(node_name=node), status=PodStatus(phase=phase))


def test_an_added_object_gets_version_uid_and_creation_time() -> None:
    objects = store()
    labels = {"a": "b"}
    spec = PodSpec(node_name="n")
    stored = objects.add(Pod(metadata=ObjectMeta(name="p", namespace="default", labels=labels), spec=spec), 90 * 10**9)
    assert stored.spec is spec
    assert stored.metadata.labels is labels
    assert stored.metadata.creation_timestamp == "1970-01-01T00:01:30Z"
    assert stored.metadata.resource_version == "1"
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", stored.metadata.uid)
    assert objects.get(Pod, "default/p") is stored


def test_an_existing_uid_and_creation_time_are_preserved() -> None:
    metadata = ObjectMeta(name="n", uid="u", creation_timestamp="2020-01-01T00:00:00Z")
    stored = store().add(Node(metadata=metadata), 0)
    assert (stored.metadata.uid, stored.metadata.creation_timestamp) == ("u", "2020-01-01T00:00:00Z")


def test_uids_depend_only_on_the_seed() -> None:
    assert [store(1).new_uid() for _ in range(2)] == [store(1).new_uid() for _ in range(2)]
    objects = store(1)
    uids = [objects.new_uid() for _ in range(1000)]
    assert len(set(uids)) == 1000
    assert store(2).new_uid() not in uids


def test_every_write_emits_an_event_with_the_next_version() -> None:
    objects = store()
    first = objects.add(make_pod("p"), 0)
    second = objects.update(replace(first, spec=PodSpec(node_name="n")))
    objects.remove(Pod, "default/p")
    events = objects.take_journal()
    assert [(event.type, event.resource_version) for event in events] == [(ADDED, 1), (MODIFIED, 2), (DELETED, 3)]
    assert [(event.old, event.new) for event in events] == [(None, first), (first, second), (second, None)]
    assert [event.object for event in events] == [first, second, second]
    assert objects.take_journal() == []


def with_uid(pod: Pod, uid: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, uid=uid))


@pytest.mark.parametrize(
    ("write", "want"),
    [
        pytest.param(lambda objects: objects.add(make_pod("p"), 0), InputError, id="a name in use"),
        pytest.param(lambda objects: objects.update(make_pod("q")), InvariantError, id="an update of nothing"),
        pytest.param(
            lambda objects: objects.update(with_uid(make_pod("p"), "other")),
            InvariantError,
            id="an update of another object of that name",
        ),
        pytest.param(lambda objects: objects.remove(Pod, "default/q"), InvariantError, id="a removal of nothing"),
    ],
)
def test_invalid_writes_are_refused(write: Callable[[ObjectStore], Pod], want: type[Exception]) -> None:
    objects = store()
    stored = objects.add(make_pod("p"), 0)
    with pytest.raises(want):
        write(objects)
    assert objects.get(Pod, "default/p") is stored


def test_pods_are_indexed_by_node_and_owner() -> None:
    objects = store()
    a = objects.add(make_pod("a", owners=(owner("rs"),)), 0)
    b = objects.add(make_pod("b", node="n1", owners=(owner("rs"), owner("group", controller=False))), 0)
    objects.add(make_pod("c", node="n1"), 0)
    assert [pod.key for pod in objects.pods_on("n1")] == ["default/b", "default/c"]
    a = objects.update(replace(a, spec=PodSpec(node_name="n2")))
    assert [pod.key for pod in objects.pods_on("n2")] == ["default/a"]
    assert list(objects.owned_pods("rs")) == [a, b]
    assert list(objects.owned_pods("group")) == []
    assert objects.dependents("group", Pod) == [b]
    assert objects.has_dependents("rs")
    objects.remove(Pod, "default/a")
    objects.remove(Pod, "default/b")
    assert not objects.has_dependents("rs")
    assert objects.pods_on("n2") == []


def test_dependents_of_all_kinds_are_found_by_owner() -> None:
    objects = store()
    replica_set = ReplicaSet(metadata=ObjectMeta(name="rs", namespace="default", owner_references=(owner("d"),)))
    stored = objects.add(replica_set, 0)
    pod = objects.add(make_pod("p", owners=(owner("d", controller=False),)), 0)
    assert objects.dependents("d", ReplicaSet) == [stored]
    assert objects.places_of_dependents("d") == [(ReplicaSet, stored.key), (Pod, pod.key)]
    assert objects.kinds() == [Pod, ReplicaSet]
    assert list(objects.all(Node)) == []


class RandomWrites(RuleBasedStateMachine):
    """Random writes of pods against lists that are searched from end to end."""

    pods = Bundle("pods")

    @initialize()
    def begin(self) -> None:
        self.store = store()
        self.model: dict[str, Pod] = {}
        self.writes = 0

    @rule(
        target=pods,
        name=st.sampled_from("abcdef"),
        node=st.sampled_from(["", "n1", "n2"]),
        owners=st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True),
        held=st.booleans(),
    )
    def add(self, name: str, node: str, owners: list[str], held: bool) -> str:
        key = f"default/{name}"
        pod = make_pod(name, node=node, owners=tuple(owner(uid, controller=uid == owners[0]) for uid in owners))
        if held:
            pod = replace(pod, metadata=replace(pod.metadata, finalizers=(JOB_TRACKING_FINALIZER,)))
        if key in self.model:
            with pytest.raises(InputError):
                self.store.add(pod, 0)
        else:
            self.model[key] = self.store.add(pod, 0)
            self.writes += 1
        return key

    @rule(
        key=pods,
        phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        ready=st.booleans(),
        deleting=st.booleans(),
        node=st.sampled_from(["", "n1", "n2"]),
        orphan=st.booleans(),
        freed=st.booleans(),
    )
    def update(self, key: str, phase: str, ready: bool, deleting: bool, node: str, orphan: bool, freed: bool) -> None:
        old = self.model.get(key)
        if old is None:
            return
        conditions = (PodCondition(type="Ready", status="True" if ready else "False"),)
        metadata = replace(old.metadata, deletion_timestamp="1970-01-01T00:00:00Z" if deleting else None)
        if orphan:
            metadata = replace(metadata, owner_references=metadata.owner_references[1:])
        if freed:
            metadata = replace(metadata, finalizers=())
        new = Pod(metadata=metadata, spec=PodSpec(node_name=node), status=PodStatus(phase=phase, conditions=conditions))
        self.model[key] = self.store.update(new)
        self.writes += 1

    @rule(key=consumes(pods))
    def remove(self, key: str) -> None:
        if self.model.pop(key, None) is not None:
            self.store.remove(Pod, key)
            self.writes += 1

    @invariant()
    def indexes_match_a_search(self) -> None:
        if not hasattr(self, "model"):
            return
        self.store.check_invariants()
        assert self.store.pods == self.model
        for node in ("n1", "n2"):
            found = {pod.key for pod in self.model.values() if pod.spec.node_name == node}
            assert {pod.key for pod in self.store.pods_on(node)} == found
        for uid in ("x", "y"):
            mine = {key: pod for key, pod in self.model.items() if controls(uid, pod)}
            owned = self.store.owned_pods(uid)
            assert owned.active == {key: pod for key, pod in mine.items() if is_active(pod)}
            assert owned.finished == {key: pod for key, pod in mine.items() if is_finished(pod)}
            assert len(owned) == len(mine)
            assert set(owned.ready) == {key for key, pod in mine.items() if is_active(pod) and is_ready(pod)}
            held = {
                key
                for key, pod in mine.items()
                if not is_active(pod) and JOB_TRACKING_FINALIZER in pod.metadata.finalizers
            }
            assert set(owned.uncounted) == held
            assert all(owned.get(key) is pod for key, pod in mine.items())

    @invariant()
    def versions_count_writes(self) -> None:
        if hasattr(self, "model"):
            assert self.store.resource_version == self.writes


def controls(uid: str, item: KubernetesObject) -> bool:
    controller = item.metadata.controller()
    return controller is not None and controller.uid == uid


TestRandomWrites = RandomWrites.TestCase
TestRandomWrites.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_check_invariants_detects_a_broken_index() -> None:
    objects = store()
    objects.add(make_pod("a", node="n1"), 0)
    objects.pods["default/a"] = replace(objects.pods["default/a"], spec=PodSpec(node_name="n2"))
    with pytest.raises(InvariantError, match="pods by node"):
        objects.check_invariants()
