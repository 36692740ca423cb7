"""What-if questions with several changes: each change sees the pods as earlier changes have left them."""

from __future__ import annotations

from itertools import product

import pytest

from bayplan.answers.changes import Change, parse_change
from bayplan.answers.trial import Trial
from bayplan.answers.what_if import what_if
from bayplan.base.errors import InputError
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.object_builders import make_object
from tests.answers.clusters import cluster_of, node, running
from tests.oracle.changed_pods import ChangedPods

NEW = (
    make_pod("web-1").req(cpu="2", memory="256Mi").label({"app": "web"}).owner("ReplicaSet", "web").obj(),
    make_pod("extra").req(cpu="1").obj(),
)
CHANGES = [
    *map(parse_change, (
        "lose-zone=a", "remove-nodes=n1", "drain=n1", "cordon=n1", "uncordon=n1", "taint=n1:x=y:NoExecute", "untaint=n1:old",
        "resize=n1:cpu=32", "add-nodes=1:cpu=64,memory=64Gi", "scale=web:3", "scale=web:0", "restart=web", "delete=web",
        "priority=web:7",
    )),
    Change("apply", "new.yaml", objects=NEW),
]  # fmt: skip
NODES = (
    make_node("n1").capacity(cpu="64", memory="64Gi").zone("a").taint("old", "", "PreferNoSchedule").obj(),
    node("n2", zone="b", cpu="64", memory="64Gi"),
)


def expected(changes: tuple[Change, ...]) -> ChangedPods | None:
    """Return the pods after some changes; None if one of them is impossible."""
    found = ChangedPods()
    for change in changes:
        if not found.apply(change.kind, int(change.value) if change.kind in ("scale", "priority") else 0):
            return None
    return found


def test_a_stateful_set_is_scaled_down_from_its_last_pod() -> None:
    nodes = {2: "n1", 10: "n1", 0: "n2", 1: "n1"}
    pods = [running(f"db-{n}", on, owner="db", kind="StatefulSet").obj() for n, on in nodes.items()]
    answer = what_if(cluster_of(*NODES, *pods), [parse_change("scale=db:2")])
    assert [row.pod for row in answer.differences] == ["default/db-10", "default/db-2"]


def test_new_pods_of_a_stateful_set_count_from_its_first_ordinal() -> None:
    pods = [running(f"db-{number}", "n1", owner="db", kind="StatefulSet").obj() for number in (5, 7)]
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"ordinals": {"start": 5}, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    item = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"}}
    answer = what_if(cluster_of(*NODES, *pods, make_object({**item, "spec": spec})), [parse_change("scale=db:4")])
    assert [row.pod for row in answer.differences] == ["default/db-6", "default/db-8"]


@pytest.mark.parametrize("first", CHANGES, ids=str)
def test_every_pair_of_changes_has_the_effect_of_both(first: Change) -> None:
    cluster = cluster_of(*NODES, running("web-1", "n1").obj(), running("db-1", "n2", owner="db").obj())
    for changes in [(first,), *product([first], CHANGES)]:
        want = expected(changes)
        priorities: dict[str, int] = {}
        nodes: dict[str, str] = {}

        def look(trial: Trial, priorities: dict[str, int] = priorities, nodes: dict[str, str] = nodes) -> None:
            for key, pod in trial.scheduler.pods.items():
                nodes[key.partition("/")[2]] = trial.node_of(key)
                priorities[key.partition("/")[2]] = pod.spec.priority or 0

        if want is None:
            with pytest.raises(InputError):
                what_if(cluster, changes)
            continue
        what_if(cluster, changes, after=look)
        text = " ".join(map(str, changes))
        assert nodes.keys() == want.places.keys(), text
        assert [key for key, allowed in want.nodes().items() if nodes[key] not in allowed] == [], text
        assert priorities == {key: want.priority[key] for key in nodes}, text


def test_new_nodes_get_pods_of_a_daemon_set_whose_last_pod_has_ended() -> None:
    cluster = cluster_of(*NODES, running("agent", "n1", owner="agent", kind="DaemonSet").obj())
    changes = [parse_change("remove-nodes=n1"), parse_change("add-nodes=1:cpu=4,memory=8Gi")]
    answer = what_if(cluster, changes)
    assert [(row.pod, row.after) for row in answer.differences] == [
        ("default/agent", ""),
        ("default/agent-added-1", "added-1"),
    ]
    answer = what_if(cluster, [changes[0], parse_change("delete=daemonset/agent"), changes[1]])
    assert [row.pod for row in answer.differences] == ["default/agent"]


def test_a_changed_priority_keeps_the_order_of_nominated_pods() -> None:
    pods = [make_pod(name).req(cpu="3").owner("ReplicaSet", "web").priority(0) for name in ("first", "second")]
    cluster = cluster_of(node("n1"), node("n2", cpu="1"), pods[0].obj(), pods[1].nominated("n2").obj())
    nodes: dict[str, str] = {}
    what_if(cluster, [parse_change("priority=web:5")], after=lambda trial: nodes.update(trial.placed))
    assert nodes == {"default/first": "n1"}
