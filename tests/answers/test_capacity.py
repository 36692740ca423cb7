"""Capacity: how many more copies fit, which resource runs out, and which pods are evicted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.answers.answer_text import capacity_text
from bayplan.answers.capacity import Share, capacity, parse_mix
from bayplan.base.errors import InputError
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.object_builders import make_claim, make_object, make_volume
from tests.answers.clusters import cluster_of, node, running

QUOTA = decode(
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods", "namespace": "default"},
        "spec": {"hard": {"pods": "4"}},
    }
)
WEB = running("web-1", "n1").obj()
SPREAD = running("spread-1", "n1", owner="spread").spread({"app": "spread"}, "zone").obj()
PINNED = running("pinned-1", "n1", owner="pinned").node_selector(disk="tape").obj()
LARGE = running("large-1", "n1", owner="large", cpu="100m").req(memory="3Gi").obj()
IMPORTANT = running("important-1", "n2", owner="important", cpu="3", priority=100).obj()
TAINTED = make_node("n1").capacity(cpu="4", memory="8Gi", pods="20").taint("quota").obj()
FENCED = running("fenced-1", "n1", owner="fenced").obj()
SELECTED = "node(s) didn't match Pod's node affinity/selector"
TAINTS = "node(s) had untolerated taint(s)"
NODES = (node("n1"), node("n2", zone="b"))


@pytest.mark.parametrize(
    ("items", "asked", "preempts", "want"),
    [
        pytest.param((*NODES, WEB), "web", False, (7, "Insufficient cpu"), id="the room of all nodes"),
        pytest.param((*NODES, LARGE), "large", False, (3, "Insufficient memory"), id="the scarcest resource runs out"),
        pytest.param((*NODES, PINNED), "pinned", False, (0, SELECTED), id="no node had room"),
        pytest.param((*NODES, WEB, QUOTA), "web", False, (3, "quota"), id="a quota ends it"),
        pytest.param((TAINTED, FENCED), "fenced", False, (0, TAINTS), id="a taint that is called quota is no quota"),
        pytest.param((*NODES, WEB, IMPORTANT), "important", False, (1, "Insufficient cpu"), id="no pod is evicted"),
        pytest.param((*NODES, WEB, IMPORTANT), "important", True, (1, "Insufficient cpu"), id="evictions do not help"),
        pytest.param(
            (NODES[0], *(running(f"web-{n}", "n1").obj() for n in range(4)), IMPORTANT),
            "important",
            True,
            (1, "Insufficient cpu"),
            id="lower priorities are evicted if allowed",
        ),
    ],
)
def test_capacity_reports_the_number_of_copies_and_the_limiting_reason(
    items: tuple[KubernetesObject, ...], asked: str, preempts: bool, want: tuple[int, str | None]
) -> None:
    answer = capacity(cluster_of(*items), [Share(asked)], preempts=preempts)
    assert (answer.copies, next(iter(answer.runs_out), None)) == want


def test_the_blocking_filter_is_named() -> None:
    pods = [
        running(f"one-{name}", name, owner="one").label({"app": "one"}).pod_anti_affinity({"app": "one"}, "zone").obj()
        for name in ("n1", "n2")
    ]
    answer = capacity(cluster_of(*NODES, *pods), [Share("one")])
    rule = "node(s) didn't match pod anti-affinity rules"
    assert [each.runs_out for each in answer.groups] == [{rule: 1}, {rule: 1}]
    assert capacity_text(answer)[0] == (
        f"0 more copies of replicaset/default/one fit; no node has room for another copy: {rule} (2)."
    )


@pytest.mark.parametrize(
    ("kind", "room", "want"),
    [
        pytest.param("ReplicaSet", 1, {"its volume is in a": 1}, id="copies share the volume"),
        pytest.param("StatefulSet", 2, {"Insufficient cpu": 1}, id="each copy has a volume of its own"),
    ],
)
def test_a_full_node_that_can_not_reach_the_volume_counts_for_the_volume(
    kind: str, room: int, want: dict[str, int]
) -> None:
    volume = make_volume("pv").bound("data-db-0").node_affinity("topology.kubernetes.io/zone", "a").obj()
    claim = make_claim("data-db-0").storage_class("standard").bound("pv").obj()
    storage = make_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "standard"},
            "provisioner": "example.com/disks",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    pod = running("db-0", "n1", owner="db", kind=kind).claim("data-db-0").obj()
    nodes = (node("n1", cpu="3"), node("n2", zone="b", cpu="3"))
    answer = capacity(cluster_of(*nodes, volume, claim, storage, pod), [Share("db")])
    assert sum(each.nodes_with_room for each in answer.groups) == room
    assert answer.copies == (2 if room == 1 else 5)
    full = running("full-2", "n2", owner="full", cpu="3").obj()
    (far,) = [
        each
        for each in capacity(
            cluster_of(node("n1", cpu="1"), nodes[1], full, volume, claim, storage, pod), [Share("db")]
        ).groups
        if each.zone == "b"
    ]
    assert far.runs_out == want


def test_a_copy_of_a_stateful_set_gets_a_volume_at_once_if_its_class_binds_immediately() -> None:
    document = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    storage = make_object({**document, "provisioner": "example.com/disks", "volumeBindingMode": "Immediate"})
    volume = make_volume("pv").bound("data-db-0").obj()
    claim = make_claim("data-db-0").storage_class("fast").bound("pv").obj()
    pod = running("db-0", "n1", owner="db", kind="StatefulSet").claim("data-db-0").obj()
    answer = capacity(cluster_of(node("n1", cpu="3"), node("n2", cpu="3"), volume, claim, storage, pod), [Share("db")])
    assert answer.copies == 5
    assert (
        "volumes that are provisioned before their pods are scheduled are reachable from every node"
        in answer.assumptions
    )


@pytest.mark.parametrize("is_used", [False, True], ids=["no claim exists", "claims of deleted pods exist"])
def test_copies_of_a_stateful_set_without_pods_get_the_claims_of_its_templates(is_used: bool) -> None:
    labels = {"app": "db"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "standard",
    }
    spec = {
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    db = make_object({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec})
    storage = make_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "standard"},
            "provisioner": "example.com/disks",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    # The volume of the first pod is in zone a, so that its copy can't go to node n2.
    volume = make_volume("pv").bound("data-db-0").node_affinity("topology.kubernetes.io/zone", "a").obj()
    left = (volume, make_claim("data-db-0").storage_class("standard").bound("pv").obj()) if is_used else ()
    nodes = (node("n1", cpu="0"), node("n2", zone="b", cpu="3"))
    answer = capacity(cluster_of(*nodes, storage, db, *left), [Share("statefulset/db")])
    assert answer.copies == (0 if is_used else 3)
    assert "copies of statefulset/default/db are like its template" in answer.assumptions


def test_preempting_copies_list_their_victims_with_node_and_controller() -> None:
    pods = [running(f"web-{number}", "n1").obj() for number in range(4)]
    cluster = cluster_of(
        node("n1"), node("n2", zone="b", cpu="1"), *pods, running("top-1", "n2", owner="top", cpu="3", priority=9).obj()
    )
    answer = capacity(cluster, [Share("top")], preempts=True)
    assert [(each.preemptor, each.node, each.controller) for each in answer.victims] == [
        ("default/top-copy-0", "n1", "ReplicaSet/web")
    ] * 3
    assert answer.copies == 1
    assert "evicting 3 pods" in capacity_text(answer)[0]
    assert cluster.state.pods.keys() == {f"default/{name}" for name in ("web-0", "web-1", "web-2", "web-3", "top-1")}


def test_replacements_of_victims_evict_no_pods_in_turn() -> None:
    large, small = (make_node(name).capacity(cpu="4", memory="8Gi", pods="20") for name in ("n1", "n2"))
    items = [
        large.label({"disk": "x"}).obj(),
        small.obj(),
        running("mid-1", "n1", owner="mid", cpu="4", priority=50).obj(),
        running("low-1", "n2", owner="low", cpu="4", priority=1).obj(),
        make_pod("top-1").req(cpu="4").priority(100).owner("ReplicaSet", "top").node_selector(disk="x").obj(),
    ]
    answer = capacity(cluster_of(*items), [Share("top")], preempts=True)
    assert [(row.pod, row.new_node) for row in answer.victims] == [("default/mid-1", "")]


def test_a_mix_preserves_its_proportions() -> None:
    cluster = cluster_of(*NODES, WEB, running("db-1", "n2", owner="db", cpu="2").obj())
    answer = capacity(cluster, [Share("web", 2), Share("db", 1)])
    assert (answer.mixes, {each.workload: each.copies for each in answer.workloads}) == (
        1,
        {"replicaset/default/web": 3, "replicaset/default/db": 1},
    )


def test_copies_of_workloads_with_the_same_name_have_different_names() -> None:
    cluster = cluster_of(*NODES, WEB, running("job-1", "n2", owner="web", kind="Job").obj())
    answer = capacity(cluster, parse_mix("replicaset/web,job/web"))
    assert [each.copies for each in answer.workloads] == [3, 3]
    assert len({each.copy for each in answer.placements}) == 6


def test_two_names_of_one_workload_are_refused() -> None:
    with pytest.raises(InputError, match="the same workload"):
        capacity(cluster_of(*NODES, WEB), parse_mix("web,rs/web"))


def test_each_zone_reports_its_copies_and_why_it_takes_no_more() -> None:
    answer = capacity(cluster_of(*NODES, node("n3", zone="b", cpu="1"), SPREAD), [Share("spread")])
    assert [(each.zone, each.nodes, each.copies, each.nodes_left) for each in answer.groups] == [
        ("a", 1, 3, 0),
        ("b", 2, 5, 0),
    ]
    assert answer.groups[0].runs_out == {"Insufficient cpu": 1}


def test_repeated_questions_give_the_same_answer() -> None:
    cluster = cluster_of(*NODES, WEB, SPREAD)
    first = [capacity(cluster, [Share("web")], seeds=range(3)) for _ in range(2)]
    assert first[0].by_seed == first[1].by_seed
    assert [*first[0].placements] == [*first[1].placements]
    cluster.state.check_invariants()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("web", [Share("web")], id="one workload"),
        pytest.param("web=3,deployment/shop/db", [Share("web", 3), Share("deployment/shop/db")], id="a mix"),
        pytest.param("web=2,db,web", [Share("web", 3), Share("db")], id="a workload that occurs twice"),
        pytest.param("web=0", None, id="no replica of one"),
        pytest.param("web,,db", None, id="no name"),
    ],
)
def test_a_mix_is_parsed_from_comma_separated_workloads(text: str, want: list[Share] | None) -> None:
    if want is None:
        with pytest.raises(InputError, match="workloads"):
            parse_mix(text)
    else:
        assert parse_mix(text) == want


def test_an_unknown_workload_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="'replicaset/default/web'"):
        capacity(cluster_of(*NODES, WEB), [Share("wev")])


def test_finished_and_terminating_pods_are_refused_with_their_state() -> None:
    done = make_pod("done").owner("Job", "import").obj()
    done = replace(done, status=replace(done.status, phase="Succeeded"))
    gone = running("web-1", "n1").terminating().obj()
    cluster = cluster_of(*NODES, done, gone, running("web-2", "n1").obj())
    with pytest.raises(InputError, match=r"got 'default/done', which has finished$"):
        capacity(cluster, [Share("default/done")])  # The job is not in the input.
    with pytest.raises(InputError, match=r"got 'pod/web-1', which is terminating; try 'replicaset/default/web'"):
        capacity(cluster, [Share("pod/web-1")])
    assert capacity(cluster, [Share("replicaset/default/web")]).copies
    job = make_object({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "import", "namespace": "default"}})
    cluster = cluster_of(*NODES, done, job)
    with pytest.raises(InputError, match=r"got 'default/done', which has finished; try 'job/default/import'"):
        capacity(cluster, [Share("default/done")])
    capacity(cluster, [Share("job/default/import")])


@pytest.mark.parametrize("name", ["daemonset/default/log", "log-1"])
def test_daemon_sets_cannot_be_copied(name: str) -> None:
    cluster = cluster_of(node("a"), running("log-1", "a", owner="log", kind="DaemonSet").obj())
    with pytest.raises(InputError, match=r"not a DaemonSet, got .* which has one pod on each of its nodes"):
        capacity(cluster, parse_mix(name))


def test_a_node_whose_room_is_left_to_a_nominated_pod_has_no_room() -> None:
    waits = make_pod("next").req(cpu="2", memory="256Mi").nominated("n2").priority(5).obj()
    web = [running("web-1", "n1", cpu="2").obj(), running("other", "n2", cpu="2", owner="other").obj()]
    answer = capacity(cluster_of(*NODES, *web, waits), [Share("web", 1)])
    assert [(row.zone, row.nodes_with_room, row.copies, row.nodes_left) for row in answer.groups] == [
        ("a", 1, 1, 0),
        ("b", 0, 0, 0),
    ]
    full = running("full", "n1", cpu="2", owner="full").obj()
    answer = capacity(cluster_of(*NODES, *web, waits, full), [Share("web", 1)])
    assert answer.runs_out == {"Insufficient cpu": 2}


def test_a_quota_that_is_used_up_from_the_start_is_named() -> None:
    pods = [running(f"web-{number}", "n1", cpu="100m").obj() for number in range(4)]
    text = capacity_text(capacity(cluster_of(*NODES, *pods, QUOTA), [Share("web", 1)]))
    assert text[0] == "0 more copies of replicaset/default/web fit; the resource quota pods is used up."


def test_a_quota_whose_amounts_a_copy_does_not_state_is_not_used_up() -> None:
    quota = make_object(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "limits", "namespace": "default"},
            "spec": {"hard": {"limits.cpu": "9"}},
        }
    )
    answer = capacity(cluster_of(*NODES, WEB, quota), [Share("web", 1)])
    assert (answer.exceeded_quota, answer.short_of, answer.runs_out) == ("", "", {"quota": 1})
    assert capacity_text(answer)[0].startswith(
        "0 more copies of replicaset/default/web fit; the next copy of replicaset/default/web is forbidden: "
        "failed quota: limits: must specify limits.cpu for: "
    )


def test_copies_with_a_scheduling_gate_name_it() -> None:
    gated = make_pod("web-9").gate("example.com/wait").owner("ReplicaSet", "web").obj()
    answer = capacity(cluster_of(*NODES, gated), [Share("web", 1)])
    assert (answer.copies, answer.message) == (0, "waiting for scheduling gates: [example.com/wait]")
    assert capacity_text(answer)[0].endswith(
        "the next copy is not scheduled: waiting for scheduling gates: [example.com/wait]."
    )


def test_preempting_copies_wait_for_the_end_of_terminating_pods() -> None:
    pods = [
        running("dying", "n1", owner="dying", cpu="4").terminating().obj(),
        running("web-1", "n2", cpu="2", priority=5).obj(),
    ]
    answer = capacity(cluster_of(*NODES, *pods), [Share("web", 1)], preempts=True)
    assert (answer.copies, len(answer.victims)) == (3, 0)
    assert "copies wait for the end of 1 terminating pod" in answer.assumptions
    assert capacity(cluster_of(*NODES, *pods), [Share("web", 1)]).copies == 1
