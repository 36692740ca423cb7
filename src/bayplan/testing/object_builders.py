"""Builders of the objects that pods refer to: claims, volumes, classes, budgets, services, and objects from manifests."""

from __future__ import annotations

from typing import Any, Self, TypeVar

from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.namespace import Namespace
from bayplan.objects.policy import PodDisruptionBudget, PriorityClass
from bayplan.objects.service import Service
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.testing.builders import Builder

Kind = TypeVar("Kind", bound=KubernetesObject)

BOUND = "pv.kubernetes.io/bind-completed"
"""The annotation that marks a claim as bound."""


class StorageBuilder(Builder):
    """Sets the fields that claims and volumes have in common."""

    def storage_class(self, name: str) -> Self:
        """Set the storage class. With "", a claim requests a volume without a class."""
        self._document["spec"]["storageClassName"] = name
        return self

    def access(self, *modes: str) -> Self:
        """Set the access modes, e.g. ``ReadWriteOncePod``."""
        self._document["spec"]["accessModes"] = list(modes)
        return self


class ClaimBuilder(StorageBuilder):
    """Builds a PersistentVolumeClaim for 1 GiB with the access mode ReadWriteOnce."""

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__("PersistentVolumeClaim", name, namespace)
        self._document["metadata"]["uid"] = f"{namespace}-{name}"
        self._document["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    def storage(self, amount: str) -> Self:
        """Set the requested amount."""
        self._document["spec"]["resources"]["requests"]["storage"] = amount
        return self

    def bound(self, volume: str) -> Self:
        """Bind the claim to a volume. The volume must be bound to the claim separately, by `VolumeBuilder.bound`."""
        self._document["spec"]["volumeName"] = volume
        self._document["status"]["phase"] = "Bound"
        return self.annotation({BOUND: "yes"})

    def obj(self) -> PersistentVolumeClaim:
        """Return the typed claim with defaults."""
        return _made(self.document(), PersistentVolumeClaim)


class VolumeBuilder(StorageBuilder):
    """Builds a PersistentVolume of 1 GiB with the access mode ReadWriteOnce."""

    def __init__(self, name: str) -> None:
        super().__init__("PersistentVolume", name)
        self._document["spec"] = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}

    def storage(self, amount: str) -> Self:
        """Set the size."""
        self._document["spec"]["capacity"]["storage"] = amount
        return self

    def csi(self, driver: str, handle: str = "") -> Self:
        """Set the CSI driver of the volume, and its handle, which defaults to the volume's name."""
        self._document["spec"]["csi"] = {"driver": driver, "volumeHandle": handle or self._document["metadata"]["name"]}
        return self

    def zone(self, name: str) -> Self:
        """Set the zone label of the volume, which VolumeZone reads."""
        return self.label({"topology.kubernetes.io/zone": name})

    def node_affinity(self, key: str, *values: str) -> Self:
        """Restrict the nodes that can reach the volume to those with one of these label values."""
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
        self._document["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        return self

    def bound(self, claim: str, namespace: str = "default") -> Self:
        """Bind the volume to a claim. The claim must be bound to the volume separately, by `ClaimBuilder.bound`."""
        uid = f"{namespace}-{claim}"
        self._document["spec"]["claimRef"] = {"name": claim, "namespace": namespace, "uid": uid}
        self._document["status"]["phase"] = "Bound"
        return self

    def obj(self) -> PersistentVolume:
        """Return the typed volume with defaults."""
        return _made(self.document(), PersistentVolume)


def make_claim(name: str, namespace: str = "default") -> ClaimBuilder:
    """Return a builder of a PersistentVolumeClaim."""
    return ClaimBuilder(name, namespace)


def make_volume(name: str) -> VolumeBuilder:
    """Return a builder of a PersistentVolume."""
    return VolumeBuilder(name)


def make_storage_class(
    name: str, *, provisioner: str = "kubernetes.io/no-provisioner", wait: bool = False
) -> StorageClass:
    """Return a storage class. With `wait`, volumes are bound when a pod needs them (WaitForFirstConsumer)."""
    mode = "WaitForFirstConsumer" if wait else "Immediate"
    header = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return _made(header | {"provisioner": provisioner, "volumeBindingMode": mode}, StorageClass)


def make_namespace(name: str, **labels: str) -> Namespace:
    """Return a namespace."""
    return _made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}, Namespace)


def make_priority_class(name: str, value: int, *, policy: str = "PreemptLowerPriority") -> PriorityClass:
    """Return a priority class."""
    header = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return _made(header | {"value": value, "preemptionPolicy": policy}, PriorityClass)


def make_budget(
    name: str, labels: dict[str, str], *, namespace: str = "default", disruptions_allowed: int = 0
) -> PodDisruptionBudget:
    """Return a disruption budget for pods with these labels that allows this number of disruptions."""
    metadata = {"name": name, "namespace": namespace}
    header = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
    spec = {"selector": {"matchLabels": labels}}
    status = {"disruptionsAllowed": disruptions_allowed, "observedGeneration": 1}
    return _made(header | {"spec": spec, "status": status}, PodDisruptionBudget)


def make_service(name: str, labels: dict[str, str], *, namespace: str = "default") -> Service:
    """Return a service that selects pods with these labels."""
    metadata = {"name": name, "namespace": namespace}
    return _made({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": labels}}, Service)


def make_object(document: dict[str, Any]) -> KubernetesObject:
    """Return the typed object for a manifest, with defaults."""
    return default_object(decode(document))


def _made(document: dict[str, Any], kind: type[Kind]) -> Kind:
    found = make_object(document)
    assert isinstance(found, kind)
    return found
