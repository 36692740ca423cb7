"""Small clusters and pods as documents, and rows of the table of rules: a case and the expected parts of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.conformance.cases import Json, JsonObject

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
API_VERSION = "kubescheduler.config.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Row:
    """One rule of `conformance/SEMANTICS.md` with a case that shows it.

    Attributes:
        rule: The number of the rule.
        summary: The part of the rule that the case shows.
        want: The expected values at paths in the answer's list of cycles, such as ``0.message``; numbers index lists.
    """

    rule: int
    summary: str
    objects: Sequence[JsonObject]
    pods: Sequence[JsonObject]
    want: Mapping[str, Json]
    config: JsonObject | None = None
    gates: Mapping[str, bool] = field(default_factory=dict)

    @property
    def case(self) -> JsonObject:
        """Return the row as a case of the conformance format."""
        case: JsonObject = {
            "id": f"rule{self.rule}/{self.summary}",
            "objects": list[Json](self.objects),
            "pods": list[Json](self.pods),
        }
        if self.config is not None:
            case["config"] = {
                "apiVersion": API_VERSION,
                "kind": "KubeSchedulerConfiguration",
                "profiles": [self.config],
            }
        if self.gates:
            case["featureGates"] = dict[str, Json](self.gates)
        return case


def node(
    name: str = "n1",
    offers: Mapping[str, str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[JsonObject] = (),
    images: Sequence[tuple[str, int]] = (),
    bare: bool = False,
) -> JsonObject:
    """Return a node with 4 CPUs, 16 GiB and 10 pods unless `offers` changes them; if `bare`, without labels."""
    amounts: JsonObject = {"cpu": "4", "memory": "16Gi", "pods": "10", **(offers or {})}
    own: JsonObject = {} if bare else {HOSTNAME: name, **(labels or {})}
    status: JsonObject = {"allocatable": amounts, "capacity": dict(amounts)}
    if images:
        status["images"] = [{"names": [image], "sizeBytes": size} for image, size in images]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own},
        "spec": {"taints": list[Json](taints)} if taints else {},
        "status": status,
    }


def pod(
    name: str = "p",
    requests: Mapping[str, str] | None = None,
    *,
    on: str = "",
    nominated: str = "",
    started: str = "",
    labels: Mapping[str, str] | None = None,
    priority: int | None = None,
    port: int = 0,
    image: str = "",
    metadata: JsonObject | None = None,
    conditions: Sequence[JsonObject] = (),
    **spec: Json,
) -> JsonObject:
    """Return a pod with one container."""
    container: JsonObject = {"name": "c", "image": image or "i"}
    if requests is not None:
        container["resources"] = {"requests": dict[str, Json](requests)}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    chosen: JsonObject = {"containers": [container], **spec}
    if on:
        chosen["nodeName"] = on
    if priority is not None:
        chosen["priority"] = priority
    status: JsonObject = {}
    if nominated:
        status["nominatedNodeName"] = nominated
    if conditions:
        status["conditions"] = list[Json](conditions)
    if started:
        status["startTime"] = f"2026-01-0{started}T00:00:00Z"
    described: JsonObject = {"name": name, "namespace": "default", "uid": f"uid-{name}", **(metadata or {})}
    if labels is not None:
        described["labels"] = dict[str, Json](labels)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": described, "spec": chosen, "status": status}


def cpu(amount: str) -> dict[str, str]:
    """Return requests with this amount of CPU."""
    return {"cpu": amount}


def claim_volume(name: str) -> list[Json]:
    """Return the volumes of a pod that uses a persistent volume claim."""
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def volume_claim(
    name: str, *, bound: str = "", by: str = "yes", mode: str = "ReadWriteOnce", of: str = "local"
) -> JsonObject:
    """Return a claim; if `bound` is given, it is bound to that volume, and `by` is the annotation of the controller."""
    metadata: JsonObject = {"name": name, "namespace": "default"}
    storage: JsonObject = {"requests": {"storage": "1Gi"}}
    spec: JsonObject = {"accessModes": [mode], "storageClassName": of, "resources": storage}
    if bound:
        spec["volumeName"] = bound
        if by:
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": by}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume(name: str, *, on: str = "", mode: str = "ReadWriteOnce", size: str = "1Gi", **source: Json) -> JsonObject:
    """Return a persistent volume of the class ``local``; if `on` is given, only that node can use it."""
    spec: JsonObject = {
        "capacity": {"storage": size},
        "accessModes": [mode],
        "storageClassName": "local",
        **(source or {"hostPath": {"path": "/x"}}),
    }
    if on:
        wanted: JsonObject = {"key": HOSTNAME, "operator": "In", "values": [on]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"phase": "Available"},
    }


def storage_class(name: str = "local", *, delayed: bool = True) -> JsonObject:
    """Return a storage class without a provisioner, so that only existing volumes can be bound."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer" if delayed else "Immediate",
    }


def budget(name: str, selector: JsonObject, *, allowed: int = 0) -> JsonObject:
    """Return a PodDisruptionBudget that allows `allowed` disruptions."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    }


def device_class(name: str = "gpu") -> JsonObject:
    """Return a device class without selectors."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}


def devices(on: str, *names: str, attributes: JsonObject | None = None, count: int = 1) -> JsonObject:
    """Return a ResourceSlice with devices of a node; `count` is the number of slices that its pool declares."""
    written: list[Json] = [{"name": name, "attributes": attributes or {}} for name in names]
    pool: JsonObject = {"name": on, "generation": 1, "resourceSliceCount": count}
    spec: JsonObject = {"driver": "d.example", "pool": pool, "nodeName": on, "devices": written}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{on}"},
        "spec": spec,
    }


def device_claim(name: str, *, selector: str = "", mode: str = "ExactCount", count: int = 1) -> JsonObject:
    """Return a resource claim for devices of the class ``gpu``."""
    request: JsonObject = {"deviceClassName": "gpu", "allocationMode": mode}
    if mode == "ExactCount":
        request["count"] = count
    if selector:
        request["selectors"] = [{"cel": {"expression": selector}}]
    metadata: JsonObject = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    spec: JsonObject = {"devices": {"requests": [{"name": "r", "exactly": request}]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def using(claim: str) -> list[Json]:
    """Return the ``resourceClaims`` of a pod that uses one claim."""
    return [{"name": "c", "resourceClaimName": claim}]


def anti_affinity(key: str, app: str, **more: Json) -> JsonObject:
    """Return the affinity of a pod that must not run in one topology domain with pods of `app`."""
    return {"podAntiAffinity": {REQUIRED: [pod_term(key, app, **more)]}}


def pod_affinity(key: str, app: str, **more: Json) -> JsonObject:
    """Return the affinity of a pod that must run in one topology domain with a pod of `app`."""
    return {"podAffinity": {REQUIRED: [pod_term(key, app, **more)]}}


def pod_term(key: str, app: str, **more: Json) -> JsonObject:
    """Return a term of inter-pod affinity for pods of `app`."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def node_affinity(*requirements: JsonObject, fields: Sequence[JsonObject] = ()) -> JsonObject:
    """Return a node affinity that requires labels or fields of the node."""
    term: JsonObject = {}
    if requirements:
        term["matchExpressions"] = list[Json](requirements)
    if fields:
        term["matchFields"] = list[Json](fields)
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def in_(key: str, *values: str) -> JsonObject:
    """Return a requirement with the operator In."""
    return {"key": key, "operator": "In", "values": list[Json](values)}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def disabled(point: str, *names: str) -> JsonObject:
    """Return a profile in which some plugins are disabled at an extension point."""
    off: list[Json] = [{"name": name} for name in names]
    return {"schedulerName": "default-scheduler", "plugins": {point: {"disabled": off}}}


def only(*names: str) -> JsonObject:
    """Return a profile with only these plugins, at all their extension points."""
    on: list[Json] = [{"name": name} for name in names]
    return {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": on}},
    }


def with_args(plugin: str, **args: Json) -> JsonObject:
    """Return a profile with the arguments `args` for one plugin."""
    given: JsonObject = {"apiVersion": API_VERSION, "kind": f"{plugin}Args", **args}
    return {"schedulerName": "default-scheduler", "pluginConfig": [{"name": plugin, "args": given}]}
