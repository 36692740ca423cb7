"""The strategy of pods: admission, QoS class, scheduling gates, graceful deletion, and allowed changes."""

from __future__ import annotations

from typing import ClassVar

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.kinds.address_warnings import address_warnings
from bayplan.apiserver.kinds.app_armor import set_app_armor_profiles
from bayplan.apiserver.kinds.limit_ranges import admit_limits, check_pod_limits
from bayplan.apiserver.kinds.object_warnings import host_name_warnings, pod_warnings
from bayplan.apiserver.kinds.pod_admission import (
    admit_priority,
    admit_runtime,
    admit_tolerations,
    admit_topology,
    check_overhead,
)
from bayplan.apiserver.kinds.pod_subresources import (
    EPHEMERAL,
    RESIZE,
    check_ephemeral,
    check_resize,
    restore_immutable_fields,
)
from bayplan.apiserver.kinds.pod_warnings import app_armor_warnings
from bayplan.apiserver.kinds.service_account_admission import admit_service_account, check_ephemeral_secrets
from bayplan.apiserver.kinds.spec_cache import CachedSpec
from bayplan.apiserver.kinds.strategy import Context, Strategy, copy_part, raise_generation
from bayplan.apiserver.model.errors import Cause, forbidden
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.validation.pod_resources import quality_of_service
from bayplan.apiserver.validation.pod_specs import check_node_name
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

_OBSERVED = "observedGeneration"
_ALLOCATABLE = "nodeAllocatableResourceClaimStatuses"
_GATED = "Scheduling is blocked due to non-empty scheduling gates"


def unify_pod_ips(pod: Document) -> None:
    """Make `podIP` and the first of `podIPs` agree, as upstream's conversion does; if they differ, `podIP` wins."""
    status = pod.get("status")
    if not isinstance(status, dict):
        return
    first, every = status.get("podIP"), parts(status, "podIPs")
    if first and (not every or every[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif every and (address := every[0].get("ip")):
        status["podIP"] = address


class PodStrategy(Strategy):
    """The strategy of pods."""

    graceful = True
    returns_deleted = True
    counts_generations = True
    status_reset: ClassVar[Node] = {"f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}

    def admit(self, context: Context, document: Document) -> None:
        """Apply limit ranges, service account, priority, default tolerations, runtime class and topology labels."""
        admit_limits(context, document)
        if context.cluster.admits_service_accounts and not context.imported:
            admit_service_account(context, document)
        admit_priority(context, document)
        admit_tolerations(document)
        admit_runtime(context, document)
        admit_topology(context, document)

    def reset_fields(self, resource: Resource, subresource: str) -> Node:
        """Return the fields that an endpoint ignores; clients own even ignored fields that they send to other endpoints."""
        return {} if subresource in (RESIZE, EPHEMERAL) else super().reset_fields(resource, subresource)

    def admit_valid(self, context: Context, new: Document, old: Document | None) -> None:
        """Check the overhead of a new pod, and the secrets of ephemeral containers."""
        if old is None and not context.imported:
            check_overhead(context, new)
        if context.subresource == EPHEMERAL and context.cluster.admits_service_accounts:
            check_ephemeral_secrets(context, new)

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set generation, phase, QoS class, AppArmor profiles, and the condition of a pod with scheduling gates.

        Also replace a negative grace period by 1, and merge label keys into selectors.
        """
        part(document, "metadata")["generation"] = 1
        spec = part(document, "spec")
        seconds = spec.get("terminationGracePeriodSeconds")
        if isinstance(seconds, int) and seconds < 0:
            spec["terminationGracePeriodSeconds"] = 1
        set_app_armor_profiles(document)
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
        if not isinstance(document.get("spec"), CachedSpec):
            _merge_label_keys(document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the fields that the endpoint must not change, and increment the generation if the spec changed."""
        if context.subresource in (RESIZE, EPHEMERAL):
            restore_immutable_fields(new, old, context.subresource)
        copy_part(new, old, "status")
        seconds = part(new, "spec").get("terminationGracePeriodSeconds")
        if isinstance(seconds, int) and seconds < 0 and new.get("spec") != old.get("spec"):
            part(new, "spec")["terminationGracePeriodSeconds"] = 1
        if not context.subresource:
            self._admit_update(new, old)
        if new.get("spec") != old.get("spec"):
            raise_generation(new, old)

    def _admit_update(self, new: Document, old: Document) -> None:
        """Set the fields that admission set on creation, because the manifest of a replace does not contain them."""
        spec, before = part(new, "spec"), part(old, "spec")
        for name in ("priority", "preemptionPolicy"):
            if spec.get(name) is None:
                copy_part(spec, before, name)
        admit_tolerations(new)

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Restore spec, owner references and, if it is missing, the QoS class."""
        super().prepare_status(context, new, old)
        status, before = part(new, "status"), part(old, "status")
        if not status.get("qosClass") and before.get("qosClass"):
            status["qosClass"] = before["qosClass"]
        _keep_generations(status, before)
        if not parts(before, _ALLOCATABLE):  # The gate DRANodeAllocatableResources is off.
            status.pop(_ALLOCATABLE, None)

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Return the errors of a new pod. A cached spec that is known to be valid is not checked again.

        Raises:
            ApiError: the pod is valid, but violates a limit range.
        """
        spec = part(document, "spec")
        metadata = part(document, "metadata")
        if isinstance(spec, CachedSpec) and not metadata.get("annotations") and not _depends_on_name(spec):
            if spec.facts.valid and not check_node_name(spec, "spec"):
                check_pod_limits(context, document)
                return []
            causes = super().validate(context, document)
            spec.facts.valid = not causes
        else:
            causes = super().validate(context, document)
        if not causes:
            check_pod_limits(context, document)
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of an update: only some fields are mutable.

        Raises:
            ApiError: the node of a resized pod does not exist.
        """
        if context.subresource == EPHEMERAL:
            return check_ephemeral(new, old) if new.get("spec") != old.get("spec") else []
        if context.subresource == RESIZE:
            causes = check_resize(new, old)
            node = part(new, "spec").get("nodeName") if new.get("spec") != old.get("spec") else None
            if not causes and node and context.cluster.find("nodes", "", str(node)) is None:
                # The plugin NodeDeclaredFeatureValidator looks up the features of the node.
                raise forbidden(
                    "pods", "", str(part(new, "metadata").get("name")), f"node {quote(str(node))} not found"
                )
            return causes
        return super().validate_update(context, new, old)

    def warnings(self, context: Context, document: Document, before: Document | None) -> list[str]:
        """Return the warnings about a new pod. Updates get no warnings, as upstream, because they are frequent."""
        if before is not None:
            return []
        spec = document.get("spec")
        if not isinstance(spec, CachedSpec) or part(document, "metadata", "annotations"):
            return pod_warnings(document)
        if spec.facts.warnings is None:
            spec.facts.warnings = tuple(pod_warnings({"metadata": {"name": "a"}, "spec": spec}))
        return [*host_name_warnings(document), *spec.facts.warnings]

    def preparation_warnings(self, document: Document) -> list[str]:
        """Return the warnings about annotations that set the AppArmor profiles of containers."""
        annotations = part(document, "metadata", "annotations")
        return list(app_armor_warnings(part(document, "spec"), annotations)) if annotations else []

    def status_warnings(self, document: Document) -> list[str]:
        """Return the warnings about IP addresses that are not in standard notation."""
        status = part(document, "status")
        found: list[str] = []
        for name in ("podIPs", "hostIPs"):
            for index, each in enumerate(parts(status, name)):
                found += address_warnings(each.get("ip"), f"status.{name}[{index}].ip")
        return found

    def grace_seconds(self, document: Document, wanted: int | None) -> int | None:
        """Return the requested grace period, else the pod's; 0 for a pod that is not on a node or has ended.

        A negative grace period becomes 1.
        """
        spec = part(document, "spec")
        grace = wanted
        if grace is None:
            found = spec.get("terminationGracePeriodSeconds")
            grace = found if isinstance(found, int) else 0
        if not spec.get("nodeName") or part(document, "status").get("phase") in ("Failed", "Succeeded"):
            grace = 0
        return 1 if grace < 0 else grace


def _keep_generations(status: Document, before: Document) -> None:
    """Restore the observed generations that a new status lacks, also those of its conditions.

    Clients that don't know the field send none. Several conditions can be of one type; they are matched in order.
    """
    if not status.get(_OBSERVED) and before.get(_OBSERVED):
        status[_OBSERVED] = before[_OBSERVED]
    known: dict[object, list[object]] = {}
    for each in parts(before, "conditions"):
        known.setdefault(each.get("type"), []).append(each.get(_OBSERVED))
    if not any(generation for generations in known.values() for generation in generations):
        return
    conditions: list[Document] = []
    for each in parts(status, "conditions"):
        generations = known.get(each.get("type"))
        generation = generations.pop(0) if generations else None
        conditions.append({**each, _OBSERVED: generation} if generation and not each.get(_OBSERVED) else each)
    if conditions:
        status["conditions"] = conditions


def _depends_on_name(spec: Document) -> bool:
    """Return whether validation of a spec depends on the pod's name, which is part of the names of generated claims."""
    return any("ephemeral" in volume for volume in parts(spec, "volumes"))


def _quality(pod: Document) -> str:
    spec = pod.get("spec")
    if not isinstance(spec, CachedSpec):
        return quality_of_service(pod)
    if not spec.facts.quality:
        spec.facts.quality = quality_of_service(pod)
    return spec.facts.quality


def _merge_label_keys(pod: Document) -> None:
    """Convert matchLabelKeys and mismatchLabelKeys to selector requirements with the values of the pod's labels."""
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
