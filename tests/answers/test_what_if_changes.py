"""Changes of what-if that follow other rules of Kubernetes: a drain that evictions would stop, and priorities by class."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.answers.answer_text import difference_text
from bayplan.answers.changes import parse_change
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.what_if import what_if
from bayplan.base.errors import InputError
from bayplan.objects.pod import PodStatus
from bayplan.objects.policy import PodDisruptionBudgetStatus
from bayplan.testing.object_builders import make_budget, make_priority_class
from tests.answers.clusters import cluster_of, node, running, waiting
from tests.answers.test_node_removal import with_empty_dir

AGENT = running("agent-1", "n1", owner="agent", kind="DaemonSet", cpu="100m").obj()
WEB = tuple(running(f"web-{number}", "n1", cpu="100m").obj() for number in range(5))
BARE = running("bare", "n1", kind="", cpu="100m").obj()


def drain_notes(cluster: QuestionCluster) -> list[str]:
    found = what_if(cluster, [parse_change("drain=n1")])
    return [each for each in found.warnings if each.startswith("kubectl drain")]


def test_a_drain_names_the_pods_that_kubectl_would_not_evict() -> None:
    more, data = running("more", "n1", kind="", cpu="100m").obj(), with_empty_dir(running("data", "n1").obj())
    items = (node("n1"), node("n2"), AGENT, *WEB, BARE, more, data)
    assert drain_notes(cluster_of(*items, make_budget("web", {"app": "web"}))) == [
        "kubectl drain would wait for default/web-0, default/web-1, default/web-2 and 2 more: "
        "disruption budget web allows no disruption",
        "kubectl drain evicts no pod of n1 without --delete-emptydir-data: default/data has emptyDir volumes",
        "kubectl drain evicts no pod of n1 without --force: default/bare and default/more have no controller",
    ]


def test_the_text_has_the_warnings_before_the_assumptions() -> None:
    found = what_if(cluster_of(node("n1"), node("n2"), BARE), [parse_change("drain=n1")])
    lines = difference_text(found)
    assert lines.index("Warnings") < lines.index("Assumptions")
    assert not set(found.warnings) & set(found.assumptions)


def test_a_drain_waits_for_pods_that_have_just_been_placed_and_for_budgets_without_a_status() -> None:
    placed = replace(WEB[0], status=PodStatus(phase="Pending"))
    budget = replace(make_budget("web", {"app": "web"}), status=PodDisruptionBudgetStatus())
    assert drain_notes(cluster_of(node("n1"), node("n2"), placed, budget)) == [
        "kubectl drain would wait for default/web-0: disruption budget web has no status yet"
    ]
    starting = replace(placed, status=PodStatus(phase="Pending", start_time="2026-01-01T00:00:00Z"))
    assert drain_notes(cluster_of(node("n1"), node("n2"), starting, budget)) == []


def test_a_drain_that_kubectl_can_finish_has_no_such_note() -> None:
    budget = make_budget("web", {"app": "web"}, disruptions_allowed=1)
    assert drain_notes(cluster_of(node("n1"), node("n2"), AGENT, *WEB, budget)) == []


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(
            "cordon=n1",
            [
                "BEFORE is the cluster once its pending pods are scheduled; now, default/high is pending and default/low is on n1"
            ],
            id="pods that are elsewhere now are named",
        ),
        pytest.param("remove-nodes=n2", [], id="the pods that differ are where they were"),
    ],
)
def test_the_warnings_name_the_current_nodes_of_pods_that_pending_pods_move_first(change: str, want: list[str]) -> None:
    high = waiting("high", cpu="4")
    high = replace(high, spec=replace(high.spec, priority=10, preemption_policy=None))
    pods = (running("low", "n1", cpu="4").obj(), running("low2", "n2", cpu="3").obj(), high)
    assert what_if(cluster_of(node("n1"), node("n2"), *pods), [parse_change(change)]).warnings == want


@pytest.mark.parametrize(
    ("value", "policy", "want"),
    [
        pytest.param("high", None, 1, id="a class without a policy, which preempts"),
        pytest.param("high", "PreemptLowerPriority", 1, id="a class that preempts"),
        pytest.param("high", "Never", 0, id="a class that does not preempt"),
        pytest.param("10", "Never", 1, id="a number"),
    ],
)
def test_a_priority_can_be_the_name_of_a_class(value: str, policy: str | None, want: int) -> None:
    own = "Never" if policy is None else None
    big = replace(waiting("big", cpu="4"), spec=replace(waiting("big", cpu="4").spec, preemption_policy=own))
    high = make_priority_class("high", 10)
    cluster = cluster_of(node("n1"), WEB[0], big, replace(high, preemption_policy=policy))
    assert len(what_if(cluster, [parse_change(f"priority=big:{value}")]).evictions) == want


def test_an_unknown_priority_class_is_refused_with_the_known_ones() -> None:
    cluster = cluster_of(node("n1"), waiting("big"), make_priority_class("high", 10))
    wanted = (
        "an integer or the name of a priority class: high, system-cluster-critical, system-node-critical, got 'hihg'"
    )
    with pytest.raises(InputError, match=wanted):
        what_if(cluster, [parse_change("priority=big:hihg")])
