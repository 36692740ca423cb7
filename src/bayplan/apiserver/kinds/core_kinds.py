"""Strategies of nodes, namespaces, services, volumes and claims, events and leases."""

from __future__ import annotations

from bayplan.apiserver.kinds.limit_ranges import check_claim_limits
from bayplan.apiserver.kinds.service_allocation import allocate, drop_unused
from bayplan.apiserver.kinds.strategy import Context, Strategy, add_finalizer, copy_part
from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.validation.events import check_event, check_event_update
from bayplan.base.plain_data import Document, part, parts, texts

_NOT_READY = "node.kubernetes.io/not-ready"


class NodeStrategy(Strategy):
    """Nodes: a new one is tainted until it is ready, and keeps the status it was created with."""

    keeps_status_on_create = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Drop the source of a kubelet configuration, which no kubelet reads any more; make the fields for pod CIDRs agree."""
        super().prepare_create(context, document)
        part(document, "spec").pop("configSource", None)
        _unify_pod_cidrs(document)

    def admit(self, context: Context, document: Document) -> None:
        """Taint a new node as not ready (the plugin TaintNodesByCondition)."""
        spec = document.setdefault("spec", {})
        assert isinstance(spec, dict)
        taints = parts(spec, "taints")
        if not any(each.get("key") == _NOT_READY and each.get("effect") == "NoSchedule" for each in taints):
            spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]

    def admit_whole(self, context: Context, document: Document) -> None:
        """Leave the taints to a node that is known to be ready or not: they follow from that where it comes from."""
        if all(each.get("type") != "Ready" for each in parts(part(document, "status"), "conditions")):
            self.admit(context, document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Make the two fields for pod CIDRs agree."""
        super().prepare_update(context, new, old)
        _unify_pod_cidrs(new)

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Drop what was reported of a kubelet configuration, which no kubelet reads any more."""
        super().prepare_status(context, new, old)
        if "config" not in part(old, "status"):
            part(new, "status").pop("config", None)


def _unify_pod_cidrs(node: Document) -> None:
    """Let ``podCIDR`` be the first of ``podCIDRs``; if both are there, ``podCIDR`` wins."""
    spec = part(node, "spec")
    first, every = spec.get("podCIDR"), texts(spec, "podCIDRs")
    if first and (not every or every[0] != first):
        spec["podCIDRs"] = [first]
    elif every:
        spec["podCIDR"] = every[0]


class LimitRangeStrategy(Strategy):
    """Limit ranges: one without a name gets a uid for it."""

    create_on_update = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Give a name to one that has none."""
        super().prepare_create(context, document)
        metadata = part(document, "metadata")
        metadata["name"] = metadata.get("name") or context.cluster.new_uid()


class NamespaceStrategy(Strategy):
    """Namespaces: active with a finalizer; terminating until that is taken off."""

    name_check = "label"
    returns_deleted = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Begin as active, labelled with the name, held by the finalizer of namespaces."""
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
        """Keep status and finalizers of the spec."""
        copy_part(new, old, "status")
        copy_part(new, old, "spec")


class ServiceStrategy(Strategy):
    """Services: cluster addresses are given, and stay."""

    returns_deleted = True
    create_on_update = True
    name_check = "label"

    def allocate(self, context: Context, document: Document, before: Document | None) -> None:
        """Give cluster addresses and node ports."""
        if context.subresource != "status":
            allocate(context, document, before)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Drop what the new type does not need."""
        super().prepare_update(context, new, old)
        drop_unused(part(new, "spec"), part(old, "spec"))


class VolumeStrategy(Strategy):
    """Persistent volumes: protected, pending until bound, with a source that stays."""

    returns_deleted = True

    def admit(self, context: Context, document: Document) -> None:
        """Protect a new volume (the plugin StorageObjectInUseProtection)."""
        add_finalizer(document, "kubernetes.io/pv-protection")

    def prepare_create(self, context: Context, document: Document) -> None:
        """Begin as pending."""
        document["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.cluster.now()}

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Note when the phase changes."""
        super().prepare_status(context, new, old)
        status, before = part(new, "status"), part(old, "status")
        time, time_before = (each.get("lastPhaseTransitionTime") for each in (status, before))
        if status.get("phase") != before.get("phase"):
            if time is None or time == time_before:
                status["lastPhaseTransitionTime"] = context.cluster.now()
        elif time is None and time_before is not None:
            status["lastPhaseTransitionTime"] = time_before


class ClaimStrategy(Strategy):
    """Persistent volume claims: protected, pending until bound, with a spec that stays."""

    returns_deleted = True

    def admit(self, context: Context, document: Document) -> None:
        """Protect a new claim, and give it the default storage class where it names none."""
        add_finalizer(document, "kubernetes.io/pvc-protection")
        spec = part(document, "spec")
        if spec.get("storageClassName") is None:
            default = _default_class(context)
            if default:
                spec["storageClassName"] = default

    def prepare_create(self, context: Context, document: Document) -> None:
        """Begin as pending, and name the source of the data in both ways."""
        document["status"] = {"phase": "Pending"}
        _unify_data_sources(part(document, "spec"), {})

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Name the source of the data in both ways, also for clients that know only the older one."""
        super().prepare_update(context, new, old)
        _unify_data_sources(part(new, "spec"), part(old, "spec"))

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check a new claim, and what limit ranges say about it."""
        causes = super().validate(context, document)
        if not causes:
            check_claim_limits(context, document)
        return causes


_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
"""Groups and kinds to which `dataSource` could point from the beginning."""


def _unify_data_sources(spec: Document, before: Document) -> None:
    """Fill one of `dataSource` and `dataSourceRef` from the other (KEP 1495); drop what never was a source."""
    reference = spec.get("dataSourceRef")
    if isinstance(reference, dict) and reference.get("namespace") and before.get("dataSourceRef") is None:
        # The gate CrossNamespaceVolumeDataSource is off.
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
    """Service accounts, which keep only the names of their secrets."""

    returns_deleted = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Reduce the secrets to their names."""
        super().prepare_create(context, document)
        _name_secrets(document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Reduce the secrets to their names."""
        super().prepare_update(context, new, old)
        _name_secrets(new)


def _name_secrets(account: Document) -> None:
    if parts(account, "secrets"):
        account["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in parts(account, "secrets")]


class EndpointSliceStrategy(Strategy):
    """Endpoint slices: all but metadata counts as a generation, labels too; the old topology is not written any more."""

    counts_generations = True

    def prepare_create(self, context: Context, document: Document) -> None:
        """Drop the old topology."""
        super().prepare_create(context, document)
        _drop_topology(document)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Count changes, and drop the old topology."""
        super().prepare_update(context, new, old)
        rest, before = ({name: item for name, item in each.items() if name not in _HEAD} for each in (new, old))
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


def _default_class(context: Context) -> object:
    """Return the name of the default storage class: the newest of those that are marked."""
    mark = "storageclass.kubernetes.io/is-default-class"
    found = [
        part(each, "metadata")
        for each in context.cluster.all("storage.k8s.io/storageclasses")
        if part(each, "metadata", "annotations").get(mark) == "true"
    ]
    newest = max(found, key=lambda each: (str(each.get("creationTimestamp")), str(each.get("name"))), default={})
    return newest.get("name")


class EventStrategy(Strategy):
    """Events, of both groups; stored as those of the core group. The group of the request decides which rules hold."""

    create_on_update = True
    name_check = "path"

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check a new event."""
        return check_event(document, is_core=context.resource.group == "")

    def metadata_steps(self, context: Context) -> tuple[str, ...]:
        """Check changes of metadata, but not those through the core group."""
        return () if context.resource.group == "" else ("change",)

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check a change."""
        return check_event_update(new, old, is_core=context.resource.group == "")


class LeaseStrategy(Strategy):
    """Leases: an update names its version, and one of what is not there creates it."""

    create_on_update = True
    unconditional_update = False
