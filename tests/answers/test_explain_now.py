"""Explanations of pods in the current state of a cluster."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from bayplan import Cluster, InputError, PerNodePlugin, RecordLevel, make_node, make_pod
from bayplan.analysis.explanation import Explanation
from bayplan.analysis.explanation_text import render_explanation
from bayplan.analysis.scheduler_surroundings import SchedulerSurroundings
from bayplan.base.errors import PluginError
from bayplan.framework.node_info import NodeInfo
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod, PodCondition, PodResourceClaim
from bayplan.objects.resource import ResourceClaim
from bayplan.testing.builders import PodBuilder
from tests.answers.clusters import device_objects


def cluster_of(*pods: PodBuilder) -> Cluster:
    """Return three nodes, one of them tainted and another cordoned and not ready, with pods."""
    nodes: list[KubernetesObject] = [
        make_node("a").capacity(cpu="4", memory="8Gi").obj(),
        make_node("gpu").capacity(cpu="4", memory="8Gi").taint("gpu").obj(),
        make_node("ill")
        .capacity(cpu="4", memory="8Gi")
        .taint("node.kubernetes.io/not-ready")
        .taint("node.kubernetes.io/not-ready", effect="NoExecute")
        .unschedulable()
        .obj(),
    ]
    return Cluster([*nodes, *(pod.obj() for pod in pods)], record_level=RecordLevel.OFF)


@pytest.mark.parametrize(
    ("pods", "target", "want"),
    [
        pytest.param(
            [make_pod("x").req(cpu="8")],
            "x",
            "default/x is pending: it requests 8 cpu, but the largest node offers 4",
            id="the node that it may use is nearest, not the one with a taint or a cordon",
        ),
        pytest.param(
            [make_pod("x").req(cpu="1")], "x", "default/x fits now: it would go to a (1 of 3 nodes fit)", id="it fits"
        ),
        pytest.param(
            [make_pod("x").node("a")],
            "x",
            "default/x is on a, and would be placed there again now",
            id="a pod that stays",
        ),
        pytest.param(
            [make_pod("x").node("gpu")],
            "x",
            "default/x is on gpu; scheduled again now, it would go to a",
            id="a pod that would be placed elsewhere",
        ),
        pytest.param(
            [make_pod("x").node("gpu").req(cpu="2"), make_pod("y").node("a").req(cpu="3")],
            "x",
            "default/x is on gpu; if it had to be scheduled again now, it would be pending",
            id="a pod that would wait",
        ),
        pytest.param(
            [make_pod("x").gate("quota")],
            "x",
            "default/x is gated: waiting for scheduling gates: [quota]",
            id="a gated pod",
        ),
        pytest.param(
            [make_pod("x").scheduler("mine")],
            "x",
            'default/x is pending: no scheduler named "mine" is configured',
            id="another scheduler",
        ),
        pytest.param(
            [make_pod("web-5d8f-1").label({"pod-template-hash": "5d8f"}).owner("ReplicaSet", "web-5d8f").req(cpu="8")],
            "deployment/web",
            "default/web-5d8f-1 is pending: it requests 8 cpu, but the largest node offers 4",
            id="a Deployment that is known by the names of owners alone",
        ),
    ],
)
def test_the_verdict_describes_the_current_state(pods: list[PodBuilder], target: str, want: str) -> None:
    cluster = cluster_of(*pods)
    assert cluster.explain(target).verdict == want
    cluster.state.check_invariants()


def test_the_hypothetical_attempt_of_a_bound_pod_has_scores_and_a_note() -> None:
    cluster = cluster_of(make_pod("x").node("a"))
    cluster.add(make_node("b").capacity(cpu="4", memory="8Gi").obj())
    found = cluster.explain("x")
    assert found.detail is not None
    assert sorted(each.node for each in found.detail.best) == ["a", "b"]
    assert found.notes == [
        "the attempt is hypothetical: the pod was taken off its node and scheduled again in a copy of the cluster"
    ]
    assert cluster.node_of("x") == "a"


def test_explain_lists_remedies_that_were_tried() -> None:
    found = cluster_of(make_pod("x").req(cpu="8")).explain("x")
    assert found.detail is not None
    assert [(each.kind, each.text) for each in found.detail.remedies][:2] == [
        ("add node", "add a node like a, but with 8 cpu (8 cpu, 8Gi memory)"),
        ("shrink request", "reduce the request: cpu from 8 to 4"),
    ]


@pytest.mark.parametrize(
    ("node", "want"),
    [
        pytest.param("a", {"NodeResourcesFit": "reduce the request: cpu from 8 to 4"}, id="too small"),
        pytest.param(
            "gpu",
            {
                "NodeResourcesFit": "reduce the request: cpu from 8 to 4",
                "TaintToleration": "tolerate gpu:NoSchedule",
            },
            id="a taint, too",
        ),
        pytest.param(
            "ill",
            {
                "NodeResourcesFit": "reduce the request: cpu from 8 to 4",
                "NodeUnschedulable": "",
                "TaintToleration": "repair the node (node.kubernetes.io/not-ready); such a taint should never be tolerated",
            },
            id="an unhealthy node",
        ),
    ],
)
def test_every_rejection_of_a_node_has_the_smallest_sufficient_change(node: str, want: dict[str, str]) -> None:
    found = cluster_of(make_pod("x").req(cpu="8")).explain("x", node=node)
    assert found.node_detail is not None
    turned = {each.plugin: each.change for each in found.node_detail.verdicts if each.code != "Success"}
    assert turned == want


@pytest.mark.parametrize(
    ("keys", "want"),
    [
        pytest.param(["node.kubernetes.io/unschedulable"], "uncordon n", id="a cordon"),
        pytest.param(
            ["node.kubernetes.io/unschedulable", "node.kubernetes.io/disk-pressure"],
            "uncordon n and repair the node (node.kubernetes.io/disk-pressure); such a taint should never be tolerated",
            id="a cordon and a condition",
        ),
        pytest.param(
            ["ToBeDeletedByClusterAutoscaler"],
            "none: an autoscaler is removing the node (ToBeDeletedByClusterAutoscaler)",
            id="a node that an autoscaler removes",
        ),
    ],
)
def test_taints_of_cordons_and_conditions_are_not_tolerated(keys: list[str], want: str) -> None:
    made = make_node("n").capacity(cpu="4", memory="8Gi", pods="9")
    for key in keys:
        made = made.taint(key)
    found = Cluster([made.obj()])
    found.add(make_pod("x").obj())
    detail = found.explain("x", node="n").node_detail
    assert detail is not None
    assert {each.plugin: each.change for each in detail.verdicts if each.code != "Success"} == {"TaintToleration": want}


def test_a_missing_claim_does_not_hide_the_other_rejections_of_a_node() -> None:
    found = cluster_of(make_pod("x").req(cpu="8").claim("data")).explain("x", node="a")
    assert found.node_detail is not None
    rejecting = {each.plugin: each.change for each in found.node_detail.verdicts if each.code != "Success"}
    assert rejecting["NodeResourcesFit"] == "reduce the request: cpu from 8 to 4"
    assert rejecting["VolumeBinding"] == "create PersistentVolumeClaim default/data with a volume"


def test_an_unknown_node_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="--node: expected a node of the cluster, got 'gpo'; try 'gpu'"):
        cluster_of(make_pod("x")).explain("x", node="gpo")


def test_explaining_a_finished_pod_is_refused() -> None:
    done: Pod = make_pod("done").node("a").started("2026-01-01T00:00:00Z", phase="Succeeded").obj()
    cluster = cluster_of()
    cluster.add(done)
    with pytest.raises(InputError):
        cluster.explain("done")


class TooHigh(PerNodePlugin):
    """Scores one node beyond the range."""

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return 250 if node.name == "b" else 1


class Fraction(PerNodePlugin):
    """Returns no integer."""

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return 99.5  # type: ignore[return-value]


def test_an_out_of_range_score_is_reported_with_plugin_node_and_value() -> None:
    nodes = [make_node(name).capacity(cpu="4", memory="8Gi").obj() for name in "abc"]
    pods = make_pod("waits").obj(), make_pod("runs").node("a").obj()
    cluster = Cluster([*nodes, *pods], plugins=[TooHigh], record_level=RecordLevel.OFF)
    wrong = 'plugin "TooHigh" returns an invalid score 250 for node b: scores are 0 to 100'
    assert cluster.explain("runs").verdict == f"default/runs is on a; scheduling it again now fails: {wrong}"
    assert cluster.explain("waits").verdict == f"default/waits is pending: {wrong}"
    assert cluster.unblock("waits").verdict.startswith(f"default/waits is pending: {wrong}; ")
    assert [each.summary for each in cluster.waiting_reasons()] == [wrong]


def test_a_non_integer_score_raises_plugin_error_with_plugin_node_and_value() -> None:
    nodes = [make_node(name).capacity(cpu="4", memory="8Gi").obj() for name in "ab"]
    cluster = Cluster([*nodes, make_pod("x").obj()], plugins=[Fraction], record_level=RecordLevel.OFF)
    want = "Fraction.score_node: expected an integer from 0 to 100, got 99.5 for node a"
    for call in (cluster.explain, cluster.unblock):
        with pytest.raises(PluginError) as failure:
            call("x")
        assert str(failure.value) == want
    with pytest.raises(PluginError, match=want):
        cluster.schedule()


def test_the_message_in_the_pods_condition_is_attributed_and_compared() -> None:
    said = "0/31 nodes are available: 31 node(s) had untolerated taint {foo: bar}."
    condition = PodCondition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        message=said,
        last_transition_time="2026-01-01T00:00:00Z",
    )
    plain = make_pod("x").req(cpu="64").obj()
    pod = replace(plain, status=replace(plain.status, conditions=(condition,)))
    cluster = Cluster([make_node("a").capacity(cpu="4", memory="8Gi").obj(), pod])
    found = cluster.explain("x")
    assert (found.message, found.reported_at) == (said, "2026-01-01T00:00:00Z")
    assert found.message_now.startswith("0/1 nodes are available: 1 Insufficient cpu. ")
    text = text_of(found)
    assert f"default-scheduler reported at 2026-01-01T00:00:00Z: {said}" in text
    assert "Bayplan's attempt now reports: 0/1 nodes are available: 1 Insufficient cpu. " in text
    same = replace(condition, message=found.message_now)
    found = Cluster(
        [
            make_node("a").capacity(cpu="4", memory="8Gi").obj(),
            replace(plain, status=replace(plain.status, conditions=(same,))),
        ]
    ).explain("x")
    assert found.message_now == ""
    assert "Bayplan's attempt" not in text_of(found)


@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_and_the_remedy_name_the_same_victims_if_candidates_tie(seed: int) -> None:
    nodes = [make_node(name).capacity(cpu="4", memory="8Gi").obj() for name in "abcd"]
    placed = [make_pod(f"p-{name}").req(cpu="4").node(name).started("2026-01-01T00:00:00Z").obj() for name in "abcd"]
    cluster = Cluster([*nodes, *placed, make_pod("urgent").req(cpu="4").priority(9).obj()], seed=seed)
    found = cluster.explain("urgent")
    assert found.detail is not None
    attempt = found.detail.attempt
    assert found.verdict == (
        f"default/urgent waits for room on {attempt.nominated_node}, preempting {attempt.victims[0]}"
    )
    (wait,) = (each.text for each in found.detail.remedies if each.kind == "wait")
    assert wait == f"wait: the scheduler preempts {attempt.victims[0]} on {attempt.nominated_node} by itself"


def text_of(found: Explanation) -> str:
    """Return an explanation as the command prints it, on one line."""
    console = Console(file=io.StringIO(), width=100)
    for part in render_explanation(found, width=100):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def test_the_verdict_names_what_is_in_the_way_besides_what_ended_the_attempt() -> None:
    missing = make_pod("x").claim("gone").node_selector(team="web")
    cluster = Cluster([make_node("a").capacity(cpu="4").obj(), missing.obj()])
    assert cluster.explain("x").verdict == (
        'default/x is pending: persistentvolumeclaim "gone" not found; also no node has the label team=web (nodeSelector)'
    )
    gated = make_pod("y").req(cpu="5").gate("quota")
    cluster.add(gated.obj())
    assert cluster.explain("y").verdict == (
        "default/y is gated: waiting for scheduling gates: [quota]; also it requests 5 cpu, but the only node, a, offers 4"
    )


def test_a_pod_that_another_plugin_keeps_out_of_the_queue_is_explained() -> None:
    pod = make_pod("x").obj()
    pod = replace(
        pod,
        spec=replace(pod.spec, resource_claims=(PodResourceClaim(name="gpu", resource_claim_template_name="one-gpu"),)),
    )
    cluster = Cluster([make_node("a").capacity(cpu="4").obj(), pod])
    assert cluster.explain("x").verdict == "default/x is pending: ResourceClaim not created yet"


def test_a_search_for_taken_devices_leaves_claims_as_they_are() -> None:
    holder = make_pod("holder").uid("uid-holder").node("a").resource_claim("gpu", claim="held").obj()
    node, pod = make_node("a").capacity(cpu="4").obj(), make_pod("x").resource_claim("gpu", claim="wanted").obj()
    cluster = Cluster([node, *device_objects(), holder, pod])
    around = SchedulerSurroundings(cluster.scheduler, pod)
    before = cluster.state.catalog.writes, cluster.state.catalog.get(ResourceClaim, "default/held")
    assert around.nodes_with_devices() == ["a"]
    assert (cluster.state.catalog.writes, cluster.state.catalog.get(ResourceClaim, "default/held")) == before


def test_a_terminating_pod_without_a_node_does_not_wait() -> None:
    dying = make_pod("x").terminating("2026-01-01T00:00:00Z").obj()
    cluster = Cluster([make_node("a").capacity(cpu="4").obj(), dying])
    assert not cluster.pending
    assert not cluster.waiting_reasons()
    assert cluster.explain("x").verdict == "default/x was deleted before it got a node"
    with pytest.raises(InputError, match="expected a pending pod, got default/x, which is being deleted"):
        cluster.unblock("x")


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            make_pod("x").node("gone"), "default/x is on gone, which is not in the cluster", id="an unknown node"
        ),
        pytest.param(
            make_pod("x").node("a").terminating(), "default/x is on a, and is being deleted", id="a terminating pod"
        ),
        pytest.param(
            make_pod("x").node("a").annotation({"kubernetes.io/config.mirror": "hash"}),
            "default/x is on a: it is a static pod, which the kubelet of this node runs without the scheduler",
            id="a static pod",
        ),
    ],
)
def test_pods_that_are_never_scheduled_again_have_no_attempt(pod: PodBuilder, want: str) -> None:
    found = cluster_of(pod).explain("x")
    assert found.verdict == want
    assert not found.attempts
    assert found.detail is None
