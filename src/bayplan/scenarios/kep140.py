"""Read the Scenario objects of kube-scheduler-simulator (KEP-140).

Operations run in the order of their steps, and within a step in the order of the file. After each step, time passes
until nothing changes any more, which is the KEP's definition of the end of a step. A doneOperation ends the scenario
after its step. The objects have no assertions: the scenario fails if an operation cannot be executed.
`spec.controllers`, which selects controllers in kube-scheduler-simulator, is ignored: all controllers run.

Source: https://github.com/kubernetes-sigs/kube-scheduler-simulator/tree/master/keps/140-scenario-based-simulation
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bayplan.base.errors import InputError
from bayplan.formats import yaml_text
from bayplan.formats.documents import Document
from bayplan.formats.inputs import Inputs, load_documents
from bayplan.formats.manifest import Manifest
from bayplan.objects.kinds import find_kind
from bayplan.scenarios.reading import ScenarioPlan, StepPlan
from bayplan.scenarios.scenario import SETTLED, Patch, Scenario, Step

GROUP = "simulation.kube-scheduler-simulator.x-k8s.io"

_OPERATIONS = ("createOperation", "patchOperation", "deleteOperation", "doneOperation")
_PATCH_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
_SETTLE_TIMEOUT_NS = 24 * 3600 * 10**9


def is_kep140(value: object) -> bool:
    """Return whether a document is a Scenario of kube-scheduler-simulator."""
    return isinstance(value, dict) and str(value.get("apiVersion")).partition("/")[0] == GROUP


def read_kep140(document: Document, folder: Path) -> ScenarioPlan:
    """Validate a document and convert it to a scenario.

    Raises:
        InputError: the document is invalid; the message has file and line.
    """
    value = cast("Mapping[str, Any]", document.value)
    if value.get("kind") != "Scenario":
        raise _refusal(document, "$.kind", "'Scenario'", repr(value.get("kind")))
    spec = value.get("spec") or {}
    operations = spec.get("operations") if isinstance(spec, dict) else None
    if not isinstance(operations, list):
        raise _refusal(document, "$.spec.operations", "a list of operations", "none")
    steps: list[StepPlan] = []
    for major, paths in _by_step(document, operations).items():
        last = False
        for index in paths:
            operation = operations[index]
            if "doneOperation" in operation:
                last = True
            else:
                steps.append(_plan(document, operation, f"$.spec.operations[{index}]", major, len(steps) + 1))
        where = document.where(f"$.spec.operations[{paths[-1]}].step")
        settle = Step(name=f"end of step {major}", wait=SETTLED)
        steps.append(StepPlan(step=settle, number=len(steps) + 1, where=where, timeout_ns=_SETTLE_TIMEOUT_NS))
        if last:
            break
    metadata = value.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
    return ScenarioPlan(
        name=name or Path(document.source.file).name,
        file=document.source.file,
        scenario=Scenario(api_version="bayplan.io/v1alpha1", kind="Scenario", name=name),
        inputs=Inputs(manifest=Manifest(), trace=None),
        steps=steps,
        folder=folder,
    )


def _by_step(document: Document, operations: Sequence[object]) -> dict[int, list[int]]:
    """Return the indexes of operations by step, in the order of steps."""
    found: dict[int, list[int]] = {}
    for index, operation in enumerate(operations):
        path = f"$.spec.operations[{index}]"
        if not isinstance(operation, dict):
            raise _refusal(document, path, "an operation", repr(operation))
        major = operation.get("step")
        if not isinstance(major, int) or isinstance(major, bool):
            raise _refusal(document, f"{path}.step", "an integer", repr(major) if major is not None else "none")
        given = [name for name in _OPERATIONS if name in operation]
        if len(given) != 1:
            raise _refusal(document, path, f"one of {', '.join(_OPERATIONS)}", " and ".join(given) or "none")
        found.setdefault(major, []).append(index)
    return dict(sorted(found.items()))


def _plan(document: Document, operation: Mapping[str, Any], path: str, major: int, number: int) -> StepPlan:
    where = document.where(path)
    name = f"step {major}"
    if "createOperation" in operation:
        path = f"{path}.createOperation.object"
        item = (operation["createOperation"] or {}).get("object")
        if not isinstance(item, dict):
            raise _refusal(document, path, "an object", repr(item))
        loaded = load_documents([document.part(path, item)])
        return StepPlan(
            step=Step(name=name, create=(item,)), number=number, where=where, objects=list(loaded.objects())
        )
    if "deleteOperation" in operation:
        target = _target(document, operation["deleteOperation"], f"{path}.deleteOperation")
        return StepPlan(step=Step(name=name, delete=(target,)), number=number, where=where)
    patch = operation["patchOperation"]
    path = f"{path}.patchOperation"
    target = _target(document, patch, path)
    kind = _PATCH_TYPES.get(str(patch.get("patchType") or patch.get("PatchType")))
    if kind is None:
        raise _refusal(document, f"{path}.patchType", f"one of {', '.join(_PATCH_TYPES)}", repr(patch.get("patchType")))
    body = _patch_body(document, patch.get("patch"), f"{path}.patch")
    made = Patch(target=target, patch=body, type=cast("Any", kind))
    return StepPlan(step=Step(name=name, patch=made), number=number, where=where)


def _patch_body(document: Document, text: object, path: str) -> dict[str, Any] | list[Any]:
    try:
        found = [parsed.value for parsed in yaml_text.parse(text)] if isinstance(text, str) else []
    except yaml_text.YamlError:
        found = []
    if len(found) != 1 or not isinstance(found[0], dict | list):
        raise _refusal(document, path, "a patch: a string in JSON or YAML", repr(text))
    return found[0]


def _target(document: Document, operation: object, path: str) -> str:
    """Return the target of an operation in the notation of steps: ``kind/namespace/name``."""
    if not isinstance(operation, dict):
        raise _refusal(document, path, "typeMeta and objectMeta", repr(operation))
    kinds, metadata = operation.get("typeMeta"), operation.get("objectMeta")
    if not isinstance(kinds, dict) or not isinstance(metadata, dict) or not metadata.get("name"):
        raise _refusal(document, path, "typeMeta, and objectMeta with a name", "none")
    row = find_kind(str(kinds.get("apiVersion")), str(kinds.get("kind")))
    if row is None:
        got = f"{kinds.get('apiVersion')} {kinds.get('kind')}"
        raise _refusal(document, f"{path}.typeMeta", "a kind that the scheduler reads", got)
    namespace = f"{metadata.get('namespace') or 'default'}/" if row.namespaced else ""
    return f"{row.kind.lower()}/{namespace}{metadata['name']}"


def _refusal(document: Document, path: str, wanted: str, got: str) -> InputError:
    return InputError(f"Scenario {path}", where=document.where(path), wanted=wanted, got=got)
