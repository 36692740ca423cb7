"""Errors in scenario files: each message has the line, what was expected, and a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.scenario_runs import ScenarioOptions, run_scenarios
from bayplan.base.errors import InputError
from bayplan.scenarios.loading import find_scenarios
from bayplan.scenarios.scenario import ACTIONS
from tests.scenarios.files import HEAD, write

CASES = [
    (
        "a misspelt check",
        "- assert: [{plased: {}}]",
        "6 Scenario $.steps[0].assert[0].plased: got an unknown field; try 'placed'",
    ),
    (
        "a misspelt action",
        "- cordon: n1\n- drian: n1",
        "7 Scenario $.steps[1].drian: got an unknown field; try 'drain'",
    ),
    (
        "a word for a number",
        "- scale: {target: deployment/web, replicas: many}",
        "6 Scenario $.steps[0].scale.replicas: expected an integer, got 'many'",
    ),
    (
        "a number below zero",
        "- assert:\n  - placed:\n      count: -1",
        "8 Scenario $.steps[0].assert[0].placed.count: expected an integer of at least 0, got -1",
    ),
    (
        "a field that is missing",
        "- patch: {target: node/n1}",
        "6 Scenario $.steps[0].patch.patch: expected a value, got none",
    ),
    (
        "a type of patch that does not exist",
        "- patch: {target: node/n1, patch: {}, type: apply}",
        "6 Scenario $.steps[0].patch.type: expected json, merge or strategic, got 'apply'",
    ),
    (
        "one object instead of a list",
        "- create: web.yaml",
        "6 Scenario $.steps[0].create: expected a list, got 'web.yaml'",
    ),
    (
        "two actions in a step",
        "- cordon: n1\n  wait: 1m",
        "6 Scenario $.steps[0]: expected one of {actions}, got cordon and wait",
    ),
    (
        "a step that does nothing",
        "- name: x",
        "6 Scenario $.steps[0]: expected one of {actions}, or when, got a step that does nothing",
    ),
    ("a time and a delay", "- {at: 1m, after: 1m}", "6 Scenario $.steps[0]: expected at or after, got both"),
    (
        "times that go back",
        "- at: 1h\n- at: 59m",
        "7 Scenario $.steps[1].at: expected a time at or after '1h', the time of an earlier step, got '59m'",
    ),
    (
        "a misspelt keyword",
        "- wait: setled",
        "6 Scenario $.steps[0].wait: expected a duration or 'settled', got 'setled'; try 'settled'",
    ),
    (
        "a duration without a unit",
        "- wait: '5'",
        "6 Scenario $.steps[0].wait: expected a duration, got '5'; try '90s', '1h30m' or '7d'",
    ),
    (
        "two checks in one",
        "- assert: [{placed: {}, waiting: {}}]",
        "6 Scenario $.steps[0].assert[0]: expected one of placed, waiting, spread, onNodes, evictions, waitingTime, "
        "utilisation, nodes, cost, got placed and waiting",
    ),
    (
        "evictions without a number",
        "- assert: [{evictions: {}}]",
        "6 Scenario $.steps[0].assert[0].evictions: expected count, atLeast or atMost, got none of them",
    ),
    (
        "a utilisation without limits",
        "- assert: [{utilisation: {resource: memory}}]",
        "6 Scenario $.steps[0].assert[0].utilisation: expected atLeast or atMost, got neither",
    ),
    (
        "a zone and nodes that fail",
        "- fail: {zone: a, nodes: n1}",
        "6 Scenario $.steps[0].fail: expected nodes, zone or rack, got none or several of them",
    ),
    (
        "a manifest that is not there",
        "- create: [wep.yaml]",
        "6 {folder}/wep.yaml: no such file or folder; try '{folder}/web.yaml'",
    ),
    (
        "an amount that is none",
        "- create:\n  - apiVersion: v1\n    kind: Pod\n    metadata: {name: p}\n"
        "    spec: {containers: [{name: c, resources: {requests: {cpu: 2 cores}}}]}",
        "10 Pod p $.spec.containers[0].resources.requests.cpu: expected a quantity, got '2 cores'; try '2'",
    ),
]


@pytest.mark.parametrize(("steps", "message"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_an_invalid_step_is_refused_with_its_line(steps: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, steps)
    with pytest.raises(InputError) as caught:
        list(run_scenarios(ScenarioOptions(paths=[str(path)])))
    assert str(caught.value) == f"{path}:{message.format(folder=tmp_path, actions=', '.join(ACTIONS))}"


HEADS = [
    (
        "a version that is not known",
        HEAD.replace("v1alpha1", "v2"),
        "1 Scenario $.apiVersion: expected 'bayplan.io/v1alpha1', got 'bayplan.io/v2'",
    ),
    ("another kind", HEAD.replace("Scenario", "Pod"), "2 Scenario $.kind: expected 'Scenario', got 'Pod'"),
    (
        "no scenario at all",
        "- a\nsteps:\n",
        "2 broken YAML: did not find expected '-' indicator while parsing a block collection",
    ),
]


@pytest.mark.parametrize(("head", "message"), [pytest.param(*case[1:], id=case[0]) for case in HEADS])
def test_an_invalid_scenario_header_is_refused(head: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, "- cordon: n1", head=head)
    with pytest.raises(InputError) as caught:
        list(run_scenarios(ScenarioOptions(paths=[str(path)])))
    assert str(caught.value) == f"{path}:{message}"


def test_an_invalid_configuration_is_reported_before_any_scenario_runs(tmp_path: Path) -> None:
    configuration = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profils: []}"
    path = write(tmp_path, f"- wait: 1m\n- configure: {configuration}")
    with pytest.raises(InputError, match="profils"):
        next(run_scenarios(ScenarioOptions(paths=[str(path)])))


def test_a_file_can_contain_several_scenarios(tmp_path: Path) -> None:
    path = write(tmp_path, "- assert: [{nodes: {count: 3}}]")
    path.write_text(
        f"{path.read_text(encoding='utf-8')}---{HEAD.replace('test', 'other')}- cordon: n1\n", encoding="utf-8"
    )
    names = [result.name for result in run_scenarios(ScenarioOptions(paths=[str(path)]))]
    assert names == ["test", "other"]
    assert [result.name for result in run_scenarios(ScenarioOptions(paths=[str(path)], only="oth"))] == ["other"]


def test_copies_of_an_inflated_trace_have_other_names_than_the_pods_of_steps(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\ngke-a,4000,8192,0,\n")
    (tmp_path / "tasks.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\np1,1000,1,0,0,0,60\n"
    )
    path = tmp_path / "scenario.yaml"
    path.write_text("""
apiVersion: bayplan.io/v1alpha1
kind: Scenario
name: test
cluster: [nodes.csv, tasks.csv]
workload: {apiVersion: bayplan.io/v1alpha1, kind: Workload, inflate: {resource: cpu, load: 0.75}}
steps:
- create:
  - {apiVersion: v1, kind: Pod, metadata: {name: p1-2, namespace: default}, spec: {containers: [{name: c}]}}
""")
    (found,) = find_scenarios([str(path)])
    inputs = found.make().inputs
    assert inputs.trace is not None
    assert [each.pod.metadata.name for each in inputs.trace.pods] == ["p1", "p1-3", "p1-4"]
