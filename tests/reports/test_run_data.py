"""The numbers in a report, for runs so small that they can be computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayplan.analysis.export import export
from bayplan.analysis.result_directory import open_result
from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.base.durations import SECOND_NS
from bayplan.objects.node import Node
from bayplan.reports.charts import shortened, wait_distribution, waits_by
from bayplan.reports.intervals import mean_and_margin
from bayplan.reports.rejections import OTHER, plugin_of, rejections_by_plugin
from bayplan.reports.run_data import RunData, level
from bayplan.sim.operations import Apply, Delete, Operation
from bayplan.testing import make_node, make_pod
from tests.sim.simulations import simulate as simulation

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1, annotations: {bayplan.io/price: "2"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: first, annotations: {bayplan.io/run-time: 1h}}
spec: {priority: 5, containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: second, annotations: {bayplan.io/run-time: 1h}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    folder = tmp_path_factory.mktemp("report")
    (folder / "cluster.yaml").write_text(CLUSTER)
    export(simulate(SimulationOptions(paths=[str(folder / "cluster.yaml")])), folder / "result")
    return RunData(open_result(folder / "result"), "run")


def minutes(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([value * 60 * SECOND_NS for value in values], dtype=np.int64)


def test_utilisation_follows_the_pods_on_the_nodes(run: RunData) -> None:
    assert run.utilisation(minutes(1, 61), resource="cpu").tolist() == [75, 50]


def test_queue_length_counts_pods_without_a_node(run: RunData) -> None:
    assert run.queue_length(minutes(1, 61)).tolist() == [1, 0]


def test_waiting_times_are_grouped_by_priority(run: RunData) -> None:
    assert sorted(round(each) for each in run.waits_s()) == [0, 3600]
    found = run.waits_by([str(each) for each in run.pods.priorities.tolist()])
    assert {name: [round(each) for each in values] for name, values in found.items()} == {"5": [0], "0": [3600]}


def test_idle_amounts_on_nodes_without_room_for_typical_pods(run: RunData) -> None:
    # First, one CPU is free, which is too little for both shapes of pods. Later two are free, enough for one of them.
    assert run.idle_without_room(minutes(1, 61), resource="cpu").tolist() == [100, 50]


def test_cost_is_node_hours_times_the_price(run: RunData) -> None:
    assert run.node_hours() == pytest.approx(2, rel=0.01)
    assert run.cost() == pytest.approx(4, rel=0.01)


def test_rejections_are_counted_by_plugin(run: RunData) -> None:
    assert set(run.rejections) == {"NodeResourcesFit"}


@pytest.mark.parametrize(
    ("reason", "want"),
    [
        ("Insufficient cpu", "NodeResourcesFit"),
        ("node(s) had untolerated taint {gpu: }", "TaintToleration"),
        ("node(s) didn't match pod anti-affinity rules", "InterPodAffinity"),
        ("node(s) didn't have enough room on their GPUs", "GPU sharing"),
        ("node(s) were too loud", OTHER),
    ],
)
def test_plugin_of_returns_the_plugin_of_a_reason(reason: str, want: str) -> None:
    assert plugin_of(reason) == want


def test_rejections_by_plugin_counts_nodes() -> None:
    message = "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable."
    assert rejections_by_plugin([message]) == {"NodeResourcesFit": 2, "NodeUnschedulable": 3}


def test_level_counts_intervals_that_have_started_and_not_ended() -> None:
    starts, ends = np.array([0, 10, 5]), np.array([10, 20, 5])
    assert level(starts, ends, np.array([1, 2, 4]), np.array([0, 5, 10, 20])).tolist() == [1, 1, 2, 0]


@pytest.mark.parametrize(
    ("names", "want"),
    [
        (["node-a-1", "node-a-2", "node-b"], ("node-", ["a-1", "a-2", "b"])),
        (["shop/web-1", "shop/web-12"], ("shop/web-", ["1", "12"])),
        (["one"], ("", ["one"])),
        (["abc1", "abc2"], ("", ["abc1", "abc2"])),
        (["a-1", "a-1"], ("a-", ["1", "1"])),
        ([], ("", [])),
    ],
)
def test_shortened_strips_the_common_prefix(names: list[str], want: tuple[str, list[str]]) -> None:
    assert shortened(names) == want


def test_waits_below_one_second_share_one_point(run: RunData) -> None:
    data: Any = wait_distribution({"run": [run]})["data"]
    (curve,) = data
    assert curve["x"][0] == 1
    assert [round(each) for each in curve["x"]] == [1, 3600]
    assert curve["y"] == [50, 100]


def test_waits_by_is_omitted_if_all_pods_share_the_name(run: RunData) -> None:
    assert waits_by({"run": [run]}, "workload", lambda run: ["same"] * len(run.pods.names)) is None


def test_the_margin_of_two_runs_uses_students_t_distribution() -> None:
    mean, margin = mean_and_margin(np.array([[1.0], [3.0]]))
    assert mean.tolist() == [2.0]
    # Half of the interval: t(0.975, 1) * standard deviation / sqrt(2) = 12.706 * 1.414 / 1.414.
    assert margin.tolist() == pytest.approx([12.706])


def test_the_margin_of_a_single_run_is_zero() -> None:
    mean, margin = mean_and_margin(np.array([[1.0, 2.0]]))
    assert (mean.tolist(), margin.tolist()) == ([1.0, 2.0], [0.0, 0.0])


def test_pods_are_on_the_node_that_had_its_name_at_the_time(tmp_path: Path) -> None:
    first = make_node("n1").capacity(cpu="4").obj()
    second = make_node("n1").capacity(cpu="8").uid("second").obj()
    early = make_pod("early").req(cpu="4").annotation({"bayplan.io/run-time": "50s"}).obj()
    late = make_pod("late").req(cpu="3").annotation({"bayplan.io/run-time": "50s"}).obj()
    steps: list[tuple[int, Operation]] = [
        (0, Apply(first)),
        (0, Apply(early)),
        (60, Delete(Node, "n1")),
        (100, Apply(second)),
        (100, Apply(late)),
    ]
    done = simulation(*((time * SECOND_NS, operation) for time, operation in steps), until_ns=200 * SECOND_NS)
    export(done, tmp_path / "result")
    run = RunData(open_result(tmp_path / "result"), "run")
    cpu = run.resources.index("cpu")
    assert [run.usage_of_nodes(time * SECOND_NS)[cpu].tolist() for time in (30, 120)] == [[4000, 0], [0, 3000]]
    assert run.utilisation(np.array([30, 120]) * SECOND_NS, resource="cpu").tolist() == [100, 37.5]
