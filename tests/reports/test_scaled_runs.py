"""Reports of runs with an autoscaler and a descheduler: what results store about these, and which sections show it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bayplan.analysis.result_directory import open_result
from bayplan.base.durations import HOUR_NS, MINUTE_NS
from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.reports.page import read_runs, report_page
from bayplan.reports.run_data import RunData

pytest.importorskip("plotly")

OWNER = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]"
CLUSTER = f"""\
apiVersion: v1
kind: Node
metadata: {{name: fixed, annotations: {{bayplan.io/price: "1"}}}}
status: {{allocatable: {{cpu: "1", memory: 8Gi, pods: "9"}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: p, annotations: {{bayplan.io/run-time: 30m}}, {OWNER}}}
spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: "2"}}}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: old, {OWNER}}}
spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: 500m}}}}}}]}}
"""
AUTOSCALER = """\
apiVersion: bayplan.io/v1alpha1
kind: Autoscaler
nodeGroups:
- {name: small, maxSize: 2, price: 3, startUpDelay: 1m, template: {status: {allocatable: {cpu: "2", memory: 8Gi, pods: "9"}}}}
"""
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: old
  pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 2400}}]
  plugins: {deschedule: {enabled: [PodLifeTime]}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two results: ``both`` with an autoscaler and a descheduler, ``neither`` without."""
    found = tmp_path_factory.mktemp("scaled")
    for name, text in (("cluster", CLUSTER), ("scaling", AUTOSCALER), ("policy", POLICY)):
        (found / f"{name}.yaml").write_text(text)
    agents = ["--autoscaler", str(found / "scaling.yaml"), "--descheduler", str(found / "policy.yaml")]
    for name, options in (("both", agents), ("neither", [])):
        command = ["simulate", str(found / "cluster.yaml"), "--until", "2h", "--out", str(found / name)]
        assert main([*command, *options]) == 0
    return found


@pytest.fixture
def run(folder: Path) -> RunData:
    return RunData(open_result(folder / "both"), "both")


def test_a_result_stores_autoscaler_events(folder: Path) -> None:
    events = open_result(folder / "both").table("scaling").to_pylist()
    assert [(each["kind"], each["group"], each["nodes"]) for each in events] == [
        ("scale-up", "small", ["small-1"]),
        ("scale-down", "small", ["small-1"]),
    ]
    assert events[0]["pods"] == ["default/p"]


def test_a_result_stores_descheduler_evictions(folder: Path) -> None:
    (row,) = open_result(folder / "both").table("descheduled").to_pylist()
    assert (row["pod"], row["node"], row["plugin"]) == ("default/old", "fixed", "PodLifeTime")


def test_missing_tables_are_refused_with_the_option_that_writes_them(folder: Path) -> None:
    result = open_result(folder / "neither")
    assert not result.has_table("scaling")
    with pytest.raises(InputError, match="--autoscaler FILE --out"):
        result.table("scaling")


def test_amounts_and_prices_of_removed_nodes_are_stored(run: RunData) -> None:
    assert run.nodes.names == ["fixed", "small-1"]
    assert run.nodes.groups == ["", "small"]
    assert run.nodes.prices.tolist() == [1, 3]
    (group,) = run.facts.node_groups
    assert run.cost() == pytest.approx(group.cost + run.duration_ns / HOUR_NS)
    while_p_runs = np.array([20 * MINUTE_NS])
    assert run.utilisation(while_p_runs, resource="cpu").tolist() == [pytest.approx(100 * 2.5 / 3)]


def test_nodes_are_counted_by_group(run: RunData) -> None:
    times = np.array([0, 20 * MINUTE_NS, 119 * MINUTE_NS])
    assert run.node_count(times).tolist() == [1, 2, 1]
    assert run.node_count(times, group="small").tolist() == [0, 1, 0]


def test_the_report_shows_node_groups_scaling_events_and_evictions(folder: Path) -> None:
    text = report_page(read_runs([f"a={folder / 'both'}", f"b={folder / 'neither'}"]))
    costs, events, pods = (
        re.findall(rf'<table id="{name}">(.*?)</table>', text, flags=re.DOTALL)
        for name in ("group-costs", "scaling-events", "descheduled-pods")
    )
    assert "<td>small</td><td>1</td><td>1</td>" in costs[0]
    assert costs[0].count("all groups") == 1  # Only the run with node groups has this row.
    assert "<td>scale-up</td><td>small</td><td>small-1</td><td>1</td><td>pending pods</td>" in events[0]
    assert "default/old" in pods[0]
    (figure,) = re.findall(r'<script type="application/json" id="descheduled-data">(.*?)</script>', text)
    assert [bar["y"] for bar in json.loads(figure)["data"]] == [[1.0], [0.0]]


def test_a_report_without_autoscaler_and_descheduler_omits_their_sections(folder: Path) -> None:
    text = report_page(read_runs([str(folder / "neither")]))
    for name in ("group-costs", "scaling-events", "descheduled"):
        assert f'id="{name}"' not in text
    assert "None after the start." in text
