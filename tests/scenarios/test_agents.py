"""Autoscaler, descheduler and workload shapes in scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.scenario_runs import ScenarioOptions, run_scenarios
from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.scenarios.runner import Outcome
from tests.scenarios.files import HEAD, write

GROWS = HEAD.replace("steps:", """autoscaler:
  apiVersion: bayplan.io/v1alpha1
  kind: Autoscaler
  nodeGroups: [{name: extra, maxSize: 2, price: 6, template: {status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}}}}]
steps:""")  # fmt: skip
EVICTS = HEAD.replace("steps:", """descheduler:
  apiVersion: descheduler/v1alpha2
  kind: DeschedulerPolicy
  profiles:
  - pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 60}}]
    plugins: {deschedule: {enabled: [PodLifeTime]}}
deschedulingInterval: 2m
steps:""")  # fmt: skip


def outcomes(path: Path) -> list[tuple[Outcome, list[str]]]:
    (result,) = run_scenarios(ScenarioOptions(paths=[str(path)], check=True))
    return [(step.outcome, [each.result.got for each in step.failed]) for step in result.steps]


def test_scenarios_scale_node_groups_and_check_cost(tmp_path: Path) -> None:
    steps = """
    - scale: {target: deployment/web, replicas: 14}
    - assert: [{waiting: {count: 2}}]
    - when: [{placed: {count: 14}}]
      timeout: 3m
    - after: 1h
      assert: [{nodes: {nodes: extra-*, count: 1}}, {cost: {atMost: 5.9}}, {cost: {group: other, atMost: 1}}]
    """
    *passed, last = outcomes(write(tmp_path, steps, head=GROWS))
    assert {outcome for outcome, _ in passed} == {Outcome.PASSED}
    assert last == (Outcome.FAILED, ["6.00", "no autoscaler with this node group"])


def test_the_descheduler_evicts_at_its_interval(tmp_path: Path) -> None:
    steps = "- at: 119s\n  assert: [{evictions: {count: 0}}]\n- at: 2m\n  assert: [{evictions: {count: 3}}, {placed: {count: 3}}]"
    assert outcomes(write(tmp_path, steps, head=EVICTS)) == [(Outcome.PASSED, []), (Outcome.PASSED, [])]


def test_a_workload_shape_requires_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = "workload: {apiVersion: bayplan.io/v1alpha1, kind: Workload, sample: 0.5}\nsteps:"
    path = write(tmp_path, "- cordon: n1", head=HEAD.replace("steps:", shape))
    with pytest.raises(InputError) as caught:
        outcomes(path)
    assert str(caught.value) == f"{path}:5 Scenario $.workload: expected a trace in the input, got only manifests"
    (tmp_path / "w.yaml").write_text("{apiVersion: bayplan.io/v1alpha1, kind: Workload, sample: 0.5}", encoding="utf-8")
    assert main(["simulate", str(tmp_path / "nodes.yaml"), "--workload", str(tmp_path / "w.yaml")]) == 2
    assert capsys.readouterr().err == "bayplan: --workload: expected a trace in the input, got only manifests\n"
