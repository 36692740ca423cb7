"""A cluster in a notebook: add, schedule, read, fork."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayplan
from bayplan import Cluster, InputError, NodeInfo, PerNodePlugin, RecordLevel, make_node, make_pod
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.gates import ClassicGates
from bayplan.classic.policy import policy_from_mapping
from bayplan.objects.pod import Pod

CORDONED = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a}, spec: {unschedulable: true}, status: {allocatable: {cpu: "4", pods: "9"}}}
- {apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: "2", pods: "9"}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: default, uid: u, resourceVersion: "7"}
  spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
"""
BIG = {"name": "c", "resources": {"limits": {"cpu": "5"}}}
"""A container whose requests default to its limits."""


def three_nodes() -> Cluster:
    return Cluster([make_node(name).capacity(cpu="4", memory="8Gi").obj() for name in ("a", "b", "c")])


def test_pods_are_spread_and_decisions_are_readable_as_arrays() -> None:
    cluster = three_nodes()
    decisions = cluster.schedule(*[make_pod(f"web-{number}").req(cpu="1", memory="1Gi").obj() for number in range(3)])
    assert sorted(decision.record.node for decision in decisions) == ["a", "b", "c"]
    last = decisions[-1]
    assert last.names == ("a", "b", "c")
    assert last.codes.shape == (len(last.filters), 3)
    assert last.raw.shape == last.normalized.shape == (len(last.scorers), 3)
    assert np.array_equal(last.weighted.sum(axis=0), last.total)
    assert last.record.node in last.ties


def test_an_infeasible_pod_stays_pending_until_a_node_is_added() -> None:
    cluster = three_nodes()
    (decision,) = cluster.schedule(make_pod("big").req(cpu="6").obj())
    assert decision.record.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert cluster.pending == ["default/big"]
    cluster.add(make_node("d").capacity(cpu="8").obj())
    assert [decision.record.node for decision in cluster.schedule()] == ["d"]
    assert cluster.node_of("big") == "d"


def test_a_fork_is_independent() -> None:
    cluster = three_nodes()
    cluster.schedule(make_pod("p").req(cpu="3").obj())
    fork = cluster.fork()
    fork.remove("p", "a", "b", "c")
    assert not len(fork.state.nodes)
    assert cluster.node_of("p") is not None
    fork.state.check_invariants()
    cluster.state.check_invariants()


def test_the_pods_of_a_removed_node_are_removed() -> None:
    cluster = three_nodes()
    cluster.schedule(make_pod("p").req(cpu="3").obj(), make_pod("q").req(cpu="3").obj())
    node = cluster.node_of("p") or ""
    cluster.remove(node)
    assert cluster.node_of("p") is None
    assert [each.key for each in cluster.timelines()] == ["default/q"]
    cluster.add(make_node(node).capacity(cpu="4").obj())
    assert list(cluster.fork().scheduler.pods) == list(cluster.scheduler.pods) == ["default/q"]
    cluster.state.check_invariants()


def test_an_unknown_name_can_not_be_removed() -> None:
    with pytest.raises(InputError, match=r"remove\(\): expected a pod or node of the cluster, got 'nobody'"):
        three_nodes().remove("nobody")


def test_open_accepts_plugins_only_by_name() -> None:
    class Quiet(PerNodePlugin):
        def filter_node(self, pod: Pod, node: NodeInfo) -> None: ...

    with pytest.raises(InputError, match=r"plugins: expected strings, got the class Quiet; try 'FILE.py:Quiet'"):
        Cluster.open("nodes.yaml", plugins=[Quiet])


def test_a_fork_copies_pending_pods() -> None:
    cluster = three_nodes()
    cluster.schedule(make_pod("big").req(cpu="6").obj())
    fork = cluster.fork()
    fork.add(make_node("d").capacity(cpu="8").obj())
    fork.schedule()
    assert fork.node_of("big") == "d"
    assert cluster.node_of("big") is None


class OnlyB(PerNodePlugin):
    """Rejects every node but b, with a reason."""

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        return None if node.name == "b" else f"node is not b, which {pod.metadata.name} wants"


def test_a_custom_plugin_selects_nodes_and_reports_reasons() -> None:
    cluster = Cluster(plugins=[OnlyB])
    cluster.add(*[make_node(name).capacity(cpu="4").obj() for name in ("a", "b", "c")])
    (decision,) = cluster.schedule(make_pod("p").obj())
    assert decision.record.node == "b"
    failure = decision.first_failure(0)
    assert failure is not None
    assert (failure.plugin, failure.reasons) == ("OnlyB", ("node is not b, which p wants",))


@pytest.mark.parametrize("change", ["feature-gates=SchedulerAsyncPreemption=false", "plugin=FGD", "weight=OnlyB:2"])
def test_a_scheduler_what_if_preserves_plugins_and_configuration(change: str) -> None:
    class Scored(OnlyB):
        """Also scores, because only score plugins have a weight."""

        name = "OnlyB"

        def score_node(self, pod: Pod, node: NodeInfo) -> int:
            return 0

    name = {"schedulerName": "own"}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [name],
    }
    nodes = [make_node(name).capacity(cpu="4").obj() for name in ("a", "b", "c")]
    cluster = Cluster(nodes, configuration=document, plugins=[Scored])
    cluster.schedule(make_pod("p").scheduler("own").obj())
    found = cluster.what_if(configuration=[change], reschedule="all")
    assert (cluster.node_of("p"), found.counts["moved"], found.counts["waits"]) == ("b", 0, 0)


def test_the_same_seed_chooses_the_same_nodes() -> None:
    def nodes(seed: int) -> list[str]:
        cluster = Cluster(
            [make_node(f"n{number:02}").capacity(cpu="4").obj() for number in range(20)],
            seed=seed,
            record_level=RecordLevel.SUMMARY,
        )
        cluster.schedule(*[make_pod(f"p{number}").obj() for number in range(20)])
        return [record.node for record in cluster.records]

    assert nodes(1) == nodes(1)
    assert nodes(1) != nodes(2)


@pytest.mark.parametrize(
    ("configuration", "want"),
    [
        pytest.param("kind: Pod", "Object 'apiVersion' is missing in 'kind: Pod'", id="another kind"),
        pytest.param(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Missing"}]}}}],
            },
            "Missing",
            id="a plugin that does not exist",
        ),
    ],
)
def test_an_invalid_configuration_is_refused(configuration: str | dict[str, object], want: str) -> None:
    with pytest.raises(bayplan.InputError) as refusal:
        Cluster(configuration=configuration)
    assert want in str(refusal.value)


def test_public_names_are_pinned() -> None:
    assert bayplan.__all__ == [
        "Cluster",
        "Decision",
        "simulate",
        "SimulationOptions",
        "open_result",
        "open_source",
        "SourceOptions",
        "Rows",
        "example_path",
        "RecordLevel",
        "make_node",
        "make_pod",
        "PerNodePlugin",
        "NodeInfo",
        "Reads",
        "Status",
        "unschedulable",
        "unresolvable",
        "BayplanError",
        "InputError",
        "__version__",
    ]
    assert all(getattr(bayplan, name) is not None for name in bayplan.__all__ if name != "open_result")


def test_importing_the_package_does_not_import_numpy() -> None:
    program = "import sys, bayplan; print('numpy' in sys.modules, bayplan.__version__)"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.split()[0] == "False"


def test_questions_do_not_change_the_cluster() -> None:
    nodes = [
        make_node(name).capacity(cpu="2", memory="4Gi").zone(zone).obj() for name, zone in (("n1", "a"), ("n2", "b"))
    ]
    pod = make_pod("web-1").req(cpu="1").owner("ReplicaSet", "web").obj()
    cluster = Cluster([*nodes, pod])
    cluster.schedule()
    here = cluster.node_of("web-1")
    assert cluster.capacity("web").copies == 3
    assert len(cluster.removable_nodes().removed) == 1
    found = cluster.what_if(f"remove-nodes={here}", "scale=web:2")
    assert [(each.kind, each.before) for each in found.differences] == [("moved", here), ("new", "")]
    assert cluster.what_if(configuration=["weight=NodeResourcesFit:7"], reschedule="all").counts["waits"] == 0
    assert cluster.node_of("web-1") == here
    assert len(cluster.records) == 1


def test_nodes_and_pods_convert_to_pandas_with_nanosecond_times() -> None:
    import pandas as pd  # type: ignore[import-untyped]

    cluster = three_nodes()
    cluster.schedule(make_pod("web").req(cpu="1", memory="1Gi").created("2026-01-01T00:00:00.123456789Z").obj())
    nodes, pods = cluster.nodes.to_pandas(), cluster.pods.to_pandas()
    assert sorted(nodes.cpu_requested_milli) == [0, 0, 1000]
    assert (pods.pod[0], pods.node[0]) == ("default/web", cluster.node_of("web"))
    assert pods.created_at[0] == pd.Timestamp("2026-01-01T00:00:00.123456789Z")
    assert pods.created_at[0].nanosecond == 789


def test_clusters_decisions_and_what_ifs_have_html_representations() -> None:
    cluster = three_nodes()
    (decision,) = cluster.schedule(make_pod("web").req(cpu="1", memory="1Gi").owner("ReplicaSet", "web").obj())
    (rejected,) = cluster.schedule(make_pod("<big>").req(cpu="64").obj())
    assert "3 nodes, 2 pods, 1 pending" in cluster._repr_html_()
    assert "<td>chosen</td>" in decision._repr_html_()
    assert "NodeResourcesFit: Insufficient cpu" in rejected._repr_html_()
    assert "&lt;big&gt;" in rejected._repr_html_()
    assert "<td>moved</td>" in cluster.what_if(f"remove-nodes={decision.record.node}")._repr_html_()


Objects = Any
"""Values that a user may pass by mistake."""


@pytest.mark.parametrize(
    ("mistaken", "message"),
    [
        pytest.param(make_pod("p"), ".obj()", id="a builder"),
        pytest.param([make_pod("p").obj()], "try *objects", id="a list of objects"),
        pytest.param("p", "make_pod(...).obj()", id="a name"),
    ],
)
def test_add_refuses_non_objects_with_a_suggestion(mistaken: Objects, message: str) -> None:
    with pytest.raises(bayplan.InputError) as refused:
        three_nodes().add(mistaken)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(Cluster, "Cluster.open('cluster.yaml')", id="of a cluster"),
        pytest.param(bayplan.simulate, "SimulationOptions(paths=['cluster.yaml'])", id="of simulate"),
    ],
)
def test_a_path_instead_of_objects_or_options_is_refused(call: Callable[[Objects], object], message: str) -> None:
    with pytest.raises(bayplan.InputError) as refused:
        call("cluster.yaml")
    assert message in str(refused.value)


def test_a_single_object_instead_of_a_list_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"objects: expected a list, got a Node; try \[node\]"):
        Cluster(make_node("a").obj())  # type: ignore[arg-type]


def test_a_terminating_pod_without_a_node_is_skipped() -> None:
    pods = [make_pod("dying").terminating().obj(), make_pod("p").obj()]
    cluster = Cluster([make_node("a").capacity(cpu="1").obj(), *pods])
    assert [decision.record.node for decision in cluster.schedule()] == ["a"]
    assert cluster.pending == []


def test_an_opened_cluster_has_the_seed_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(CORDONED)
    opened = Cluster.open(str(tmp_path / "dump.yaml"), seed=7)
    assert (opened.seed, opened.fork().seed, opened.questions().seed) == (7, 7, 7)


def test_each_suggestion_can_be_added_to_a_fork(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(CORDONED)
    cluster = Cluster.open(str(tmp_path / "dump.yaml"))
    suggestions = cluster.unblock("p").suggestions
    assert {each.kind for each in suggestions} >= {"shrink request", "uncordon node", "add node"}
    for suggestion in suggestions:
        fork = cluster.fork()
        fork.add(*suggestion.objects)
        assert [each.record.node for each in fork.schedule()] == [suggestion.node]


def test_a_manifest_gets_defaults_and_an_invalid_one_is_refused() -> None:
    cluster = three_nodes()
    limits = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [BIG]}}
    assert [each.record.node for each in cluster.schedule(limits)] == [""]
    with pytest.raises(InputError, match="expected an object with apiVersion and kind"):
        cluster.add({"kind": "Pod"})


class NamedCluster(Cluster):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @cached_property
    def size(self) -> int:
        return len(self.nodes)


def test_a_fork_of_a_subclass_has_its_attributes() -> None:
    cluster = NamedCluster("test")
    assert cluster.size == 0
    fork = cluster.fork()
    fork.add(make_node("a").obj())
    assert (fork.name, fork.size, cluster.size) == ("test", 1, 0)


def test_a_change_of_the_gates_keeps_the_policy_of_a_classic_cluster() -> None:
    header: dict[str, object] = {"apiVersion": "v1", "kind": "Policy"}
    policy = policy_from_mapping({**header, "predicates": [{"name": "HostName"}], "priorities": []})
    gates = ClassicGates.from_text("PodOverhead=true")
    big = make_pod("big").req(cpu="5").obj()
    cluster = Cluster(
        [make_node("n").capacity(cpu="1").obj()], classic=ClassicConfiguration(policy=policy, gates=gates)
    )
    cluster.schedule(big)
    answer = cluster.what_if("feature-gates=EvenPodsSpread=true", reschedule="all")
    assert list(answer.differences) == []
