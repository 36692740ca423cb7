"""Pods: admission, quality of service, gates, graceful deletion, and what may change when."""

from __future__ import annotations

from typing import ClassVar

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.kinds.go_diff import CHANGED_POD, pod_difference
from bayplan.apiserver.kinds.limit_ranges import admit_limits, check_pod_limits
from bayplan.apiserver.kinds.pod_admission import admit_priority, admit_runtime, admit_tolerations
from bayplan.apiserver.kinds.pod_spec_validation import check_node_name, check_pod_spec, check_tolerations
from bayplan.apiserver.kinds.pod_subresources import EPHEMERAL, RESIZE, check_ephemeral, check_resize, keep_the_rest
from bayplan.apiserver.kinds.quality_of_service import quality_of_service
from bayplan.apiserver.kinds.spec_memory import RememberedSpec
from bayplan.apiserver.kinds.strategy import Context, Strategy, copy_part, part, parts, raise_generation
from bayplan.apiserver.rest.errors import Cause, forbidden_value, invalid_value
from bayplan.apiserver.rest.object_meta import shown
from bayplan.base.plain_data import Document
from bayplan.objects.names import check_dns1123_label

_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_MUTABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")
_NARROWED = ("nodeSelector", "affinity")


class PodStrategy(Strategy):
    """The strategy of pods."""

    graceful = True
    returns_deleted = True
    counts_generations = True
    status_reset: ClassVar[Node] = {"f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}

    def admit(self, context: Context, document: Document) -> None:
        """Fill in what limit ranges say, priority, default tolerations, and what a runtime class says."""
        admit_limits(context, document)
        admit_priority(context, document)
        admit_tolerations(document)
        admit_runtime(context, document)

    def prepare_create(self, context: Context, document: Document) -> None:
        """Begin as Pending, with its quality of service, and as gated where it has gates."""
        part(document, "metadata")["generation"] = 1
        status: Document = {"phase": "Pending"}
        if parts(part(document, "spec"), "schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": context.cluster.now(),
                    "reason": "SchedulingGated",
                    "message": _GATED,
                }
            ]
        status["qosClass"] = _quality(document)
        document["status"] = status
        if not isinstance(document.get("spec"), RememberedSpec):
            _merge_label_keys(document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Keep the status, and count changes of the spec."""
        if context.subresource in (RESIZE, EPHEMERAL):
            keep_the_rest(new, old, context.subresource)
        copy_part(new, old, "status")
        if not context.subresource:
            self._admit_update(new, old)
        if new.get("spec") != old.get("spec"):
            raise_generation(new, old)

    def _admit_update(self, new: Document, old: Document) -> None:
        """Fill in again what admission filled in when the pod came: manifests that replace it don't have it."""
        spec, before = part(new, "spec"), part(old, "spec")
        for name in ("priority", "preemptionPolicy"):
            if spec.get(name) is None:
                copy_part(spec, before, name)
        admit_tolerations(new)

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Keep spec, owners and quality of service."""
        super().prepare_status(context, new, old)
        status, before = part(new, "status"), part(old, "status")
        if not status.get("qosClass") and before.get("qosClass"):
            status["qosClass"] = before["qosClass"]

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check the spec."""
        spec = part(document, "spec")
        if isinstance(spec, RememberedSpec) and spec.facts.valid and not check_node_name(spec, "spec"):
            check_pod_limits(context, document)
            return []
        causes = check_pod_spec(spec, "spec")
        if spec.get("nodeName") and parts(spec, "schedulingGates"):
            text = "cannot be set until all schedulingGates have been cleared"
            causes.append(forbidden_value("spec.nodeName", text))
        if isinstance(spec, RememberedSpec):
            spec.facts.valid = not causes
        if not causes:
            check_pod_limits(context, document)
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check that only what may change has changed."""
        spec, before = part(new, "spec"), part(old, "spec")
        if spec == before:
            return []
        if context.subresource == RESIZE:
            return check_resize(new, old)
        if context.subresource == EPHEMERAL:
            return check_ephemeral(new, old)
        causes = check_pod_spec(spec, "spec")
        causes += _check_gates(spec, before)
        causes += _check_deadline(spec, before)
        causes += _check_tolerations(spec, before)
        if causes:
            return causes
        return _check_rest(spec, before)

    def validate_status(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check that a bound pod is not nominated."""
        nominated, before = (part(each, "status").get("nominatedNodeName") for each in (new, old))
        if nominated and nominated != before and part(new, "spec").get("nodeName"):
            text = "may not be set on pods that are already bound to a node"
            return [forbidden_value("status.nominatedNodeName", text)]
        return []

    def warnings(self, context: Context, document: Document) -> list[str]:
        """Warn of names that are no host names."""
        problems = check_dns1123_label(str(part(document, "metadata").get("name") or ""))
        if not problems:
            return []
        text = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        return [f"metadata.name: {text}: [{' '.join(problems)}]"]

    def grace_seconds(self, document: Document, wanted: int | None) -> int | None:
        """Wait as long as is asked for, or as the pod says; not for one that does not run."""
        spec = part(document, "spec")
        grace = wanted
        if grace is None:
            found = spec.get("terminationGracePeriodSeconds")
            grace = found if isinstance(found, int) else 0
        if not spec.get("nodeName") or part(document, "status").get("phase") in ("Failed", "Succeeded"):
            grace = 0
        return 1 if grace < 0 else grace


def _quality(pod: Document) -> str:
    spec = pod.get("spec")
    if not isinstance(spec, RememberedSpec):
        return quality_of_service(pod)
    if not spec.facts.quality:
        spec.facts.quality = quality_of_service(pod)
    return spec.facts.quality


def _merge_label_keys(pod: Document) -> None:
    """Turn matchLabelKeys and mismatchLabelKeys into requirements on this pod's labels."""
    labels, spec = part(pod, "metadata", "labels"), part(pod, "spec")
    for name in ("podAffinity", "podAntiAffinity"):
        affinity = part(spec, "affinity", name)
        terms = parts(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = parts(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        for term in (*terms, *(part(each, "podAffinityTerm") for each in preferred)):
            _add_requirements(term, labels, (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")))
    for constraint in parts(spec, "topologySpreadConstraints"):
        _add_requirements(constraint, labels, (("matchLabelKeys", "In"),))


def _add_requirements(term: Document, labels: Document, kinds: tuple[tuple[str, str], ...]) -> None:
    selector = term.get("labelSelector")
    if not isinstance(selector, dict):
        return
    for name, operator in kinds:
        keys = term.get(name)
        for key in keys if isinstance(keys, list) else ():
            if key in labels:
                expression = {"key": key, "operator": operator, "values": [labels[key]]}
                selector["matchExpressions"] = [*parts(selector, "matchExpressions"), expression]


def _check_gates(spec: Document, before: Document) -> list[Cause]:
    known = [each.get("name") for each in parts(before, "schedulingGates")]
    return [
        forbidden_value(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(parts(spec, "schedulingGates"))
        if gate.get("name") not in known
    ]


def _check_deadline(spec: Document, before: Document) -> list[Cause]:
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if isinstance(old, int):
        if not isinstance(new, int):
            return [invalid_value(field, "null", "must not update from a positive integer to nil value")]
        if new > old:
            return [invalid_value(field, str(new), "must be less than or equal to previous value")]
    return []


def _check_tolerations(spec: Document, before: Document) -> list[Cause]:
    new, old = parts(spec, "tolerations"), parts(before, "tolerations")
    bare = [_without_seconds(each) for each in new]
    if any(_without_seconds(each) not in bare for each in old):
        return [
            forbidden_value("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
        ]
    return check_tolerations(new, "spec.tolerations")


def _without_seconds(toleration: Document) -> Document:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _check_rest(spec: Document, before: Document) -> list[Cause]:
    """Check everything that no rule of its own lets change."""
    allowed = _with_allowed_changes(spec, before)
    gated = bool(parts(before, "schedulingGates"))
    if gated:
        selector, selector_before = part(spec, "nodeSelector"), part(before, "nodeSelector")
        if any(selector.get(key) != value for key, value in selector_before.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            return [invalid_value("spec.nodeSelector", shown(selector), text)]
        for name in _NARROWED:
            copy_part(allowed, before, name)
    if allowed == before:
        return []
    return [forbidden_value("spec", CHANGED_POD + pod_difference(before, allowed))]


def _with_allowed_changes(spec: Document, before: Document) -> Document:
    """Return the new spec with everything undone that may change."""
    allowed = dict(spec)
    for name in (*_MUTABLE, "schedulingGates"):
        copy_part(allowed, before, name)
    for name in ("containers", "initContainers"):
        old = parts(before, name)
        new = parts(spec, name)
        if len(old) == len(new) and new:
            allowed[name] = [{**each, "image": was.get("image")} for each, was in zip(new, old, strict=True)]
    return allowed
