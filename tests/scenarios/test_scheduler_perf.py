"""Configurations of scheduler_perf as scenarios: a small invented one, and upstream's."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.scenario_runs import ScenarioOptions, run_scenarios
from bayplan.scenarios.runner import Outcome, ScenarioResult
from tests.shared import shared_path

POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-, labels: {app: x}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "%s"}}}]}
"""
UPDATE = """
apiVersion: v1
kind: Pod
metadata: {name: late-{{.Index}}, labels: {app: x}}
spec: {%scontainers: [{name: c, image: i}]}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: "node-{{AddInt .Index 1}}"}
status: {capacity: {cpu: "2", memory: 8Gi, pods: "110", "foo.com/bar-{{.Index}}": "1"}}
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, csi: {driver: d}}
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {annotations: {pv.kubernetes.io/bind-completed: "true"}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
GATE = "schedulingGates: [{name: hold}], "


def run(folder: Path, *operations: str, params: str = "{nodes: 2, pods: 4}") -> ScenarioResult:
    for name, text in (
        ("pod", POD % "500m"),
        ("big", POD % "3"),
        ("node", NODE),
        ("pv", VOLUME),
        ("pvc", CLAIM),
        ("gated", UPDATE % GATE),
        ("open", UPDATE % ""),
    ):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    lines = "".join(f"  - {each}\n" for each in operations)
    text = f"- name: Case\n  defaultPodTemplatePath: pod.yaml\n  workloadTemplate:\n{lines}"
    path = folder / "performance-config.yaml"
    path.write_text(f"{text}  workloads:\n  - {{name: Small, params: {params}, labels: [short]}}\n", encoding="utf-8")
    (result,) = run_scenarios(ScenarioOptions(paths=[str(path)], label="short", check=True))
    return result


NODES = "{opcode: createNodes, countParam: $nodes, nodeTemplatePath: node.yaml}"
PODS = "{opcode: createPods, countParam: $pods, namespace: ns}"
PASSING = [
    ("pods are created and must be scheduled", [NODES, PODS], 4),
    ("nodes without a template have 4 CPUs", ["{opcode: createNodes, count: 1}", PODS], 4),
    (
        "sets of pods are created in numbered namespaces",
        [
            NODES,
            ("{opcode: createPodSets, count: 2, namespacePrefix: s, createPodsOp: {opcode: createPods, count: 1}}"),
        ],
        2,
    ),
    (
        "pods that need not be scheduled are waited for by a barrier",
        [
            ("{opcode: createPods, count: 1, namespace: ns, skipWaitToCompletion: true}"),
            "{opcode: barrier, stageRequirement: Attempted}",
            NODES,
            "{opcode: barrier, namespaces: [ns], labelSelector: {app: x}}",
        ],
        2,
    ),
    (
        "deleted pods make room",
        [
            NODES,
            "{opcode: createPods, count: 8, namespace: a}",
            ("{opcode: createPods, count: 1, namespace: b, skipWaitToCompletion: true}"),
            ("{opcode: deletePods, namespace: a, deletePodsPerSecond: 10, labelSelector: {app: x}}"),
            "{opcode: barrier}",
        ],
        10,
    ),
    (
        "an update opens the gate of a pod",
        [
            NODES,
            "{opcode: createAny, templatePath: gated.yaml, namespace: ns}",
            "{opcode: updateAny, templatePath: open.yaml, namespace: ns}",
            "{opcode: barrier}",
        ],
        1,
    ),
    (
        "volumes are bound to their claims",
        [
            NODES,
            (
                "{opcode: createPods, count: 2, namespace: ns, persistentVolumeTemplatePath: pv.yaml, "
                "persistentVolumeClaimTemplatePath: pvc.yaml}"
            ),
        ],
        2,
    ),
    (
        "churn goes on while others wait",
        [
            NODES,
            ("{opcode: churn, mode: recreate, number: 1, templatePaths: [big.yaml], intervalMilliseconds: 1000}"),
            PODS,
            "{opcode: sleep, duration: 3s}",
            "{opcode: barrier, namespaces: [ns]}",
        ],
        6,
    ),
    (
        "zones are given to nodes in turn",
        [
            ("{opcode: createNodes, count: 2, labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}}"),
            PODS,
            "{opcode: startCollectingMetrics, namespaces: [ns]}",
            "{opcode: stopCollectingMetrics}",
        ],
        4,
    ),
    (
        "nodes get drivers with their limits",
        [
            (
                "{opcode: createNodes, count: 2, nodeAllocatableStrategy: {nodeAllocatable: {x.io/a: "
                "'2'}, csiNodeAllocatable: {d: {count: 1}}, migratedPlugins: [kubernetes.io/aws-ebs]}}"
            ),
            (
                "{opcode: createPods, count: 2, namespace: ns, persistentVolumeTemplatePath: pv.yaml, "
                "persistentVolumeClaimTemplatePath: pvc.yaml}"
            ),
        ],
        2,
    ),
]


@pytest.mark.parametrize(("operations", "decisions"), [pytest.param(*case[1:], id=case[0]) for case in PASSING])
def test_supported_operations_pass(operations: list[str], decisions: int, tmp_path: Path) -> None:
    result = run(tmp_path, *operations)
    assert [step.problem for step in result.steps if step.outcome is not Outcome.PASSED] == []
    assert result.name == "Case/Small"
    assert result.decisions == decisions


FAILING = [
    (
        "pods that are not scheduled in time",
        [NODES, "{opcode: createPods, count: 9, namespace: ns}"],
        (
            "barrier: expected all pods scheduled within 10m, got 1 of 9 missing; ns/pod-1-8: "
            "0/2 nodes are available: 2 Insufficient cpu"
        ),
    ),
    (
        "a limit of volumes that is reached",
        [
            "{opcode: createNodes, count: 1, nodeAllocatableStrategy: {csiNodeAllocatable: {d: {count: 1}}}}",
            (
                "{opcode: createPods, count: 2, namespace: ns, persistentVolumeTemplatePath: pv.yaml, "
                "persistentVolumeClaimTemplatePath: pvc.yaml}"
            ),
        ],
        "barrier: expected all pods scheduled within 10m, got 1 of 2 missing; ns/pod-1-1: "
        "0/1 nodes are available: 1 node(s) exceed max volume count",
    ),
    (
        "a steady state",
        ["{opcode: createPods, count: 1, steadyState: true}"],
        ("{where}:4 Case/Small $.steadyState is not supported: create the pods once"),
    ),
    (
        "a parameter that is not there",
        ["{opcode: createNodes, countParam: $n}"],
        ("{where}:4 Case/Small $.countParam: expected one of $nodes, $pods, got '$n'"),
    ),
    (
        "a template that is not there",
        ["{opcode: createNodes, count: 1, nodeTemplatePath: no.yaml}"],
        ("{where}:4 Case/Small {folder}/no.yaml: expected a readable file, got no such file or directory"),
    ),
    (
        "an operation that is not known",
        ["{opcode: createNode}"],
        "{where}:4 Case/Small $.opcode: expected one of barrier, ",
    ),
]


@pytest.mark.parametrize(("operations", "problem"), [pytest.param(*case[1:], id=case[0]) for case in FAILING])
def test_a_failing_operation_reports_its_problem(operations: list[str], problem: str, tmp_path: Path) -> None:
    result = run(tmp_path, *operations)
    (broken,) = [step for step in result.steps if step.outcome is Outcome.BROKEN]
    wanted = problem.replace("{where}", str(tmp_path / "performance-config.yaml")).replace("{folder}", str(tmp_path))
    assert broken.problem.startswith(wanted)


UPSTREAM = ("affinity", "default_preemption", "misc", "podgroup/gangscheduling", "topology_spreading", "volumes")


@pytest.mark.parametrize("file", UPSTREAM)
def test_the_smallest_upstream_workloads_pass(file: str) -> None:
    path = shared_path("data", "scheduler_perf", file, "performance-config.yaml")
    only = "10Nodes_" if "gang" in file else "5Nodes"
    results = list(run_scenarios(ScenarioOptions(paths=[str(path)], only=only, label="integration-test")))
    assert results
    for result in results:
        # Some older workloads disable feature gates that are locked in this release.
        problems = [step.problem for step in result.steps if step.problem and "feature is locked" not in step.problem]
        assert problems == [], result.name
