"""Explanations: the verdict, attempts, rejections, scores, and suggested changes."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.analysis.decision_detail import attempt_detail, ranked_rows
from bayplan.analysis.explain import explain
from bayplan.analysis.explanation import Explanation, NodeDetail
from bayplan.analysis.explanation_text import render_explanation
from bayplan.analysis.pod_lookup import find_pods
from bayplan.analysis.report import print_parts
from bayplan.analysis.run_source import SimulationSource
from bayplan.base.errors import InputError
from bayplan.engine.records import RecordLevel
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.status import Status, unresolvable
from bayplan.objects.pod import Pod
from bayplan.sim.operations import Delete
from bayplan.sim.result import SimulationResult
from tests.analysis.consoles import printed
from tests.analysis.runs import SECOND_NS, node, pod, run


def explained(result: SimulationResult, name: str, **options: object) -> Explanation:
    source = SimulationSource(result)
    return explain(source, find_pods(name, source.pods), **options)  # type: ignore[arg-type]


def text_of(found: Explanation, width: int = 100, *, all_nodes: bool = False) -> str:
    return printed(lambda console: print_parts(console, render_explanation(found, width=width, all_nodes=all_nodes)))


class OddNodes(PerNodePlugin):
    """Rejects nodes whose name ends in an odd digit; the digit of any other node is its score."""

    name = "OddNodes"

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | Status | None:
        if node.name == "n9":
            return unresolvable("node(s) were the last")
        return "node(s) were odd" if int(node.name[-1]) % 2 else None

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return int(node.name[-1])


# --- pods that have a node ---------------------------------------------------------------------------------------------


def test_explain_reports_the_plugins_that_decided_between_winner_and_runner_up() -> None:
    nodes = [node("n0").obj(), node("n1").obj(), node("n2").taint("slow", effect="PreferNoSchedule").obj()]
    found = explained(run(*nodes, node("n3", cpu="500m").obj(), pod("p").obj(), seed=3), "p")
    detail = found.detail
    assert detail is not None
    assert found.verdict.startswith(
        f"default/p is on {found.node}: 3 of 4 nodes fit; 2 of them tie for the best total,"
    )
    assert detail.tie_set == ["n0", "n1"]
    assert detail.runner_up == "n2"
    (difference,) = detail.advantages
    assert (difference.plugin, difference.points, detail.margin) == ("TaintToleration", 300, 300)
    assert [each.rank for each in detail.best] == [1, 1, 3]
    assert detail.best[0].chosen
    assert detail.best[1].tied
    taints = next(score for score in detail.best[2].scores if score.plugin == "TaintToleration")
    assert (taints.raw, taints.normalized, taints.weight, taints.weighted) == (1, 0, 3, 0)
    (rejection,) = detail.rejections
    assert (rejection.plugin, rejection.reasons, rejection.nodes) == ("NodeResourcesFit", ["Insufficient cpu"], ["n3"])
    text = text_of(found)
    assert f"{found.node} is 300 points ahead of n2: TaintToleration +300" in text
    assert "tied: n0, n1; n0 was drawn at random" in text


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        (["n0"], "default/p is on n0: the only node that was examined"),
        (["n0", "small"], "default/p is on n0: the only one of 2 nodes that it fits on"),
    ],
    ids=["there is one node", "there are two"],
)
def test_a_single_feasible_node_is_explained_without_scores(nodes: list[str], want: str) -> None:
    made = [node(name, cpu="100m" if name == "small" else "4").obj() for name in nodes]
    found = explained(run(*made, pod("p").obj()), "p")
    assert found.verdict == want
    assert found.detail is not None
    assert not found.detail.scored
    assert "a single one is taken without scoring it" in text_of(found)


def test_a_pod_loaded_with_a_node_has_no_decision() -> None:
    found = explained(run(node("n0").obj(), pod("p").node("n0").obj()), "p")
    assert found.verdict == "default/p is on n0; it had this node when it was loaded"
    assert (found.attempts, found.detail) == ([], None)
    assert "attempt" not in text_of(found)


def test_the_verdict_reports_finished_and_deleted_pods() -> None:
    done = pod("done").annotation({"bayplan.io/run-time": "30s"}).obj()
    result = run(node("n0").obj(), done, pod("gone").obj(), later={60: [Delete(Pod, "default/gone")]})
    assert explained(result, "done").verdict.startswith("default/done has succeeded on n0: ")
    assert explained(result, "done").ended_ns == 30 * SECOND_NS
    assert explained(result, "gone").verdict.startswith("default/gone was on n0: ")


# --- pods that wait ----------------------------------------------------------------------------------------------------


def test_a_pending_pod_is_explained_with_rejections_by_plugin_and_reason() -> None:
    nodes = [node(f"n{number}", cpu="1").obj() for number in range(3)]
    nodes += [node("t").taint("dedicated", "gpu").obj(), node("c").unschedulable().obj()]
    found = explained(run(*nodes, pod("p", cpu="3").obj()), "p")
    assert found.verdict == (
        "default/p is pending: it requests 3 cpu, but the largest of the 3 nodes that it may use offers 1; "
        "the other 2 are excluded: cordoned (1), taint dedicated=gpu:NoSchedule (1)"
    )
    assert found.message.startswith("0/5 nodes are available: 1 node(s) had untolerated taint(s), ")
    assert found.detail is not None
    groups = [(each.plugin, each.reasons, len(each.nodes), each.code) for each in found.detail.rejections]
    assert groups == [
        ("NodeResourcesFit", ["Insufficient cpu"], 3, "UnschedulableAndUnresolvable"),
        ("TaintToleration", ["node(s) had untolerated taint(s)"], 1, "UnschedulableAndUnresolvable"),
        ("NodeUnschedulable", ["node(s) were unschedulable"], 1, "UnschedulableAndUnresolvable"),
    ]
    text = text_of(found)
    assert "3  NodeResourcesFit: Insufficient cpu (preemption can't help)\n     n0, n1, n2\n" in text


def test_a_pre_filter_rejection_is_listed_first_and_explains_every_node() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n0", "n1")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    result = run(node("n0").obj(), node("n1").obj(), pod("p").spec(affinity={"nodeAffinity": required}).obj())
    found = explained(result, "p", node="n0")
    assert found.detail is not None
    assert found.detail.rejected_by_pre_filter
    assert found.detail.rejections[0].plugin == "NodeAffinity"
    assert found.node_detail is not None
    assert found.node_detail.fate.startswith("NodeAffinity rejected n0 before filters ran on it: ")


@pytest.mark.parametrize(
    ("made", "want"),
    [
        (pod("p").gate("example.com/wait"), "default/p is gated: waiting for scheduling gates: [example.com/wait]"),
        (pod("p").scheduler("mine"), 'default/p is pending: no scheduler named "mine" is configured'),
    ],
    ids=["gated", "unattended"],
)
def test_pods_without_attempts_are_explained(made: object, want: str) -> None:
    found = explained(run(node("n0").obj(), made.obj()), "p")  # type: ignore[attr-defined]
    assert found.verdict == want
    assert found.detail is None


def test_explain_reports_a_cluster_without_nodes() -> None:
    found = explained(run(pod("p").obj()), "p")
    assert found.verdict == "default/p is pending: the cluster has no nodes"
    assert "there was no node" in text_of(found)


def test_attempts_are_listed_in_order_and_one_is_shown_in_full() -> None:
    result = run(node("n0", cpu="1").obj(), pod("p", cpu="3").obj(), later={60: [node("n1").obj(), node("n2").obj()]})
    found = explained(result, "p")
    assert [(each.outcome, each.time_ns) for each in found.attempts] == [
        ("unschedulable", 0),
        ("scheduled", 60 * SECOND_NS),
    ]
    assert found.detail is not None
    assert found.detail.attempt == found.attempts[-1]
    first = explained(result, "p", attempt=1)
    assert first.detail is not None
    assert (first.detail.nodes, first.detail.attempt.attempt) == (1, 1)
    assert "2 attempts" in text_of(found)
    with pytest.raises(InputError, match=r"--attempt of default/p: expected one of 1, \d+, got 7"):
        explained(result, "p", attempt=7)


def test_explain_describes_the_last_of_several_pods_with_one_name() -> None:
    result = run(
        node("n0").obj(), pod("p").obj(), later={30: [Delete(Pod, "default/p")], 60: [pod("p", cpu="9").obj()]}
    )
    found = explained(result, "p")
    assert found.verdict.startswith("default/p is pending")
    assert [each.time_ns for each in found.attempts] == [60 * SECOND_NS]
    assert found.notes == ["2 pods had this name, one after the other; this is about the last one"]


# --- preemption --------------------------------------------------------------------------------------------------------


def test_a_preemption_is_explained_with_node_and_victims() -> None:
    small = [pod(f"small-{number}", cpu="2").obj() for number in range(2)]
    result = run(node("n0").obj(), *small, later={60: [pod("p", cpu="3").priority(1000).obj()]})
    found = explained(result, "p", attempt=1)
    assert found.detail is not None
    attempt = found.detail.attempt
    assert attempt.nominated_node == "n0"
    assert sorted(attempt.victims) == ["default/small-0", "default/small-1"]
    assert "Nominated to n0, preempting default/small-" in " ".join(text_of(found).split())
    last = explained(result, "p")
    assert (last.node, last.fate) == ("n0", "placed")
    assert explained(result, "small-0").fate in ("deleted", "pending")


# --- single nodes, custom plugins, levels -------------------------------------------------------------------------------


def one_node(result: SimulationResult, name: str) -> NodeDetail:
    found = explained(result, "p", node=name)
    assert found.node_detail is not None
    return found.node_detail


def test_explaining_one_node_lists_the_results_of_all_plugins() -> None:
    nodes = [node("n0", cpu="500m").taint("dedicated", "gpu").obj(), node("n1").obj(), node("n2", cpu="8").obj()]
    result = run(*nodes, pod("p", cpu="2").obj())
    lost = one_node(result, "n0")
    assert lost.fate == "TaintToleration rejected n0: node(s) had untolerated taint(s)"
    verdicts = {each.plugin: each.code for each in lost.verdicts}
    assert verdicts["TaintToleration"] == "UnschedulableAndUnresolvable"
    assert verdicts["NodeResourcesFit"] == "UnschedulableAndUnresolvable"
    assert verdicts["NodeUnschedulable"] == "Success"
    assert (lost.free["cpu"], lost.requested["cpu"]) == (500, 2000)
    second = one_node(result, "n1")
    assert second.score is not None
    assert second.score.rank == 2
    assert second.fate.startswith("n1 was feasible, with ")
    assert sum(each.points for each in second.advantages) == int(second.fate.split()[4])
    winner = one_node(result, "n2")
    assert winner.fate == "the pod went to n2"
    assert winner.advantages == second.advantages
    with pytest.raises(InputError, match="--node: expected a node that existed at this attempt, got 'n22'; try 'n2'"):
        one_node(result, "n22")


def test_custom_plugins_are_explained_like_in_tree_plugins() -> None:
    nodes = [node(f"n{number}").obj() for number in (0, 2, 4, 7, 9)]
    found = explained(run(*nodes, pod("p").obj(), plugins=[OddNodes]), "p")
    assert found.node == "n4"
    detail = found.detail
    assert detail is not None
    assert [(each.plugin, each.reasons, each.code) for each in detail.rejections] == [
        ("OddNodes", ["node(s) were odd"], "Unschedulable"),
        ("OddNodes", ["node(s) were the last"], "UnschedulableAndUnresolvable"),
    ]
    assert [(each.plugin, each.points) for each in detail.advantages] == [("OddNodes", 2)]
    assert "OddNodes x1" in text_of(found)


def test_explain_suggests_full_records_if_only_summaries_exist() -> None:
    found = explained(run(node("n0").obj(), pod("p").obj(), level=RecordLevel.SUMMARY), "p")
    assert found.detail is None
    assert len(found.attempts) == 1
    assert "run it again with --records full" in " ".join(text_of(found).split())


def test_explain_suggests_full_records_if_nothing_was_recorded() -> None:
    found = explained(run(node("n0").obj(), pod("p").obj(), level=RecordLevel.OFF), "p")
    assert found.verdict == "default/p is on n0"
    assert "this run was not recorded; run it again with --records full" in text_of(found)


def test_an_explanation_round_trips_through_json() -> None:
    found = explained(run(node("n0").obj(), node("n1").obj(), pod("p").obj()), "p", node="n1")
    assert msgspec.json.decode(msgspec.json.encode(found.as_dict()), type=Explanation) == found


def test_long_node_lists_are_shortened_unless_all_nodes_are_requested() -> None:
    nodes = [node(f"a-node-with-a-long-name-{number:02}.cluster.example", cpu="1").obj() for number in range(30)]
    nodes += [node(f"worker-{number}").obj() for number in range(8)]
    found = explained(run(*nodes, pod("p", cpu="2").obj()), "p", best=100)
    lines = text_of(found, 80).splitlines()
    assert "and 26 more" in " ".join(text_of(found, 80).split())
    everything = text_of(found, 80, all_nodes=True)
    assert "a-node-with-a-long-name-29.cluster.example" in everything
    assert max(map(len, lines)) <= 100


def test_the_chosen_node_ranks_first_among_ties() -> None:
    result = run(*(node(f"n{number}").obj() for number in range(5)), pod("p").obj(), seed=5)
    decision = result.records.decision(0)
    rows = ranked_rows(decision)
    assert decision.names[rows[0]] == result.records[0].node
    rest = [decision.names[row] for row in rows[1:]]
    assert rest == sorted(rest)
    source = SimulationSource(result)
    (attempt,) = explained(result, "p").attempts
    assert len(attempt_detail(source, attempt, decision, rows, source.pods[0], 2).best) == 2


def test_an_attempt_rejected_before_filtering_evaluates_no_nodes() -> None:
    later = {5: [node("n1").obj()], 30: [node("n2").obj()]}
    found = explained(run(node("n0").obj(), pod("p").claim("data").obj(), later=later), "p")
    assert [each.evaluated_nodes for each in found.attempts] == [0] * len(found.attempts)
    assert "none tried" in text_of(found)
