"""Scenario objects of kube-scheduler-simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.scenario_runs import ScenarioOptions, run_scenarios
from bayplan.base.errors import InputError
from bayplan.scenarios.runner import Outcome, ScenarioResult

HEAD = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: kep}
spec:
  operations:
"""
NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '2', memory: 8Gi, pods: '9'}}}"
POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: %s}, "
    "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '%s'}}}]}}"
)
TYPED = "typeMeta: {apiVersion: v1, kind: Pod}, objectMeta: {name: big, namespace: default}"


def run(folder: Path, *operations: str) -> ScenarioResult:
    path = folder / "kep.yaml"
    path.write_text(HEAD + "".join(f"  - {each}\n" for each in operations), encoding="utf-8")
    (result,) = run_scenarios(ScenarioOptions(paths=[str(path)], check=True))
    return result


def create(step: int, item: str) -> str:
    return f"{{id: '{step}', step: {step}, createOperation: {{object: {item}}}}}"


def test_operations_run_in_step_order_and_each_step_settles(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        create(3, POD % ("small", "1")),
        create(2, POD % ("big", "2")),
        create(1, NODE),
        f"{{id: d, step: 3, deleteOperation: {{{TYPED}}}}}",
        "{id: e, step: 3, doneOperation: {}}",
        create(4, POD % ("never", "1")),
    )
    names = [step.name for step in result.steps]
    assert names == ["step 1", "end of step 1", "step 2", "end of step 2", "step 3", "step 3", "end of step 3"]
    assert result.passed
    assert result.decisions == 3, "the small pod waits until the big one is deleted"


def test_a_patch_is_applied_with_its_patch_type(tmp_path: Path) -> None:
    patch = '{"metadata": {"labels": {"a": "b"}}}'
    kind = "application/merge-patch+json"
    operation = f"{{id: p, step: 2, patchOperation: {{{TYPED}, patch: '{patch}', patchType: {kind}}}}}"
    assert run(tmp_path, create(1, POD % ("big", "2")), operation).passed


def test_an_impossible_operation_fails_the_scenario(tmp_path: Path) -> None:
    result = run(tmp_path, f"{{id: d, step: 1, deleteOperation: {{{TYPED}}}}}")
    assert result.steps[0].outcome is Outcome.BROKEN
    assert result.steps[0].problem == "target: expected an existing Pod, got 'pod/default/big'"


MISTAKES = [
    ("no step", "{id: a, doneOperation: {}}", "6 Scenario $.spec.operations[0].step: expected an integer, got none"),
    (
        "two operations in one",
        "{id: a, step: 1, doneOperation: {}, deleteOperation: {}}",
        "6 Scenario $.spec.operations[0]: expected one of createOperation, patchOperation, deleteOperation, doneOperation, "
        "got deleteOperation and doneOperation",
    ),
    (
        "a kind that is not known",
        "{id: a, step: 1, deleteOperation: {typeMeta: {apiVersion: v1, kind: Pot}, objectMeta: {name: a}}}",
        "6 Scenario $.spec.operations[0].deleteOperation.typeMeta: expected a kind that the scheduler reads, got v1 Pot",
    ),
    (
        "a patch that is no text",
        f"{{id: a, step: 1, patchOperation: {{{TYPED}, patch: 5, patchType: application/merge-patch+json}}}}",
        "6 Scenario $.spec.operations[0].patchOperation.patch: expected a patch: a string in JSON or YAML, got 5",
    ),
]


@pytest.mark.parametrize(("operation", "message"), [pytest.param(*case[1:], id=case[0]) for case in MISTAKES])
def test_an_invalid_operation_is_refused_with_its_line(operation: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run(tmp_path, operation)
    assert str(caught.value) == f"{tmp_path}/kep.yaml:{message}"
