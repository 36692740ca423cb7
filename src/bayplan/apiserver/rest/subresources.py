"""Subresources of pods with special behavior: binding and eviction."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.apiserver.fields import managed
from bayplan.apiserver.kinds.pod_admission import TOPOLOGY_LABELS
from bayplan.apiserver.model.errors import (
    ApiError,
    bad_request,
    conflict,
    internal,
    invalid,
    invalid_value,
    modified,
    not_found,
)
from bayplan.apiserver.model.requests import DeleteOptions, RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import deleting, writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import Target
from bayplan.apiserver.rest.decoding import decode_request
from bayplan.apiserver.rest.hooks import admit_unstored
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.options import check_delete_options, read_delete_options, write_options
from bayplan.apiserver.rest.paths import check_name
from bayplan.apiserver.rest.preconditions import storage_error
from bayplan.apiserver.rest.updates import check_namespace
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import compile_selector_document, quote

_CORE = "io.k8s.api.core.v1."
_BINDING = Target("v1", "Binding", _CORE + "Binding")
_EVICTION = Target("policy/v1", "Eviction", "io.k8s.api.policy.v1.Eviction", older="policy/v1beta1")
_SCALE = Target("autoscaling/v1", "Scale", "io.k8s.api.autoscaling.v1.Scale")
_BUDGETS = "policy/poddisruptionbudgets"
_MAX_DISRUPTED_PODS = 2000
SUCCESS: Document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def pods_resource(backend: Backend) -> Resource:
    """Return the resource `pods` of v1."""
    found = backend.registry.find("", "v1", "pods")
    assert found is not None
    return found


# --- binding ----------------------------------------------------------------------------------------------------------


def bind(backend: Backend, info: RequestInfo, request: Request) -> Document:
    """Bind a pod to a node, through the subresource `binding` or the older resource `bindings`, and return a Status.

    Raises:
        ApiError: the pod does not exist, is already bound, is being deleted, or has scheduling gates.
    """
    options = write_options(request, "CreateOptions")
    binding = decode_request(_BINDING, request, options.validation).document
    metadata = part(binding, "metadata")
    writing.check_namespace(backend, info, info.name or str(metadata.get("name") or ""))
    check_namespace(info, metadata)
    if not info.subresource:
        metadata.pop("uid", None)  # A create ignores the uid in its body, except in a subresource.
    elif metadata.get("name") != info.name:
        raise bad_request("name in URL does not match name in Binding object")
    target = part(binding, "target")
    problems = []
    if target.get("kind") not in (None, "", "Node"):
        kind = quote(str(target["kind"]))
        problems.append(f'target.kind: Unsupported value: {kind}: supported values: "Node", "<empty>"')
    if not target.get("name"):
        problems.append("target.name: Required value")
    if problems:
        raise internal(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    binding = admit_unstored(backend, info, request, options, _BINDING, (binding, None))
    info = replace(info, resource=pods_resource(backend), name=str(metadata.get("name") or info.name))
    _assign(backend, info, binding, options)
    return {**SUCCESS, "code": 201}


def _assign(backend: Backend, info: RequestInfo, binding: Document, options: WriteOptions) -> None:
    resource, metadata = info.resource, part(binding, "metadata")
    check_name(info.name)
    item = backend.store.get(resource.table, (info.namespace, info.name))
    if item is None:
        raise not_found("pods", "", info.name)
    old = backend.document(resource, item)
    pod = {**old, "metadata": dict(part(old, "metadata")), "spec": dict(part(old, "spec"))}
    wanted, found = str(metadata.get("uid") or ""), item.uid
    if wanted and wanted != found:
        raise conflict("pods", "", info.name, storage_error(resource, info, wanted, found))
    if metadata.get("resourceVersion") not in (None, "", part(old, "metadata")["resourceVersion"]):
        raise modified("pods", "", info.name)
    _check_assignable(info, pod)
    node = str(part(binding, "target")["name"])
    part(pod, "spec")["nodeName"] = node
    # The admission plugin PodTopologyLabels ignores the older resource.
    names = TOPOLOGY_LABELS if info.subresource and part(binding, "target").get("kind") == "Node" else ()
    _merge_metadata(backend, pod, metadata, node, names)
    status = pod["status"] = dict(part(old, "status"))
    status.pop("nominatedNodeName", None)
    set_condition(backend, status, {"type": "PodScheduled", "status": "True"})
    if not options.dry_run:
        backend.put(resource, pod)


def _check_assignable(info: RequestInfo, pod: Document) -> None:
    spec = part(pod, "spec")
    why = ""
    if part(pod, "metadata").get("deletionTimestamp"):
        why = f"pod {info.name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {info.name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {info.name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict("pods/binding", "", info.name, why)


def _merge_metadata(backend: Backend, pod: Document, binding: Document, node: str, names: tuple[str, ...]) -> None:
    """Add to a pod the labels and annotations of a binding, and the labels of the node whose keys are in `names`."""
    found = backend.find("nodes", "", node)
    node_labels = part(found, "metadata", "labels") if found else {}
    topology = {name: node_labels[name] for name in names if name in node_labels}
    metadata = part(pod, "metadata")
    for name, extra in (
        ("labels", {**part(binding, "labels"), **topology}),
        ("annotations", part(binding, "annotations")),
    ):
        merged = {**part(metadata, name), **extra}
        if merged:
            metadata[name] = merged


def set_condition(backend: Backend, status: Document, condition: Document) -> None:
    """Add a condition to a pod's status, or replace the condition of the same type.

    The transition time changes only with the status.
    """
    conditions = list(parts(status, "conditions"))
    at = next((i for i, each in enumerate(conditions) if each.get("type") == condition["type"]), None)
    before = conditions[at] if at is not None else {}
    time = before.get("lastTransitionTime") if before.get("status") == condition["status"] else backend.now()
    new: Document = {"type": condition["type"], "status": condition["status"], "lastProbeTime": None}
    new["lastTransitionTime"] = time
    new.update(condition)
    if at is None:
        conditions.append(new)
    else:
        conditions[at] = new
    status["conditions"] = conditions


# --- eviction ---------------------------------------------------------------------------------------------------------


_FORCED = "ignoreStoreReadErrorWithClusterBreakingPotential"


def evict(backend: Backend, info: RequestInfo, request: Request) -> Document:
    """Delete a pod unless a disruption budget forbids it, and return a Status.

    Raises:
        ApiError: the pod does not exist, or a budget allows no disruption.
    """
    options = write_options(request, "CreateOptions")
    eviction = decode_request(_EVICTION, request, options.validation).document
    check_namespace(info, part(eviction, "metadata"))
    writing.check_namespace(backend, info, info.name)
    if part(eviction, "metadata").get("name") != info.name:
        raise bad_request("name in URL does not match name in Eviction object")
    if part(eviction, "deleteOptions").get(_FORCED):
        text = "can not be set for pod eviction, try after removing the option"
        raise invalid("Eviction", "policy", info.name, [invalid_value(f"deleteOptions.{_FORCED}", "true", text)])
    wanted = texts(part(eviction, "deleteOptions"), "dryRun")
    if wanted and options.dry_run and wanted != ["All"]:
        text = f"Non-matching dry-run options in request and content: [All] and [{' '.join(wanted)}]"
        raise ApiError(500, text, reason="")
    deletion = read_delete_options(part(eviction, "deleteOptions"))
    deletion.dry_run = deletion.dry_run or options.dry_run
    admit_unstored(backend, replace(info, name=info.name), request, options, _EVICTION, (eviction, None))
    resource = pods_resource(backend)
    item = backend.store.get(resource.table, (info.namespace, info.name))
    if item is None:
        raise not_found("pods", "", info.name)
    pod = backend.document(resource, item)
    passed = "" if _ignores_budgets(pod) else _use_budget(backend, info, pod, dry_run=deletion.dry_run)
    may_retry = bool(passed) and deletion.resource_version is None
    if passed:
        deletion.resource_version = None  # Upstream replaces it with the version that was found unhealthy.
    # Upstream checks the options only when it deletes the pod.
    check_delete_options(part(eviction, "deleteOptions"))
    try:
        _disrupt(backend, replace(info, resource=resource, subresource=""), pod, deletion)
    except ApiError as problem:
        if may_retry and problem.code == 409:
            raise _in_progress(passed) from problem
        raise
    return {**SUCCESS, "code": 201}


def _ignores_budgets(pod: Document) -> bool:
    terminating = part(pod, "metadata").get("deletionTimestamp")
    return bool(terminating) or part(pod, "status").get("phase") in ("Succeeded", "Failed", "Pending")


def _use_budget(backend: Backend, info: RequestInfo, pod: Document, *, dry_run: bool) -> str:
    """Subtract one from the disruptions that the budget of a pod allows, if it has a budget.

    Returns:
        The name of the budget if it lets the pod pass without a disruption, because the pod is unhealthy; otherwise "".

    Raises:
        ApiError: the budget allows no disruption, or the pod has several budgets.
    """
    labels = {key: str(value) for key, value in part(pod, "metadata", "labels").items()}
    budgets = [
        budget
        for budget in (
            backend.document(_budgets(backend), item) for item in backend.store.between(_BUDGETS, info.namespace)
        )
        if part(budget, "spec").get("selector") is not None
        and compile_selector_document(part(budget, "spec", "selector")).matches(labels)
    ]
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise internal(text)
    if not budgets:
        return ""
    budget = budgets[0]
    if not _is_ready(pod) and _may_evict_unhealthy(budget):
        return str(part(budget, "metadata")["name"])
    _decrement(backend, info, budget, dry_run=dry_run)
    return ""


def _in_progress(budget: str) -> ApiError:
    return _too_many(f"The disruption budget {budget} is still being processed by the server.", retry=10)


def _budgets(backend: Backend) -> Resource:
    found = backend.registry.find("policy", "v1", "poddisruptionbudgets")
    assert found is not None
    return found


def _is_ready(pod: Document) -> bool:
    conditions = parts(part(pod, "status"), "conditions")
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _integer(document: Document, name: str) -> int:
    found = document.get(name)
    return found if isinstance(found, int) else 0


def _may_evict_unhealthy(budget: Document) -> bool:
    if part(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = part(budget, "status")
    desired = _integer(status, "desiredHealthy")
    return _integer(status, "currentHealthy") >= desired > 0


def _decrement(backend: Backend, info: RequestInfo, budget: Document, *, dry_run: bool) -> None:
    """Subtract one from the disruptions that a budget allows, and list the pod as disrupted.

    Raises:
        ApiError: the budget allows no disruption, or its status is outdated.
    """
    metadata, status = part(budget, "metadata"), dict(part(budget, "status"))
    name = str(metadata["name"])
    if _integer(status, "observedGeneration") < _integer(metadata, "generation"):
        raise _in_progress(name)
    disrupted = dict(part(status, "disruptedPods"))
    forbidden = "poddisruptionbudget.policy"
    if _integer(status, "disruptionsAllowed") < 0:
        raise ApiError(403, f'{forbidden} "{name}" is forbidden: pdb disruptions allowed is negative', details={})
    if len(disrupted) > _MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise ApiError(403, f'{forbidden} "{name}" is forbidden: {why}', details={})
    allowed = _integer(status, "disruptionsAllowed")
    if allowed == 0:
        raise _too_many(_no_disruption(name, status))
    if dry_run:
        return
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        _disallow(backend, metadata, status)
    disrupted[info.name] = backend.now()
    status["disruptedPods"] = disrupted
    resource = _budgets(backend)
    target = RequestInfo("update", resource, info.namespace, name, "status")
    options = WriteOptions(manager="kube-apiserver")
    new = {**budget, "status": status}
    managers = managed.after_update(
        writing.ownership(backend, target, options),
        budget,
        new,
        managed.decode(metadata.get("managedFields")),
    )
    writing.change(backend, target, budget, {**new, "metadata": dict(metadata)}, managers, options)


def _disallow(backend: Backend, metadata: Document, status: Document) -> None:
    condition: Document = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": _integer(status, "observedGeneration"),
        "lastTransitionTime": backend.now(),
        "reason": "InsufficientPods",
        "message": "",
    }
    rest = [each for each in parts(status, "conditions") if each.get("type") != "DisruptionAllowed"]
    status["conditions"] = [*rest, condition]


def _no_disruption(name: str, status: Document) -> str:
    condition = next((each for each in parts(status, "conditions") if each.get("type") == "DisruptionAllowed"), {})
    denied = condition.get("status") == "False" and condition.get("message")
    if denied and condition.get("reason") == "SyncFailed":
        why = "because it failed sync"
        return f"The disruption budget {name} does not allow evicting pods currently {why}: {condition['message']}"
    desired, current = _integer(status, "desiredHealthy"), _integer(status, "currentHealthy")
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if denied:
        why = f"({condition.get('reason')}): {condition['message']}"
        return f"The disruption budget {name} does not allow evicting pods currently {why}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _too_many(cause: str, retry: int = 0) -> ApiError:
    details: Document = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry:
        details["retryAfterSeconds"] = retry
    headers = {"retry-after": str(retry)} if retry else {}
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, text, details=details, headers=headers)


def _disrupt(backend: Backend, info: RequestInfo, pod: Document, options: DeleteOptions) -> None:
    """Set the condition DisruptionTarget of a pod, and delete the pod.

    Raises:
        ApiError: a precondition of the deletion is not met.
    """
    if not options.dry_run:
        # Empty preconditions count only when the pod is deleted.
        wanted = DeleteOptions(uid=options.uid or None, resource_version=options.resource_version or None)
        deleting.check_preconditions(info.resource, info, pod, wanted)
        options.resource_version = None  # The condition changes it.
        status = dict(part(pod, "status"))
        text = "Eviction API: evicting"
        condition: Document = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        condition["message"] = text
        set_condition(backend, status, condition)
        if status != part(pod, "status"):
            backend.put(info.resource, {**pod, "metadata": dict(part(pod, "metadata")), "status": status})
    deleting.delete(backend, info, options, admitted=True)
