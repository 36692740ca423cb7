"""Suggestions for a waiting pod: which are found, in which order, and which are never proposed."""

from __future__ import annotations

import re

import pytest

from bayplan import Cluster, InputError, RecordLevel, make_node, make_pod
from bayplan.answers.unblock import Unblocking
from bayplan.objects.meta import KubernetesObject, ObjectMeta, OwnerReference
from bayplan.objects.workloads import ReplicaSet
from bayplan.testing.builders import NodeBuilder, PodBuilder
from bayplan.testing.object_builders import (
    make_budget,
    make_claim,
    make_object,
    make_priority_class,
    make_volume,
)
from tests.answers.clusters import device_objects


def node(name: str, zone: str = "eu-1a", cpu: str = "4") -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi").zone(zone)


def running(name: str, on: str, cpu: str = "2", *, owner: str = "web") -> PodBuilder:
    made = make_pod(name).req(cpu=cpu).node(on)
    return made.owner("ReplicaSet", owner) if owner else made


Asked = KubernetesObject | NodeBuilder | PodBuilder


def unblocked(*objects: Asked, target: str = "x") -> Unblocking:
    built = [each.obj() if isinstance(each, NodeBuilder | PodBuilder) else each for each in objects]
    cluster = Cluster(built, record_level=RecordLevel.OFF)
    before = cluster.state.pods.copy()
    found = cluster.unblock(target)
    # Unblock must not change the cluster.
    assert cluster.state.pods == before
    cluster.state.check_invariants()
    return found


def suggested_texts(found: Unblocking, kind: str = "") -> list[str]:
    return [each.text for each in found.suggestions if kind in ("", each.kind)]


THREE = (node("a"), node("b", "eu-1b"), node("c", "eu-1c"))
GPU = node("g").taint("gpu")
FULL = tuple(running(f"web-{name}", name).obj() for name in "abc")


def test_the_blocking_volume_leads_and_a_new_node_in_its_zone_is_best() -> None:
    claim, volume = make_claim("db-data").bound("pv1").obj(), make_volume("pv1").zone("eu-1d").bound("db-data").obj()
    found = unblocked(*THREE, GPU, claim, volume, make_pod("x").claim("db-data"))
    assert found.verdict == (
        "default/x is pending: its volume db-data is in eu-1d; no node is there; "
        "best: add a node like a, but in eu-1d (4 cpu, 8Gi memory)"
    )
    assert {each.kind for each in found.suggestions} == {"add node"}


@pytest.mark.parametrize(
    ("pod", "others", "kind", "want"),
    [
        pytest.param(
            make_pod("x").req(cpu="3"),
            FULL,
            "shrink request",
            ["reduce the request: cpu from 3 to 2"],
            id="too large",
        ),
        pytest.param(
            make_pod("x").node_selector(team="web"),
            (),
            "label node",
            ["label a with team=web", "label b with team=web", "label c with team=web"],
            id="a label that users set",
        ),
        pytest.param(
            make_pod("x").node_selector({"kubernetes.io/arch": "arm64"}),
            (),
            "label node",
            [],
            id="a label that describes the node",
        ),
        pytest.param(
            make_pod("x").node_selector(disktype="ssd"), (), "label node", [], id="a hardware label with its own name"
        ),
        pytest.param(
            make_pod("x").node_selector({"example.com/node-pool": "x"}),
            (),
            "label node",
            [],
            id="a pool label of another provider",
        ),
        pytest.param(
            make_pod("x").node_selector(disk="ssd"),
            (),
            "relax constraint",
            ["drop disk=ssd from the nodeSelector"],
            id="a selector",
        ),
        pytest.param(
            make_pod("x").label(app="w").pod_anti_affinity({"app": "w"}),
            [make_pod(f"w-{name}").label(app="w").node(name).owner("ReplicaSet", "w").obj() for name in "abc"],
            "relax constraint",
            ["make the required pod anti-affinity to app=w in kubernetes.io/hostname preferred"],
            id="anti-affinity",
        ),
        pytest.param(
            make_pod("x").label(app="w").spread({"app": "w"}, "topology.kubernetes.io/zone").req(cpu="3"),
            [running(f"o-{name}", name).obj() for name in "ac"] + [make_pod("w").label(app="w").node("b").obj()],
            "relax constraint",
            ["spread over topology.kubernetes.io/zone with whenUnsatisfiable: ScheduleAnyway"],
            id="spreading",
        ),
        pytest.param(make_pod("x").gate("quota"), (), "remove gate", ["remove the scheduling gate quota"], id="a gate"),
        pytest.param(
            make_pod("x").claim("data"),
            (),
            "create object",
            ["create PersistentVolumeClaim default/data with a volume"],
            id="a missing claim",
        ),
        pytest.param(
            make_pod("x").req(cpu="3"),
            (*FULL, make_priority_class("high", 100)),
            "raise priority",
            ["raise its priority to 100 (priorityClassName: high); it then preempts default/web-*"],
            id="priority",
        ),
        pytest.param(
            make_pod("x").req(cpu="3").priority(5),
            FULL,
            "wait",
            ["wait: the scheduler preempts default/web-* by itself"],
            id="preemption happens without a change",
        ),
    ],
)
def test_each_kind_of_suggestion_is_found(
    pod: PodBuilder, others: tuple[KubernetesObject, ...], kind: str, want: list[str]
) -> None:
    found = unblocked(*THREE, *others, pod)
    assert [re.sub(r"web-[abc]( on [abc])?", "web-*", text) for text in suggested_texts(found, kind)] == want


def test_pods_are_moved_only_if_they_fit_on_other_nodes() -> None:
    small = running("small", "b", "1500m")
    moves = unblocked(*THREE, running("big", "a", "3"), small, running("full", "c", "4"), make_pod("x").req(cpu="3"))
    assert suggested_texts(moves, "move pods") == []
    found = unblocked(
        *THREE, running("one", "a"), running("two", "b"), running("full", "c", "4"), make_pod("x").req(cpu="3")
    )
    assert sorted(suggested_texts(found, "move pods")) == [
        "move default/one to b (off a)",
        "move default/two to a (off b)",
    ]
    assert all(each.moved and not each.evicted for each in found.suggestions if each.kind == "move pods")


def test_only_pods_of_lower_priority_are_evicted() -> None:
    low, high = running("low", "a", "4"), running("high", "b", "4").priority(50)
    pod = make_pod("x").req(cpu="3").priority(10, policy="Never")
    found = unblocked(node("a"), node("b"), low, high, pod)
    (evicted,) = [each for each in found.suggestions if each.kind == "evict pods"]
    assert (evicted.text, evicted.evicted, evicted.node) == ("evict default/low from a", ["default/low"], "a")
    assert not any("high" in each.text for each in found.suggestions)


def test_disruption_budgets_are_honoured() -> None:
    pods = [running(name, on).label(app="web").obj() for name, on in (("one", "a"), ("two", "b"))]
    question: tuple[KubernetesObject | NodeBuilder | PodBuilder, ...] = (
        node("a"),
        node("b"),
        node("c", cpu="2"),
        *pods,
        make_pod("x").req(cpu="3"),
    )
    assert suggested_texts(unblocked(*question), "move pods")
    assert (
        suggested_texts(unblocked(*question, make_budget("b", {"app": "web"}, disruptions_allowed=0)), "move pods")
        == []
    )
    assert suggested_texts(unblocked(*question, make_budget("b", {"app": "web"}, disruptions_allowed=1)), "move pods")


def test_daemon_set_pods_are_not_moved_and_count_on_new_nodes() -> None:
    daemon = make_pod("agent-a").req(cpu="1").node("a").owner("DaemonSet", "agent").toleration(operator="Exists").obj()
    found = unblocked(node("a"), daemon, make_pod("x").req(cpu="3500m"))
    assert suggested_texts(found, "move pods") == []
    assert suggested_texts(found, "add node") == ["add a node in eu-1a like a, but with 5 cpu (5 cpu, 8Gi memory)"]


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "ToBeDeletedByClusterAutoscaler",
    ],
)
def test_unblock_never_tolerates_condition_taints_or_uncordons_unhealthy_nodes(key: str) -> None:
    ill = node("ill").taint(key).unschedulable()
    found = unblocked(node("full", cpu="1"), ill, make_pod("x").req(cpu="2"))
    assert {each.kind for each in found.suggestions} <= {"add node", "shrink request"}


def test_tolerating_an_ordinary_taint_is_suggested_last() -> None:
    found = unblocked(*THREE, GPU, *FULL, make_pod("x").req(cpu="3"))
    assert found.suggestions[-1].text == "tolerate gpu:NoSchedule"
    assert found.suggestions[0].kind == "add node"


def test_pairs_of_changes_are_tried_if_no_single_change_helps() -> None:
    both = node("a").taint("gpu").unschedulable()
    found = unblocked(both, make_pod("x"))
    assert suggested_texts(found, "tolerate taint") == ["tolerate gpu:NoSchedule and uncordon a"]
    assert found.limits == ["only single changes and 1 pair of them were tried"]


def test_evicting_a_pod_frees_its_devices() -> None:
    objects = device_objects()
    holder = make_pod("holder").uid("uid-holder").node("a").resource_claim("gpu", claim="held").owner("ReplicaSet", "w")
    found = unblocked(
        node("a"), *objects, holder.priority(1), make_pod("x").resource_claim("gpu", claim="wanted").priority(9)
    )
    assert "DynamicResources" in (found.cause.everywhere if found.cause is not None else ())
    assert suggested_texts(found, "evict pods") == ["evict default/holder from a"]
    assert suggested_texts(found, "add node") == ["add a node in eu-1a like a (4 cpu, 8Gi memory)"]


def test_added_nodes_are_enough_for_the_whole_workload() -> None:
    pods = [make_pod(f"web-{number}").req(cpu="3").owner("ReplicaSet", "web").obj() for number in range(3)]
    found = unblocked(node("a"), *pods, target="replicaset/web")
    assert found.verdict.startswith(
        "2 of 3 pending pods, such as default/web-1, fit on no node: the only node, a, has no room: "
        "Insufficient cpu (1); it lacks 2 cpu; best: add"
    )
    (added,) = [each for each in found.suggestions if each.kind == "add node"]
    assert (added.placed, added.waiting, added.text) == (
        2,
        2,
        "add a node in eu-1a like a (4 cpu, 8Gi memory) and add 1 more node of the same shape",
    )


def test_new_nodes_come_from_the_given_shapes() -> None:
    cluster = Cluster([node("a").obj(), make_pod("x").req(cpu="6").obj()], record_level=RecordLevel.OFF)
    shapes = [
        make_node("m8.2xlarge").capacity(cpu="8", memory="32Gi").obj(),
        make_node("m8.4xlarge").capacity(cpu="16", memory="64Gi").obj(),
    ]
    found = cluster.unblock("x", shapes=shapes)
    assert suggested_texts(found, "add node") == [
        "add a node like m8.2xlarge (8 cpu, 32Gi memory)",
        "add a node like m8.4xlarge (16 cpu, 64Gi memory)",
    ]


def test_a_fitting_pod_gets_no_suggestions() -> None:
    found = unblocked(node("a"), make_pod("x"))
    assert (found.fits, found.verdict, found.suggestions) == (True, "default/x fits now: it would go to a", [])


@pytest.mark.parametrize(
    ("target", "want"),
    [
        pytest.param("placed", "got default/placed, which is on a", id="a pod with a node"),
        pytest.param("leaves", "got default/leaves, which is on a and is being deleted;", id="a terminating pod"),
        pytest.param("early", "got default/early, which is being deleted;", id="a pod deleted before it got a node"),
        pytest.param("nobody", "pod: expected", id="no such pod"),
        pytest.param("foreign", "got 'mine'", id="a scheduler that is not configured"),
    ],
)
def test_placed_unknown_and_foreign_pods_are_refused(target: str, want: str) -> None:
    leaving = make_pod("leaves").node("a").terminating(), make_pod("early").terminating()
    pods = (make_pod("placed").node("a"), make_pod("foreign").scheduler("mine"), *leaving)
    with pytest.raises(InputError) as raised:
        unblocked(node("a"), *pods, target=target)
    assert want in str(raised.value)


def test_suggestions_convert_to_tables() -> None:
    rows = unblocked(node("a"), make_pod("x").req(cpu="5")).rows
    table = rows.to_arrow()
    assert table.column("kind").to_pylist() == [each.kind for each in rows]
    assert table.column("cost").to_pylist() == [each.cost for each in rows]
    assert "<table>" in rows._repr_html_()


def gpu_node(name: str, *, tainted: bool = True) -> NodeBuilder:
    made = make_node(name).capacity(**{"cpu": "8", "memory": "8Gi", "example.com/gpu": "1"})
    return made.taint("gpu") if tainted else made


def test_a_taint_reserving_the_requested_devices_is_the_cause_and_is_tolerated_first() -> None:
    found = unblocked(*THREE, gpu_node("g"), make_pod("x").req(**{"cpu": "1", "example.com/gpu": "1"}))
    assert found.verdict == (
        "default/x is pending: it requests 1 example.com/gpu, which only nodes with the taint gpu:NoSchedule offer; the pod does "
        "not tolerate it; best: tolerate gpu:NoSchedule"
    )
    assert found.suggestions[0].kind == "tolerate taint of its nodes"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(gpu_node("full", tainted=False), id="a node without the taint offers the device"),
        pytest.param(GPU, id="the taint is on a node without the device"),
    ],
)
def test_an_ordinary_taint_on_a_device_node_gets_no_precedence(other: NodeBuilder) -> None:
    holder = make_pod("holder").req(**{"cpu": "1", "example.com/gpu": "1"}).node("full").owner("ReplicaSet", "h").obj()
    found = unblocked(*THREE, gpu_node("g1"), other, holder, make_pod("x").req(**{"cpu": "1", "example.com/gpu": "1"}))
    assert "tolerate taint of its nodes" not in [each.kind for each in found.suggestions]
    assert "tolerate taint" in [each.kind for each in found.suggestions]


def test_anti_affinity_is_relaxed_in_all_pods_of_the_workload() -> None:
    zone = "topology.kubernetes.io/zone"
    built = [
        make_pod(f"db-{number}").label({"app": "db"}).pod_anti_affinity({"app": "db"}, zone).owner("StatefulSet", "db")
        for number in range(4)
    ]
    placed = [each.node(name).obj() for each, name in zip(built, "abc", strict=False)]
    found = unblocked(*THREE, *placed, built[3].obj(), target="db-3")
    assert found.verdict.startswith(
        "default/db-3 is pending: its anti-affinity allows one pod with app=db per zone, and each of eu-1a, eu-1b and eu-1c "
        "has one;"
    )
    assert (
        f"make the required pod anti-affinity to app=db in {zone} preferred in all pods of StatefulSet db, which restarts them"
        in (suggested_texts(found, "relax constraint"))
    )


def test_anti_affinity_is_relaxed_in_the_deployment_of_the_replica_set() -> None:
    host = "kubernetes.io/hostname"
    built = [
        make_pod(f"web-{number}")
        .label({"app": "web"})
        .pod_anti_affinity({"app": "web"}, host)
        .owner("ReplicaSet", "web-5")
        for number in range(4)
    ]
    owner = OwnerReference(api_version="apps/v1", kind="Deployment", name="web", uid="u", controller=True)
    replica_set = ReplicaSet(metadata=ObjectMeta(name="web-5", namespace="default", owner_references=(owner,)))
    placed = [each.node(name).obj() for each, name in zip(built, "abc", strict=False)]
    found = unblocked(*THREE, replica_set, *placed, built[3].obj(), target="web-3")
    assert any("in all pods of Deployment web, which" in each for each in suggested_texts(found, "relax constraint"))


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            make_pod("x").node_affinity("topology.kubernetes.io/zone", "eu-9"),
            ["make the required node affinity preferred"],
            id="a single rule is relaxed by one change",
        ),
        pytest.param(
            make_pod("x")
            .node_affinity("topology.kubernetes.io/zone", "eu-9")
            .pod_affinity({"app": "store"}, "kubernetes.io/hostname"),
            ["make all required affinity preferred"],
            id="two rules are relaxed together",
        ),
    ],
)
def test_each_change_is_listed_once(pod: PodBuilder, want: list[str]) -> None:
    assert suggested_texts(unblocked(*THREE, pod), "relax constraint") == want


@pytest.mark.parametrize(
    ("requests", "want"),
    [
        pytest.param({"cpu": "6"}, "the pod may run slower", id="cpu"),
        pytest.param({"memory": "12Gi"}, "the pod may run out of memory", id="memory"),
        pytest.param({"cpu": "6", "memory": "12Gi"}, "the pod may run slower or run out of memory", id="both"),
    ],
)
def test_the_risk_of_a_smaller_request_depends_on_its_resources(requests: dict[str, str], want: str) -> None:
    found = unblocked(*THREE, make_pod("x").req(**requests))
    assert [each.risk for each in found.suggestions if each.kind == "shrink request"] == [want]


def test_a_required_affinity_to_a_missing_pod_is_reported_as_the_cause() -> None:
    found = unblocked(*THREE, make_pod("x").pod_affinity({"app": "store"}, "kubernetes.io/hostname"))
    assert found.cause is not None
    assert found.cause.summary == ("it requires a pod with app=store on its node, and no node has one")


def test_a_volume_on_an_unreachable_node_is_reported_as_the_cause() -> None:
    claim = make_claim("data").bound("pv1").obj()
    volume = make_volume("pv1").bound("data").node_affinity("kubernetes.io/hostname", "c").obj()
    dead = node("c", "eu-1c").taint("node.kubernetes.io/unreachable")
    found = unblocked(*THREE[:2], dead, claim, volume, make_pod("x").claim("data"))
    assert found.cause is not None
    assert found.cause.summary == "its volume data is on c, which is unreachable"


def test_evicting_pods_of_the_same_workload_is_not_suggested_if_another_change_helps() -> None:
    high = make_priority_class("high", 100)
    own = [running(f"web-{name}", name, cpu="4").obj() for name in "abc"]
    found = unblocked(*THREE, *own, high, make_pod("x").req(cpu="4").owner("ReplicaSet", "web"))
    assert found.suggestions
    assert not any(each.evicted for each in found.suggestions)


def pool(name: str, zone: str, **labels: str) -> NodeBuilder:
    place = {"failure-domain.beta.kubernetes.io/zone": zone, "topology.ebs.csi.aws.com/zone": zone}
    return node(f"{name}-{zone}", zone).label(place).label(pool=name, **labels)


def test_a_new_node_has_its_zone_in_all_zone_labels() -> None:
    claim, volume = make_claim("db-data").bound("pv1").obj(), make_volume("pv1").zone("d").bound("db-data").obj()
    nodes = [pool("general", "a", cost="spot"), pool("general", "b", cost="on-demand")]
    found = unblocked(*nodes, claim, volume, make_pod("x").claim("db-data"))
    assert suggested_texts(found, "add node") == ["add a node like the general nodes, but in d (4 cpu, 8Gi memory)"]
    (made,) = [each for each in found.suggestions[0].objects if each["kind"] == "Node"]
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    assert {text for key, text in metadata["labels"].items() if key.endswith("/zone")} == {"d"}


def test_a_label_of_a_shape_is_named_if_the_pod_selects_it() -> None:
    nodes = [pool("general", "a", cost="spot"), pool("general", "b", cost="on-demand")]
    full = [running("one", "general-a", "4"), running("two", "general-b", "4")]
    found = unblocked(*nodes, *full, make_pod("x").req(cpu="1").node_selector(cost="spot"))
    assert suggested_texts(found, "add node") == [
        "add a node in a like the general nodes with cost=spot (4 cpu, 8Gi memory)"
    ]


def test_the_selected_pools_taint_is_tolerated_first_and_other_pools_never_get_its_label() -> None:
    found = unblocked(pool("general", "a"), pool("gpu", "a").taint("gpu"), make_pod("x").node_selector(pool="gpu"))
    assert found.suggestions[0].kind == "tolerate taint of its nodes"
    assert suggested_texts(found)[0] == "tolerate gpu:NoSchedule"
    assert not any("with pool=gpu" in text for text in suggested_texts(found, "add node"))


def test_new_nodes_with_devices_come_only_from_a_pool_with_devices() -> None:
    gpus = pool("gpu", "a").capacity({"nvidia.com/gpu": "1"})
    user = make_pod("user").req({"nvidia.com/gpu": "1"}).node("gpu-a").owner("ReplicaSet", "ml")
    found = unblocked(pool("general", "a"), gpus, user, make_pod("x").req({"nvidia.com/gpu": "1"}))
    assert suggested_texts(found, "add node") == [
        "add a node in a like the gpu nodes (4 cpu, 8Gi memory, 1 nvidia.com/gpu)"
    ]


def test_correcting_a_spread_over_unusable_zones_is_suggested_first() -> None:
    pods = [running("web-1", "a").label(app="web"), running("web-2", "b").label(app="web")]
    waiting = make_pod("x").label(app="web").node_affinity("topology.kubernetes.io/zone", "eu-1a", "eu-1b")
    found = unblocked(*THREE, *pods, waiting.spread({"app": "web"}, "zone", nodeAffinityPolicy="Ignore"))
    assert suggested_texts(found)[0] == "set nodeAffinityPolicy: Honor for the spread over topology.kubernetes.io/zone"


def test_the_scheduler_itself_releases_devices_on_a_node_that_the_pod_cannot_use() -> None:
    objects = [
        make_object(
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
        )
    ]
    for name in ("a", "b"):
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": [{"name": "gpu-0"}]}
        metadata = {"name": f"{name}-gpus"}
        objects.append(
            make_object(
                {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}
            )
        )
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}
    on_a = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "wanted", "namespace": "default", "uid": "uid-wanted"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [on_a]}},
        },
    }
    pod = make_pod("x").req(cpu="2").resource_claim("gpu", claim="wanted")
    found = unblocked(node("a"), node("b"), *objects, make_object(claim), running("full", "a", "4"), pod)
    want = "wait: the scheduler releases the devices of its claims and places it on b by itself"
    assert suggested_texts(found)[0] == want
