"""Strategies of nodes, namespaces, services, volumes and claims, events and leases."""

from __future__ import annotations

from bayplan.apiserver.kinds.affinity_validation import check_node_selector
from bayplan.apiserver.kinds.go_diff import pod_difference
from bayplan.apiserver.kinds.limit_ranges import check_claim_limits
from bayplan.apiserver.kinds.strategy import Context, Strategy, copy_part, part, parts, texts
from bayplan.apiserver.rest.errors import Cause, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.rest.object_meta import shown
from bayplan.base.plain_data import Document
from bayplan.base.ports import LARGEST_PORT
from bayplan.objects.names import check_label_value, check_qualified_name
from bayplan.objects.quantity import Quantity
from bayplan.objects.selectors import quote

_NOT_READY = "node.kubernetes.io/not-ready"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class NodeStrategy(Strategy):
    """Nodes: a new one is tainted until it is ready, and keeps the status it was created with."""

    keeps_status_on_create = True

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

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check taints."""
        causes: list[Cause] = []
        seen: set[tuple[object, object]] = set()
        for index, taint in enumerate(parts(part(document, "spec"), "taints")):
            here, key = f"spec.taints[{index}]", str(taint.get("key") or "")
            causes += [invalid_value(f"{here}.key", quote(key), each) for each in check_qualified_name(key)]
            value = str(taint.get("value") or "")
            problems = check_label_value(value)
            if problems:
                causes.append(invalid_value(f"{here}.value", quote(value), "; ".join(problems)))
            effect = str(taint.get("effect") or "")
            if not effect:
                causes.append(required(f"{here}.effect"))
            elif effect not in _EFFECTS:
                causes.append(not_supported(f"{here}.effect", quote(effect), _EFFECTS))
            if (key, effect) in seen:
                text = "taints must be unique by key and effect pair"
                causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {shown(taint)}: {text}", here))
            seen.add((key, effect))
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check that addresses of pods and the provider's id are only set once."""
        causes = self.validate(context, new)
        spec, before = part(new, "spec"), part(old, "spec")
        networks = texts(before, "podCIDRs")
        if networks and texts(spec, "podCIDRs") != networks:
            text = 'node updates may not change podCIDR except from "" to valid'
            causes.append(forbidden_value("spec.podCIDRs", text))
        if before.get("providerID") and spec.get("providerID") != before["providerID"]:
            text = 'node updates may not change providerID except from "" to valid'
            causes.append(forbidden_value("spec.providerID", text))
        return causes


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

    def admit(self, context: Context, document: Document) -> None:
        """Give a cluster address and the families that go with it."""
        spec = part(document, "spec")
        if spec.get("type") == "ExternalName":
            return
        if not spec.get("clusterIP"):
            listed = texts(spec, "clusterIPs")
            spec["clusterIP"] = listed[0] if listed else context.cluster.allocate_address()
        if not texts(spec, "clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        headless = spec["clusterIP"] == "None" and not part(spec, "selector")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if headless else ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack" if headless else "SingleStack")

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Keep what was given and is not sent again."""
        super().prepare_update(context, new, old)
        spec, before = part(new, "spec"), part(old, "spec")
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(name) and name in before and spec.get("type") != "ExternalName":
                spec[name] = before[name]

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check ports."""
        spec = part(document, "spec")
        ports = parts(spec, "ports")
        causes: list[Cause] = []
        if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
            causes.append(required("spec.ports"))
        seen: set[str] = set()
        for index, port in enumerate(ports):
            here, name, number = f"spec.ports[{index}]", str(port.get("name") or ""), port.get("port")
            if len(ports) > 1 and not name:
                causes.append(required(f"{here}.name"))
            if name in seen:
                causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {quote(name)}", f"{here}.name"))
            seen.add(name)
            if not isinstance(number, int) or not 1 <= number <= LARGEST_PORT:
                between = f"must be between 1 and {LARGEST_PORT}, inclusive"
                causes.append(invalid_value(f"{here}.port", str(number or 0), between))
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check that the address stays."""
        before, after = texts(part(old, "spec"), "clusterIPs"), texts(part(new, "spec"), "clusterIPs")
        if before and after and before[0] != after[0] and before[0] != "None":
            return [invalid_value("spec.clusterIPs[0]", shown(after), "may not change once set")]
        return self.validate(context, new)


_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SPEC_FIELDS_OF_VOLUMES = frozenset((
    "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
    "volumeMode", "nodeAffinity", "volumeAttributesClassName",
))  # fmt: skip


def _check_modes(spec: Document) -> list[Cause]:
    modes = texts(spec, "accessModes")
    if not modes:
        return [required("spec.accessModes", "at least 1 access mode is required")]
    return [not_supported("spec.accessModes", quote(mode), _MODES) for mode in modes if mode not in _MODES]


class VolumeStrategy(Strategy):
    """Persistent volumes: protected, pending until bound, with a source that stays."""

    returns_deleted = True

    def admit(self, context: Context, document: Document) -> None:
        """Protect a new volume (the plugin StorageObjectInUseProtection)."""
        _protect(document, "kubernetes.io/pv-protection")

    def prepare_create(self, context: Context, document: Document) -> None:
        """Begin as pending."""
        document["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.cluster.now()}

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Note when the phase changes."""
        super().prepare_status(context, new, old)
        status, before = part(new, "status"), part(old, "status")
        if status.get("phase") != before.get("phase"):
            status["lastPhaseTransitionTime"] = context.cluster.now()

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check capacity, modes, source and node affinity."""
        spec = part(document, "spec")
        causes = _check_modes(spec)
        capacity = part(spec, "capacity")
        if not capacity:
            causes.append(required("spec.capacity"))
        elif set(capacity) != {"storage"}:
            causes.append(not_supported("spec.capacity", shown(capacity), ("storage",)))
        for name, amount in capacity.items():
            here = f"spec.capacity[{name}]"
            if Quantity.parse(str(amount)).sign() < 0:
                number = Quantity.parse(str(amount)).value()
                causes.append(invalid_value(here, str(number), "must be a valid resource quantity"))
            if Quantity.parse(str(amount)).sign() <= 0:
                causes.append(invalid_value(here, quote(str(amount)), "must be greater than zero"))
        if "nodeAffinity" in spec:
            wanted = part(spec, "nodeAffinity", "required")
            causes += check_node_selector(wanted, "spec.nodeAffinity.required")
        sources = [name for name in spec if name not in _SPEC_FIELDS_OF_VOLUMES]
        causes += [forbidden_value(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
        if not sources:
            causes.append(required("spec", "must specify a volume type"))
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check that the source stays."""
        causes = self.validate(context, new)
        source, before = (
            {name: value for name, value in part(each, "spec").items() if name not in _SPEC_FIELDS_OF_VOLUMES}
            for each in (new, old)
        )
        if source != before:
            text = "spec.persistentvolumesource is immutable after creation\n"
            causes.append(forbidden_value("spec.persistentvolumesource", text + pod_difference(before, source)))
        return causes


class ClaimStrategy(Strategy):
    """Persistent volume claims: protected, pending until bound, with a spec that stays."""

    returns_deleted = True

    def admit(self, context: Context, document: Document) -> None:
        """Protect a new claim, and give it the default storage class where it names none."""
        _protect(document, "kubernetes.io/pvc-protection")
        spec = part(document, "spec")
        if spec.get("storageClassName") is None:
            default = _default_class(context)
            if default:
                spec["storageClassName"] = default

    def prepare_create(self, context: Context, document: Document) -> None:
        """Begin as pending."""
        document["status"] = {"phase": "Pending"}

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check modes and the amount that is asked for."""
        spec = part(document, "spec")
        causes = _check_modes(spec)
        amount = part(spec, "resources", "requests").get("storage")
        if amount is None:
            causes.append(required("spec.resources[storage]"))
        elif Quantity.parse(str(amount)).sign() <= 0:
            causes.append(invalid_value("spec.resources[storage]", quote(str(amount)), "must be greater than zero"))
        if not causes:
            check_claim_limits(context, document)
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check that nothing changes but what is bound and what is asked for."""
        causes = self.validate(context, new)
        spec, before = dict(part(new, "spec")), dict(part(old, "spec"))
        if not before.get("volumeName"):
            copy_part(spec, before, "volumeName")
        if part(old, "status").get("phase") == "Bound":
            copy_part(spec, before, "resources")
            copy_part(spec, before, "volumeAttributesClassName")
        if spec != before:
            text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
            causes.append(forbidden_value("spec", text + pod_difference(before, spec)))
        return causes


def _protect(document: Document, finalizer: str) -> None:
    metadata = part(document, "metadata")
    finalizers = texts(metadata, "finalizers")
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


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
