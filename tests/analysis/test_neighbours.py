"""Suggested changes to other pods: each named pod exists, and the change does make the node fit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bayplan.analysis.pod_lookup import find_pods
from bayplan.analysis.remedies import remedies as remedies_of
from bayplan.analysis.run_source import SimulationSource
from bayplan.objects.meta import KubernetesObject, LabelSelector, LabelSelectorRequirement
from bayplan.objects.selectors import selector_text
from bayplan.testing.builders import PodBuilder, make_node, make_pod
from tests.analysis.runs import run


def nodes(**zones: str) -> list[KubernetesObject]:
    return [make_node(name).capacity(cpu="4", memory="8Gi").zone(zone).obj() for name, zone in zones.items()]


def running(name: str, where: str, **labels: str) -> PodBuilder:
    return make_pod(name).node(where).label(labels)


def remedies(*objects: KubernetesObject) -> list[tuple[str, list[str]]]:
    source = SimulationSource(run(*objects))
    life = find_pods("p", source.pods)[-1]
    number = [number for number, _ in source.records_of(life.key)][-1]
    found = remedies_of(source, number, source.decision(number), life)
    return [(remedy.text, remedy.nodes) for remedy in found]


def is_placed(*objects: KubernetesObject) -> bool:
    return find_pods("p", SimulationSource(run(*objects)).pods)[-1].node != ""


ONE_NODE = nodes(a="z")
ONE_ZONE = nodes(a="z", b="z")
IN_ZONE_Z = {"topology.kubernetes.io/zone": "z"}


@pytest.mark.parametrize(
    ("cluster", "others", "pod", "gone", "want"),
    [
        pytest.param(
            ONE_NODE,
            [running("r", "a", app="web"), running("s", "a", app="db")],
            make_pod("p").pod_anti_affinity({"app": "web"}),
            ["r"],
            [("default/r gone (the pod's anti-affinity to app=web)", ["a"])],
            id="a pod that it keeps away from",
        ),
        pytest.param(
            ONE_ZONE,
            [running(name, where, app="web") for name, where in (("r", "a"), ("s", "b"), ("t", "b"), ("u", "b"))],
            make_pod("p").pod_anti_affinity({"app": ["web", "db"]}, "zone"),
            ["r", "s", "t", "u"],
            [
                (
                    "default/r, default/s, default/t and 1 more gone (the pod's anti-affinity to app In (web, db))",
                    ["a", "b"],
                )
            ],
            id="several pods in its zone",
        ),
        pytest.param(
            ONE_NODE,
            [
                running("hermit", "a").pod_anti_affinity({"app": "web"}),
                running("s", "a").pod_anti_affinity({"app": "x"}),
            ],
            make_pod("p").label(app="web"),
            ["hermit"],
            [("default/hermit gone (anti-affinity of its own to this pod)", ["a"])],
            id="a pod that keeps away from it",
        ),
        pytest.param(
            nodes(a="z", b="z", c="y"),
            [running("r", "a", app="web"), running("s", "b", app="web"), running("t", "b", app="web")],
            make_pod("p").label(app="web").spread({"app": "web"}, nodeAffinityPolicy="Ignore").node_selector(IN_ZONE_Z),
            ["r", "s", "t"],
            [
                (
                    "3 pods with app=web fewer in topology.kubernetes.io/zone z, which has 3 where y has 0 (maxSkew 1)",
                    ["a", "b"],
                )
            ],
            id="a zone that is too full",
        ),
    ],
)
def test_the_pods_that_are_named_are_in_the_way(
    cluster: list[KubernetesObject],
    others: Sequence[PodBuilder],
    pod: PodBuilder,
    gone: Sequence[str],
    want: list[tuple[str, list[str]]],
) -> None:
    there = [other.obj() for other in others]
    told = remedies(*cluster, *there, pod.obj())
    assert [each for each in told if "gone" in each[0] or "fewer" in each[0]] == want
    left = [other for other in there if other.metadata.name not in gone]
    assert is_placed(*cluster, *left, pod.obj())


def test_a_friend_that_is_missing() -> None:
    pod = make_pod("p").pod_affinity({"app": "db"}, "zone").obj()
    told = remedies(*ONE_ZONE, pod)
    assert told == [("a pod with app=db in the same topology.kubernetes.io/zone (the pod's affinity)", ["a", "b"])]
    assert is_placed(*ONE_ZONE, running("db", "a", app="db").obj(), pod)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(
            make_pod("p").label(app="web").spread({"app": "web"}, minDomains=3), id="a least number of domains"
        ),
        pytest.param(
            make_pod("p").label(app="web").spread({"app": "web"}, nodeTaintsPolicy="Honor"), id="a policy on taints"
        ),
    ],
)
def test_nothing_is_said_where_it_could_not_be_checked(pod: PodBuilder) -> None:
    others = [running(name, "a", app="web").obj() for name in ("r", "s", "t")]
    small = make_node("c").capacity(cpu="1m").zone("y").obj()
    told = remedies(*ONE_ZONE, small, *others, pod.req(cpu="1").obj())
    assert [text for text, _ in told if "fewer" in text] == []


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        (None, "nothing"),
        (LabelSelector(), "any labels"),
        (LabelSelector(match_labels={"b": "2", "a": "1"}), "a=1, b=2"),
        (LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Exists"),)), "a Exists"),
    ],
)
def test_selectors_read_as_people_write_them(selector: LabelSelector | None, want: str) -> None:
    assert selector_text(selector) == want
