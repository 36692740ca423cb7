"""Strategies of the core group's kinds, and of endpoint slices and leases."""

from __future__ import annotations

from bayplan.apiserver.kinds.limit_ranges import check_claim_limits
from bayplan.apiserver.kinds.service_allocation import allocate, drop_unused
from bayplan.apiserver.kinds.strategy import Context, Strategy, add_finalizer, copy_part
from bayplan.apiserver.model.errors import Cause, forbidden
from bayplan.apiserver.model.object_meta import check_finalizer
from bayplan.apiserver.validation.events import check_event, check_event_update
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.quantity import Quantity

_NOT_READY = "node.kubernetes.io/not-ready"


class NodeStrategy(Strategy):
    """Nodes: admission adds the taint not-ready to a new node. A create may set the status."""

    keeps_status_on_create = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Drop `configSource`, which kubelets no longer read, and make `podCIDR` and `podCIDRs` agree."""
        super().prepare_create(context, document)
        part(document, "spec").pop("configSource", None)
        part(document, "status").pop("config", None)
        _unify_pod_cidrs(document)

    def admit(self, context: Context, document: Document) -> None:
        """Add the taint not-ready to a new node (the plugin TaintNodesByCondition)."""
        spec = document.setdefault("spec", {})
        assert isinstance(spec, dict)
        taints = parts(spec, "taints")
        if not any(each.get("key") == _NOT_READY and each.get("effect") == "NoSchedule" for each in taints):
            spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]

    def admit_imported(self, context: Context, document: Document) -> None:
        """Add the taint only if the status has no condition Ready.

        Otherwise the source cluster has already set the taints.
        """
        if all(each.get("type") != "Ready" for each in parts(part(document, "status"), "conditions")):
            self.admit(context, document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the status, and make `podCIDR` and `podCIDRs` agree."""
        super().prepare_update(context, new, old)
        _unify_pod_cidrs(new)

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Restore everything except the status.

        Drop the reported kubelet configuration unless the node already has one.
        """
        super().prepare_status(context, new, old)
        if "config" not in part(old, "status"):
            part(new, "status").pop("config", None)


def _unify_pod_cidrs(node: Document) -> None:
    """Make `podCIDR` and the first of `podCIDRs` agree; if they differ, `podCIDR` wins."""
    spec = part(node, "spec")
    first, every = spec.get("podCIDR"), texts(spec, "podCIDRs")
    if first and (not every or every[0] != first):
        spec["podCIDRs"] = [first]
    elif every:
        spec["podCIDR"] = every[0]


class LimitRangeStrategy(Strategy):
    """Limit ranges: a new limit range without a name gets a uid as its name."""

    create_on_update = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set the name if it is missing."""
        super().prepare_create(context, document)
        metadata = part(document, "metadata")
        metadata["name"] = metadata.get("name") or context.cluster.new_uid()


class NamespaceStrategy(Strategy):
    """Namespaces: a new namespace is active and has a finalizer; a deleted namespace is terminating until it has none."""

    name_check = "label"
    returns_deleted = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set the phase Active, the label with the name, and the finalizer `kubernetes`."""
        metadata = part(document, "metadata")
        labels = dict(part(metadata, "labels"))
        labels["kubernetes.io/metadata.name"] = metadata.get("name")
        metadata["labels"] = labels
        finalizers = texts(part(document, "spec"), "finalizers")
        if "kubernetes" not in finalizers:
            finalizers = [*finalizers, "kubernetes"]
        document["spec"] = {"finalizers": finalizers}
        document["status"] = {"phase": "Active"}

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the status, and the finalizers in the spec unless the request uses the subresource `finalize`."""
        copy_part(new, old, "status")
        if context.subresource != "finalize":
            copy_part(new, old, "spec")

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of an update; with the subresource `finalize`, only errors of the finalizers."""
        if context.subresource != "finalize":
            return super().validate_update(context, new, old)
        causes: list[Cause] = []
        for index, name in enumerate(texts(part(new, "spec"), "finalizers")):
            check_finalizer(name, f"spec.finalizers[{index}]", causes)
        return causes

    def metadata_steps(self, context: Context) -> tuple[str, ...]:
        """Return the additional metadata checks; the subresource `finalize` has fewer."""
        return ("change",) if context.subresource == "finalize" else super().metadata_steps(context)


class ServiceStrategy(Strategy):
    """Services: cluster addresses are allocated once and do not change."""

    returns_deleted = True
    create_on_update = True
    name_check = "label"

    def allocate(self, context: Context, document: Document, before: Document | None) -> None:
        """Allocate missing cluster addresses and node ports."""
        if context.subresource != "status":
            allocate(context, document, before)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the status, and drop fields that the new type does not use."""
        super().prepare_update(context, new, old)
        spec = part(new, "spec")
        drop_unused(spec, part(old, "spec"))
        if spec.get("type") != "LoadBalancer" and "status" in new:
            new["status"] = {**part(new, "status"), "loadBalancer": {}}

    def admit_valid(self, context: Context, new: Document, old: Document | None) -> None:
        """Drop a field that upstream never returns."""
        spec = part(new, "spec")
        if spec.get("type") == "ExternalName":
            spec.pop("internalTrafficPolicy", None)


class VolumeStrategy(Strategy):
    """Persistent volumes: protected by a finalizer, and pending until bound."""

    returns_deleted = True

    def admit(self, context: Context, document: Document) -> None:
        """Add the protection finalizer (the plugin StorageObjectInUseProtection)."""
        add_finalizer(document, "kubernetes.io/pv-protection")

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set the phase Pending, and the time of this change."""
        document["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.cluster.now()}

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Set `lastPhaseTransitionTime` if the phase changed."""
        super().prepare_status(context, new, old)
        status, before = part(new, "status"), part(old, "status")
        time, time_before = (each.get("lastPhaseTransitionTime") for each in (status, before))
        if status.get("phase") != before.get("phase"):
            if time is None or time == time_before:
                status["lastPhaseTransitionTime"] = context.cluster.now()
        elif time is None and time_before is not None:
            status["lastPhaseTransitionTime"] = time_before


class ClaimStrategy(Strategy):
    """Persistent volume claims: protected by a finalizer, and pending until bound. A bound claim may grow."""

    returns_deleted = True

    def admit(self, context: Context, document: Document) -> None:
        """Add the protection finalizer, and set the default storage class if the claim names no class."""
        add_finalizer(document, "kubernetes.io/pvc-protection")
        spec = part(document, "spec")
        if spec.get("storageClassName") is None and _BETA_CLASS not in part(document, "metadata", "annotations"):
            default = _default_class(context, "storage.k8s.io/storageclasses", "storageclass.kubernetes.io/")
            if default:
                spec["storageClassName"] = default

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set the phase Pending, and make `dataSource` and `dataSourceRef` agree."""
        document["status"] = {"phase": "Pending"}
        _unify_data_sources(part(document, "spec"), {})

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the status, and make `dataSource` and `dataSourceRef` agree.

        Some clients know only the older field, `dataSource`.
        """
        super().prepare_update(context, new, old)
        _unify_data_sources(part(new, "spec"), part(old, "spec"))

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Return the errors of a new claim.

        Raises:
            ApiError: the claim is valid, but exceeds a limit range.
        """
        causes = super().validate(context, document)
        if not causes:
            check_claim_limits(context, document)
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of an update.

        Raises:
            ApiError: the request grows, but the claim is not bound or its class does not allow growth (the
                plugin PersistentVolumeClaimResize).
        """
        causes = super().validate_update(context, new, old)
        if not causes and not context.subresource and _requested_storage(new) > _requested_storage(old):
            why = ""
            if part(old, "status").get("phase") != "Bound":
                why = "Only bound persistent volume claims can be expanded"
            elif not _class_allows_growth(context, new, old):
                why = "only dynamically provisioned pvc can be resized and "
                why += "the storageclass that provisions the pvc must support resize"
            if why:
                raise forbidden("persistentvolumeclaims", "", str(part(old, "metadata").get("name")), why)
        return causes


def _requested_storage(claim: Document) -> Quantity:
    return Quantity.parse(str(part(claim, "spec", "resources", "requests").get("storage") or "0"))


def _class_allows_growth(context: Context, new: Document, old: Document) -> bool:
    names = [
        part(each, "metadata", "annotations").get("volume.beta.kubernetes.io/storage-class")
        or part(each, "spec").get("storageClassName")
        for each in (new, old)
    ]
    if not names[0] or names[0] != names[1]:
        return False
    found = context.cluster.find("storage.k8s.io/storageclasses", "", str(names[0]))
    return found is not None and found.get("allowVolumeExpansion") is True


_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
"""Groups and kinds that the older field `dataSource` supports."""


def _unify_data_sources(spec: Document, before: Document) -> None:
    """Set `dataSource` or `dataSourceRef` from the other field (KEP-1495), and drop unsupported sources."""
    reference = spec.get("dataSourceRef")
    if isinstance(reference, dict) and reference.get("namespace") and before.get("dataSourceRef") is None:
        # The feature gate CrossNamespaceVolumeDataSource is disabled.
        spec.pop("dataSourceRef")
        reference = None
    source = spec.get("dataSource")
    in_use = before.get("dataSource") is not None or before.get("dataSourceRef") is not None
    known = isinstance(source, dict) and (source.get("apiGroup") or "", source.get("kind")) in _SOURCES
    if isinstance(source, dict) and not known and reference is None and not in_use:
        spec.pop("dataSource")
        source = None
    if isinstance(source, dict) and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif isinstance(reference, dict) and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: item for name, item in reference.items() if name != "namespace"}


class ServiceAccountStrategy(Strategy):
    """Service accounts: references to secrets are reduced to their names."""

    returns_deleted = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Reduce the references to secrets to their names."""
        super().prepare_create(context, document)
        _name_secrets(document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Reduce the references to secrets to their names."""
        super().prepare_update(context, new, old)
        _name_secrets(new)


def _name_secrets(account: Document) -> None:
    if parts(account, "secrets"):
        account["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in parts(account, "secrets")]


class EndpointSliceStrategy(Strategy):
    """Endpoint slices: changes of labels, and all changes outside the metadata, increment the generation."""

    counts_generations = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set the generation, and drop the deprecated topology of endpoints."""
        super().prepare_create(context, document)
        _drop_topology(document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Increment the generation if labels or anything outside the metadata changed.

        If the endpoints changed, drop their topology.
        """
        super().prepare_update(context, new, old)
        # Upstream does not distinguish empty lists from missing ones.
        rest, before = (
            {name: item for name, item in each.items() if name not in _HEAD and item not in (None, [])}
            for each in (new, old)
        )
        labels, labels_before = (part(each, "metadata", "labels") for each in (new, old))
        if rest != before or labels != labels_before:
            generation = part(old, "metadata").get("generation", 0)
            part(new, "metadata")["generation"] = (generation if isinstance(generation, int) else 0) + 1
        if new.get("endpoints") != old.get("endpoints"):
            _drop_topology(new)


_HEAD = ("apiVersion", "kind", "metadata")


def _drop_topology(endpoint_slice: Document) -> None:
    if "endpoints" in endpoint_slice:
        endpoint_slice["endpoints"] = [
            {name: item for name, item in each.items() if name != "deprecatedTopology"}
            for each in parts(endpoint_slice, "endpoints")
        ]


def _default_class(context: Context, table: str, prefix: str) -> object:
    """Return the name of the default class in a table, or None.

    Of several default classes, it is the newest; of equally new classes, the first by name.
    """
    found = [
        part(each, "metadata")
        for each in context.cluster.all(table)
        if part(each, "metadata", "annotations").get(f"{prefix}is-default-class") == "true"
    ]
    found.sort(key=lambda each: str(each.get("name")))
    return max(found, key=lambda each: str(each.get("creationTimestamp")), default={}).get("name")


class IngressStrategy(Strategy):
    """Ingresses: an ingress without a class gets the default class (the plugin DefaultIngressClass)."""

    counts_generations = True

    def admit(self, context: Context, document: Document) -> None:
        """Set the default class if an ingress names no class in its spec or in the older annotation."""
        spec = part(document, "spec")
        if spec.get("ingressClassName") is None and _INGRESS_CLASS not in part(document, "metadata", "annotations"):
            default = _default_class(context, "networking.k8s.io/ingressclasses", "ingressclass.kubernetes.io/")
            if default:
                spec["ingressClassName"] = default


_INGRESS_CLASS = "kubernetes.io/ingress.class"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


class EventStrategy(Strategy):
    """Events of both API groups, stored in core/v1. The group of the request determines the validation rules."""

    is_garbage_collected = False
    create_on_update = True
    name_check = "path"
    checks_own_metadata = True

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Return the errors of a new event."""
        return check_event(document, is_core=context.resource.group == "")

    def metadata_steps(self, context: Context) -> tuple[str, ...]:
        """Return the additional metadata checks; events of the core group have none."""
        return () if context.resource.group == "" else ("change",)

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of an update."""
        return check_event_update(new, old, is_core=context.resource.group == "")


class LeaseStrategy(Strategy):
    """Leases: an update requires the resource version, and creates the lease if it does not exist."""

    create_on_update = True
    unconditional_update = False
