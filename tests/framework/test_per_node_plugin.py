"""PerNodePlugin: plain Python for one node at a time gives the verdicts, scores and reasons of a fast plugin."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from bayplan.base.errors import PluginError
from bayplan.engine.records import Decision, RecordLevel
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import Plugin, Reads
from bayplan.framework.status import MAX_PLUGIN_CODE, SUCCESS, Code, Status, error, unresolvable, unschedulable
from bayplan.library import Cluster
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.testing import make_node, make_pod


class OnlyOwnTeam(PerNodePlugin):
    name = "OnlyOwnTeam"

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | Status | None:
        team = node.labels.get("team")
        return None if team == pod.metadata.labels.get("team") else f"node(s) belong to {team}"


class LikesBig(PerNodePlugin):
    name = "LikesBig"

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return node.allocatable("cpu") // 100


class Answers(PerNodePlugin):
    """Gives the answer that the node's label names."""

    name = "Answers"
    table: dict[str, object] = {  # noqa: RUF012  A table of a test.
        "ok": None,
        "success": SUCCESS,
        "text": "node(s) were refused",
        "no": unschedulable("node(s) had no room", "node(s) had no time"),
        "never": unresolvable("node(s) will never do"),
        "bug": error("it broke"),
        "nonsense": 7,
        "false": False,
        "empty": "",
    }

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | Status | None:
        return self.table[node.labels["answer"]]  # type: ignore[return-value]


def nodes(**labels: str) -> list[Node]:
    found = [make_node(name).capacity(cpu="4").label(team=value, answer=value) for name, value in labels.items()]
    return [node.obj() for node in found]


def decide(plugin: type[Plugin[Any]], *objects: Node, pod: Pod | None = None) -> Decision:
    (decision,) = Cluster(objects, plugins=[plugin]).schedule(pod if pod is not None else make_pod("p").obj())
    return decision


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(OnlyOwnTeam, ("filter",), id="filter_node makes a filter"),
        pytest.param(LikesBig, ("score",), id="score_node makes a score"),
        pytest.param(
            type("Does", (PerNodePlugin,), {"filter_node": OnlyOwnTeam.filter_node, "score_node": LikesBig.score_node}),
            ("filter", "score"),
            id="both make both",
        ),
        pytest.param(PerNodePlugin, (), id="neither method makes no plugin"),
    ],
)
def test_a_plugins_methods_determine_its_extension_points(plugin: type[PerNodePlugin], want: tuple[str, ...]) -> None:
    assert plugin.extension_points() == want


def test_a_filter_rejects_a_node_with_its_reason() -> None:
    decision = decide(OnlyOwnTeam, *nodes(a="red", b="blue"), pod=make_pod("p").label(team="blue").obj())
    assert decision.record.node == "b"
    failure = decision.first_failure(0)
    assert failure == Status(Code.UNSCHEDULABLE, ("node(s) belong to red",), "OnlyOwnTeam")
    assert "OnlyOwnTeam" not in decision.scorers


def test_scores_are_not_normalized() -> None:
    objects = [make_node(name).capacity(cpu=cpu).obj() for name, cpu in (("a", "1"), ("b", "9"))]
    decision = decide(LikesBig, *objects)
    number = decision.scorers.index("LikesBig")
    assert decision.raw[number].tolist() == decision.normalized[number].tolist() == [10, 90]
    assert "LikesBig" not in decision.filters


def test_scores_outside_0_to_100_fail_the_cycle() -> None:
    objects = [make_node(name).capacity(cpu=cpu).obj() for name, cpu in (("a", "11"), ("b", "12"))]
    decision = decide(LikesBig, *objects)
    assert decision.record.message == (
        'applying score defaultWeights on Score plugins: plugin "LikesBig" returns an invalid score 110, '
        "it should in the range of [0, 100] after normalizing"
    )


class Overflows(PerNodePlugin):
    """Scores beyond 64 bits."""

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return 1 << 63


def test_a_score_beyond_64_bits_names_plugin_and_node() -> None:
    want = r"Overflows.score_node: expected an integer from 0 to 100, got 9223372036854775808 for node a"
    with pytest.raises(PluginError, match=want):
        decide(Overflows, *nodes(a="red", b="blue"))


class CountsCalls(PerNodePlugin):
    """Score from the node's label, counting the calls; results depend on nodes alone."""

    name = "CountsCalls"
    reads = Reads.NODES
    calls = 0

    def sign_pod(self, pod: Pod) -> Hashable:
        return ()

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        type(self).calls += 1
        return int(node.labels["score"])


SAMPLED = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "percentageOfNodesToScore": 50,
}


def sampled_cluster(score: int, of: int) -> Cluster:
    """Return 200 nodes, of which node `of` has this score; each cycle searches for 100 feasible nodes."""
    objects = [
        make_node(f"node-{number:03}").capacity(cpu="4").label(score=str(score if number == of else 50)).obj()
        for number in range(200)
    ]
    return Cluster(objects, plugins=[CountsCalls], configuration=SAMPLED, record_level=RecordLevel.SUMMARY)


def test_sampled_cycles_score_only_changed_nodes() -> None:
    cluster, CountsCalls.calls = sampled_cluster(100, of=20), 0
    cluster.schedule(*[make_pod(f"p{number}").label(app="a").obj() for number in range(3)])
    assert [record.feasible_nodes for record in cluster.records] == [100, 100, 100]
    assert cluster.records[0].node == "node-020"
    assert CountsCalls.calls == 200


@pytest.mark.parametrize(
    ("of", "fails"), [pytest.param(20, True, id="sampled"), pytest.param(120, False, id="not sampled")]
)
def test_an_invalid_score_fails_a_sampled_cycle_only_if_the_node_is_sampled(of: int, fails: bool) -> None:
    cluster = sampled_cluster(101, of)
    cluster.schedule(make_pod("p").obj())
    (record,) = cluster.records
    assert record.feasible_nodes == 100
    assert ("returns an invalid score 101" in record.message) is fails


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param("text", (Code.UNSCHEDULABLE, ("node(s) were refused",)), id="a text rejects"),
        pytest.param(
            "no", (Code.UNSCHEDULABLE, ("node(s) had no room", "node(s) had no time")), id="a status keeps its reasons"
        ),
        pytest.param(
            "never", (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) will never do",)), id="what can't be resolved"
        ),
    ],
)
def test_filter_node_can_reject_with_a_text_or_a_status(answer: str, want: tuple[Code, tuple[str, ...]]) -> None:
    failure = decide(Answers, *nodes(a=answer, b="ok")).first_failure(0)
    assert failure is not None
    assert (failure.code, failure.reasons) == want


@pytest.mark.parametrize("answer", ["ok", "success"])
def test_filter_node_can_pass_with_none_or_success(answer: str) -> None:
    assert decide(Answers, *nodes(a=answer)).record.node == "a"


def test_a_filter_error_ends_the_cycle_even_if_other_nodes_fit() -> None:
    decision = decide(Answers, *nodes(a="ok", b="bug"))
    assert decision.record.node == ""
    assert decision.record.message == 'running "Answers" filter plugin: it broke'


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param("nonsense", "expected None, a reason or a Status, got 7", id="a number"),
        pytest.param("false", "expected None, a reason or a Status, got False", id="a bool"),
        pytest.param("empty", "expected None, a reason or a Status, got ''", id="a reason without text"),
    ],
)
def test_invalid_return_values_raise_plugin_error(answer: str, want: str) -> None:
    with pytest.raises(PluginError) as refused:
        decide(Answers, *nodes(a=answer))
    assert str(refused.value) == f"Answers.filter_node: {want}"


class Chatty(PerNodePlugin):
    """Never gives the same reason twice."""

    name = "Chatty"
    said = 0

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | Status | None:
        type(self).said += 1
        return f"reason {self.said}"


def test_too_many_different_reasons_raise_plugin_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.framework.per_node_plugin.MAX_PLUGIN_CODE", 5)
    assert MAX_PLUGIN_CODE > 5
    cluster = Cluster(nodes(a="x"), plugins=[Chatty])
    pods = [make_pod(f"p{number}").obj() for number in range(9)]
    with pytest.raises(PluginError, match="Chatty has returned 5 different reasons, the maximum; try fewer reasons"):
        cluster.schedule(*pods)


class Counting(PerNodePlugin):
    name = "Counting"
    asked: list[tuple[str, str]] = []  # noqa: RUF012  A test's notes.

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | Status | None:
        self.asked.append((pod.metadata.name, node.name))
        return None if pod.metadata.annotations.get("node", node.name) == node.name else "node(s) were not meant"


class CountingNodes(Counting):
    name = "CountingNodes"
    reads = Reads.NODES
    asked: list[tuple[str, str]] = []  # noqa: RUF012  A test's notes.


class CountingSigned(CountingNodes):
    name = "CountingSigned"
    asked: list[tuple[str, str]] = []  # noqa: RUF012  A test's notes.

    def sign_pod(self, pod: Pod) -> Hashable:
        return pod.metadata.annotations.get("node")


def calls_of(plugin: type[Counting], *pods: Pod) -> list[tuple[str, str]]:
    plugin.asked.clear()
    cluster = Cluster(nodes(a="x", b="y"), plugins=[plugin])
    for pod in pods:
        cluster.schedule(pod)
    return plugin.asked


def test_pods_with_different_metadata_get_separate_results() -> None:
    cluster = Cluster(nodes(a="x", b="y"), plugins=[Counting])
    for name, node in (("p", "b"), ("q", "a"), ("r", "b")):
        cluster.schedule(make_pod(name).annotation(node=node).obj())
    assert [cluster.node_of(name) for name in "pqr"] == ["b", "a", "b"]


def test_a_plugin_without_declared_reads_is_called_in_every_cycle() -> None:
    cluster = Cluster(nodes(a="x"), plugins=[Counting])
    Counting.asked.clear()
    for _ in range(3):
        cluster.schedule(make_pod("p").obj())
        cluster.remove("p")
    assert Counting.asked == [("p", "a")] * 3


def test_results_are_cached_if_the_plugin_reads_only_nodes() -> None:
    cluster = Cluster(nodes(a="x"), plugins=[CountingNodes])
    CountingNodes.asked.clear()
    for _ in range(3):
        cluster.schedule(make_pod("p").obj())
        cluster.remove("p")
    assert CountingNodes.asked == [("p", "a")]


def test_only_changed_nodes_are_evaluated_again() -> None:
    cluster = Cluster(
        [make_node(f"n{number:02}").capacity(cpu="4").obj() for number in range(20)], plugins=[CountingSigned]
    )
    cluster.schedule(make_pod("p").obj())
    CountingSigned.asked.clear()
    cluster.add(make_node("n07").capacity(cpu="4").label(disk="ssd").obj())
    cluster.schedule(make_pod("q").obj())
    assert CountingSigned.asked == [("p", "n07")]


def test_pods_with_equal_signatures_share_results() -> None:
    pods = [make_pod(name).annotation(node=node).obj() for name, node in (("p", "b"), ("r", "b"), ("q", "a"))]
    assert calls_of(CountingNodes, *pods) == [(name, node) for name in "prq" for node in "ab"]
    assert calls_of(CountingSigned, *pods) == [(name, node) for name in "pq" for node in "ab"]
    assert Counting.asked is not CountingSigned.asked


def test_removed_nodes_are_not_evaluated() -> None:
    cluster = Cluster(nodes(a="x", b="y"), plugins=[Counting])
    cluster.remove("a")
    Counting.asked.clear()
    cluster.schedule(make_pod("p").obj())
    assert Counting.asked == [("p", "b")]
