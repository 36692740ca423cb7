"""Gang: a group is placed as a whole or not at all, waits for its members, gives up together, and is tried again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import ConfigurationError
from bayplan.contrib.gang import GROUP_LABEL, SIZE_LABEL, Gang, GangArgs, read_arguments, room_for
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.testing import check_plugin, make_node, make_pod
from tests.engine.recorders import SECOND, as_tuples, confirm, make_scheduler, on_nodes, small_node, waits


def member(name: str, group: str, size: object = 2, *, cpu: str = "1") -> Pod:
    return make_pod(name).req(cpu=cpu).label(**{GROUP_LABEL: group, SIZE_LABEL: str(size)}).obj()


def start(*nodes: str) -> Scheduler:
    return make_scheduler(Gang, in_tree=("NodeResourcesFit",), nodes=nodes)


def arrive(scheduler: Scheduler, *pods: Pod, at_s: int = 0) -> list[tuple[str, ...]]:
    """Add pods and try all that are ready; return the scheduler's actions, without nominations."""
    actions: list[tuple[str, ...]] = []
    for pod in pods:
        actions += as_tuples(scheduler.handle(None, pod, at_s * SECOND))
    return actions + run(scheduler, at_s)


def run(scheduler: Scheduler, at_s: int) -> list[tuple[str, ...]]:
    actions: list[tuple[str, ...]] = as_tuples(scheduler.tick(at_s * SECOND))
    while (report := scheduler.schedule_one(at_s * SECOND)) is not None:
        actions += as_tuples(report.actions)
    return [each for each in actions if each[0] != "nominate"]


def conditions(actions: list[tuple[str, ...]]) -> dict[str, str]:
    return {each[1]: each[3] for each in actions if each[0] == "condition"}


def bound(actions: list[tuple[str, ...]]) -> list[str]:
    return [each[1] for each in actions if each[0] == "bind"]


def test_pods_without_a_group_are_scheduled_normally() -> None:
    scheduler = start("n1")
    assert bound(arrive(scheduler, make_pod("p").obj())) == ["p"]


def test_members_wait_at_permit_until_the_last_one_has_a_node() -> None:
    scheduler = start("n1", "n2")
    pods = [member(name, "g", 3) for name in "abc"]
    for pod in pods:
        scheduler.handle(None, pod, 0)
    assert bound(as_tuples(scheduler.schedule_one(0).actions)) == []  # type: ignore[union-attr]
    assert bound(as_tuples(scheduler.schedule_one(0).actions)) == []  # type: ignore[union-attr]
    assert [waiting.pending_plugins for waiting in scheduler.waiting_pods] == [("Gang",), ("Gang",)]
    assert bound(as_tuples(scheduler.schedule_one(0).actions)) == ["c", "a", "b"]  # type: ignore[union-attr]
    assert len(scheduler.waiting_pods) == 0


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([member("a", "g", 3)], "gang default/g has 1 of 3 pods", id="too few members"),
        pytest.param(
            [member("a", "g", "many")],
            f"pod of gang default/g without a number in label {SIZE_LABEL}",
            id="a size that is no number",
        ),
        pytest.param(
            [member(name, "g", 3) for name in "abc"],
            "gang default/g needs room for 3 more pods, but there is room for 2",
            id="more members than there is room for",
        ),
    ],
)
def test_an_incomplete_or_too_large_group_is_rejected_in_pre_filter(pods: list[Pod], want: str) -> None:
    scheduler = start("n1")
    actions = arrive(scheduler, *pods)
    assert conditions(actions)["a"] == f"0/1 nodes are available: {want}."
    assert on_nodes(scheduler) == {}
    queued = scheduler.queue.get("default/a")
    assert queued is not None
    assert queued.unschedulable_plugins == {"Gang"}


def test_members_in_another_namespace_do_not_count() -> None:
    scheduler = start("n1")
    other = make_pod("b", "shop").label(**{GROUP_LABEL: "g", SIZE_LABEL: "2"}).obj()
    actions = arrive(scheduler, member("a", "g"), other)
    assert conditions(actions)["a"] == "0/1 nodes are available: gang default/g has 1 of 2 pods."


def test_rejected_members_are_retried_when_the_group_is_complete() -> None:
    scheduler = start("n1", "n2")
    arrive(scheduler, member("a", "g", 3), member("b", "g", 3))
    assert waits(scheduler) == {"a": "unschedulable", "b": "unschedulable"}
    assert sorted(bound(arrive(scheduler, member("c", "g", 3), at_s=1))) == ["a", "b", "c"]


def test_a_permit_timeout_of_one_member_rejects_the_whole_group() -> None:
    scheduler = start("n1", "n2")
    # The nodes have enough resources in total, but no single node is large enough for c.
    arrive(scheduler, *[member(name, "g", 3) for name in "ab"], member("c", "g", 3, cpu="9"))
    assert [waiting.pod.metadata.name for waiting in scheduler.waiting_pods] == ["a", "b"]
    assert scheduler.next_wakeup_ns(0) == 60 * SECOND
    late = "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Gang."
    assert conditions(as_tuples(scheduler.tick(60 * SECOND))) == {
        "a": late,
        "b": "0/1 nodes are available: 1 gang default/g was abandoned.",
    }
    assert on_nodes(scheduler) == {}


def test_a_partially_placed_group_is_rejected_and_retried_when_another_group_ends() -> None:
    scheduler = start("n1", "n2")
    # Two groups of three pods compete for four places. red gets the last place and is bound; blue lacks one place.
    pods = [member(f"{group}-{number}", group, 3) for number in range(3) for group in ("red", "blue")]
    actions = arrive(scheduler, *pods)
    assert sorted(bound(actions)) == ["red-0", "red-1", "red-2"]
    assert set(conditions(actions)) == {"blue-1", "blue-2"}
    assert [waiting.pod.metadata.name for waiting in scheduler.waiting_pods] == ["blue-0"]
    for number in range(3):
        confirm(scheduler, f"red-{number}", on_nodes(scheduler)[f"red-{number}"], 0)
    late = "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Gang."
    assert conditions(run(scheduler, 60)) == {"blue-0": late}
    assert sorted(on_nodes(scheduler)) == ["red-0", "red-1", "red-2"]
    # The rejection of blue does not cause a retry, but the deletion of red's pods does.
    assert set(waits(scheduler).values()) == {"unschedulable"}
    for number in range(3):
        scheduler.handle(scheduler.pods[f"default/red-{number}"], None, 90 * SECOND)
    assert sorted(bound(run(scheduler, 120))) == ["blue-0", "blue-1", "blue-2"]


def test_deleting_a_member_rejects_the_waiting_members() -> None:
    scheduler = start("n1", "n2")
    pods = [member(name, "g", 3) for name in "abc"]
    for pod in pods:
        scheduler.handle(None, pod, 0)
    scheduler.schedule_one(0)
    scheduler.schedule_one(0)
    actions = as_tuples(scheduler.handle(pods[0], None, SECOND))
    assert conditions(actions)["b"] == "0/1 nodes are available: 1 gang default/g was abandoned."
    assert on_nodes(scheduler) == {}


def test_members_beyond_the_group_size_are_scheduled() -> None:
    scheduler = start("n1", "n2")
    assert len(bound(arrive(scheduler, *[member(name, "g", 2) for name in "abc"]))) == 3


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(None, GangArgs(), id="none"),
        pytest.param({"apiVersion": "v1", "permitTimeoutSeconds": 5}, GangArgs(permit_timeout_seconds=5), id="a time"),
        pytest.param(
            {"groupLabel": "a", "sizeLabel": "b"}, GangArgs(group_label="a", size_label="b"), id="labels of one's own"
        ),
    ],
)
def test_arguments_are_parsed_with_defaults(arguments: object, want: GangArgs) -> None:
    assert read_arguments(arguments) == want


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param([], "expected an object, got []", id="a list"),
        pytest.param({"timeout": 5}, "expected one of groupLabel, sizeLabel, permitTimeoutSeconds", id="unknown"),
        pytest.param({"permitTimeoutSeconds": 0}, "expected a whole number from 1, got 0", id="no time"),
        pytest.param({"permitTimeoutSeconds": True}, "expected a whole number from 1, got True", id="no number"),
        pytest.param({"groupLabel": ""}, "expected a label, got ''", id="no label"),
    ],
)
def test_invalid_arguments_are_refused(arguments: Any, want: str) -> None:
    with pytest.raises(ConfigurationError, match="pluginConfig of Gang") as raised:
        read_arguments(arguments)
    assert want in str(raised.value)


@given(
    nodes=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 4)), max_size=5),
    taken=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=6),
    cpu=st.integers(0, 3),
    memory=st.integers(0, 3),
)
def test_room_for_matches_filling_the_nodes_one_by_one(
    nodes: list[tuple[int, int, int]], taken: list[tuple[int, int]], cpu: int, memory: int
) -> None:
    cluster = ClusterState()
    free: list[list[int]] = []
    for number, (cpus, gigas, pods) in enumerate(nodes):
        cluster.add_node(make_node(f"n{number}").capacity(cpu=str(cpus), memory=f"{gigas}Gi", pods=str(pods)).obj())
        free.append([cpus, gigas, pods])
    for number, (where, cpus) in enumerate(taken):
        if where < len(nodes):
            cluster.place(cluster.pod_info(make_pod(f"p{number}").req(cpu=str(cpus)).obj()), where)
            free[where][0] -= cpus
            free[where][2] -= 1
    count = 0
    for cpus_left, gigas_left, places in free:
        while places > 0 and cpus_left >= cpu and gigas_left >= memory:
            cpus_left, gigas_left, places, count = cpus_left - cpu, gigas_left - memory, places - 1, count + 1
    pod = make_pod("p").req(cpu=str(cpu), memory=f"{memory}Gi").obj()
    # A pod that does not request CPU fits a node whose CPU is overcommitted, so such cases are excluded.
    if cpu or all(each[0] >= 0 for each in free):
        assert room_for(cluster.footprint(pod).vector, cluster) == count


def test_a_deleted_node_has_no_room() -> None:
    scheduler = start("n1", "n2")
    scheduler.handle(small_node("n1"), None, 0)
    actions = arrive(scheduler, *[member(name, "g", 3) for name in "abc"])
    assert "there is room for 2" in conditions(actions)["a"]


def test_gang_passes_the_plugin_contract_check() -> None:
    check_plugin(Gang, labels={GROUP_LABEL: ("red", "blue"), SIZE_LABEL: ("1", "2", "3")}, clusters=25)
