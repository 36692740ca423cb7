"""Suggestions do no more than necessary, and small suggestions are not hidden by others."""

from __future__ import annotations

import pytest

from bayplan import Cluster, RecordLevel, make_node, make_pod
from bayplan.answers.unblock import Suggestion
from bayplan.objects.meta import KubernetesObject
from bayplan.testing.builders import NodeBuilder, PodBuilder
from bayplan.testing.object_builders import make_budget, make_priority_class


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", zone: str = "a") -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory=memory).zone(zone)


def running(name: str, on: str, *, owner: str = "web", **requests: str) -> PodBuilder:
    return make_pod(name).req(**requests).node(on).label(app=owner).owner("ReplicaSet", owner)


def suggested(*objects: KubernetesObject | NodeBuilder | PodBuilder, kind: str) -> list[Suggestion]:
    built = [each.obj() if isinstance(each, NodeBuilder | PodBuilder) else each for each in objects]
    found = Cluster(built, record_level=RecordLevel.OFF).unblock("x")
    return [each for each in found.suggestions if each.kind == kind]


def texts(*objects: KubernetesObject | NodeBuilder | PodBuilder, kind: str) -> list[str]:
    return [each.text for each in suggested(*objects, kind=kind)]


def test_reductions_for_tainted_nodes_do_not_hide_the_one_that_is_enough() -> None:
    tainted = [node(f"t{number}", cpu=f"{3000 + 100 * number}m").taint("gpu") for number in range(4)]
    found = texts(*tainted, node("a", cpu="2"), make_pod("x").req(cpu="4"), kind="shrink request")
    assert found == ["reduce the request: cpu from 4 to 2"]


def test_a_reduction_that_includes_a_sufficient_one_is_not_suggested() -> None:
    nodes = (node("a", cpu="3", memory="8Gi"), node("b", cpu="2", memory="2Gi"))
    found = texts(*nodes, make_pod("x").req(cpu="4", memory="4Gi"), kind="shrink request")
    assert found == ["reduce the request: cpu from 4 to 3"]


def spread_over_zones_and_hosts(pod: PodBuilder) -> PodBuilder:
    return pod.label(app="x").spread({"app": "x"}).spread({"app": "x"}, "hostname")


@pytest.mark.parametrize(
    ("objects", "kind", "want"),
    [
        pytest.param(
            (
                node("a"),
                node("b", zone="b", cpu="1"),
                running("x-1", "a", owner="x", cpu="1"),
                node("a2"),
                spread_over_zones_and_hosts(make_pod("x").req(cpu="2")),
            ),
            "relax constraint",
            ["spread over topology.kubernetes.io/zone with whenUnsatisfiable: ScheduleAnyway"],
            id="one of two spread constraints",
        ),
        pytest.param(
            (node("a").label(disk="ssd"), make_pod("x").node_selector({"disk": "ssd", "team": "web"})),
            "relax constraint",
            ["drop team=web from the nodeSelector"],
            id="one of two labels of the nodeSelector",
        ),
        pytest.param(
            (node("a").taint("spot"), node("b").taint("spot").taint("old"), node("c").taint("spot").taint("old"), make_pod("x")),
            "tolerate taint",
            ["tolerate spot:NoSchedule"],
            id="one of two taints",
        ),
        pytest.param(
            (
                node("a"),
                running("web", "a", cpu="4").priority(5),
                make_priority_class("high", 10),
                make_priority_class("higher", 20),
                make_pod("x").req(cpu="4").priority(0),
            ),
            "raise priority",
            ["raise its priority to 10 (priorityClassName: high); it then preempts default/web"],
            id="the lowest of two priority classes",
        ),
    ],
)  # fmt: skip
def test_no_suggestion_does_more_than_necessary(
    objects: tuple[KubernetesObject | NodeBuilder | PodBuilder, ...], kind: str, want: list[str]
) -> None:
    assert texts(*objects, kind=kind) == want


def test_a_pod_that_fits_elsewhere_is_moved_even_if_preemption_would_choose_another() -> None:
    objects = (
        node("a"),
        node("b", cpu="1", memory="1Gi"),
        # Preemption would evict this pod, which fits only on a.
        running("large", "a", owner="large", cpu="3").started("2026-01-02T00:00:00Z"),
        running("small", "a", owner="small", cpu="1").started("2026-01-01T00:00:00Z"),
    )
    wanted = make_pod("x").req(cpu="1", memory="2Gi")
    assert texts(*objects, wanted, kind="move pods") == ["move default/small to b (off a)"]


def test_protected_pods_do_not_hide_moves() -> None:
    protected = [
        running(f"protected-{number:02}", "a", owner=f"app-{number}", cpu="200m").label(tier="db")
        for number in range(15)
    ]
    objects: tuple[KubernetesObject | NodeBuilder | PodBuilder, ...] = (
        node("a", cpu="7"),
        node("b", cpu="1", memory="1Gi"),
        *protected,
        # Preemption would evict this pod, which fits only on a.
        running("large", "a", owner="large", cpu="3").started("2026-01-02T00:00:00Z"),
        running("small", "a", owner="small", cpu="1").started("2026-01-01T00:00:00Z"),
        make_budget("db", {"tier": "db"}),
    )
    wanted = make_pod("x").req(cpu="200m", memory="2Gi")
    assert texts(*objects, wanted, kind="move pods") == ["move default/small to b (off a)"]


def test_evictions_do_not_hide_moves() -> None:
    nodes = [node(f"n{number}") for number in range(4)]
    low = [
        running(f"low-{number}", f"n{number}", owner=f"low-{number}", cpu="4", memory="2Gi").priority(-number)
        for number in (1, 2, 3)
    ]
    moved = running("movable", "n0", owner="movable", cpu="4", memory="1Gi").priority(0)
    objects: tuple[NodeBuilder | PodBuilder, ...] = (*nodes, node("small", cpu="4", memory="1Gi"), *low, moved)
    want = make_pod("x").req(cpu="4", memory="2Gi").priority(0)
    assert texts(*objects, want, kind="evict pods") == [
        f"evict default/low-{number} from n{number}" for number in (3, 2, 1)
    ]
    assert texts(*objects, want, kind="move pods") == ["move default/movable to small (off n0)"]


def test_a_rule_made_preferred_stays_in_the_object_as_a_preference() -> None:
    pod = make_pod("x").label(app="w").pod_anti_affinity({"app": "w"})
    taken = make_pod("w").label(app="w").node("a").owner("ReplicaSet", "w")
    (found,) = suggested(node("a"), taken, pod, kind="relax constraint")
    (document,) = found.objects
    anti = document["spec"]["affinity"]["podAntiAffinity"]  # type: ignore[index]
    assert anti == {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": {"app": "w"}},
                    "topologyKey": "kubernetes.io/hostname",
                },
            }
        ]
    }


def test_suggestions_for_a_gated_pod_also_remove_its_gates() -> None:
    pod = make_pod("x").req(cpu="5").node_selector(team="web").gate("quota").gate("review")
    found = Cluster([node("a").obj(), pod.obj()], record_level=RecordLevel.OFF).unblock("x")
    assert found.verdict.startswith(
        "default/x is gated: waiting for scheduling gates: [quota review]; "
        "also no node has the label team=web (nodeSelector); best: remove the scheduling gates quota and review"
    )
    want = "remove the scheduling gates quota and review, reduce the request: cpu from 5 to 4 and label a with team=web"
    assert want in [each.text for each in found.suggestions]
    assert all(each.text.startswith("remove the scheduling gates quota and review") for each in found.suggestions)


def test_a_gated_pod_that_fits_only_has_to_be_ungated() -> None:
    objects = (node("a"), running("low", "a", cpu="1").priority(-5), make_pod("x").req(cpu="1").gate("quota"))
    found = Cluster([each.obj() for each in objects], record_level=RecordLevel.OFF).unblock("x")
    assert [each.text for each in found.suggestions] == ["remove the scheduling gate quota"]
