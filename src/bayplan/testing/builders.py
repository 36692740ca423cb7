"""Builders of typed objects for tests and notebooks: ``make_pod("web").req(cpu="2").label(app="web").obj()``.

A builder assembles an ordinary manifest. Its method `obj` decodes the manifest like the loader, with defaults, so that
the object is ready to be scheduled. It refuses unknown values of fields with fixed values, such as the effect of a taint.
"""

from __future__ import annotations

from typing import Any, Self, TypeAlias

from bayplan.base.errors import InputError
from bayplan.formats.amounts import check_amounts
from bayplan.formats.fixed_values import check_values
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

Selector: TypeAlias = dict[str, str | list[str]]
"""Labels, each with the required value or a list of alternative values."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

TOPOLOGIES = {"hostname": "kubernetes.io/hostname", "zone": "topology.kubernetes.io/zone"}
"""Short names of the usual topology keys."""


class Builder:
    """Builds an object. Each method changes the object and returns the builder."""

    def __init__(self, kind: str, name: str, namespace: str = "", *, api_version: str = "v1") -> None:
        metadata: dict[str, Any] = {"name": name, "labels": {}, "annotations": {}}
        if namespace:
            metadata["namespace"] = namespace
        self._document: dict[str, Any] = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": metadata,
            "spec": {},
            "status": {},
        }

    def label(self, labels: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add labels from a mapping and from keyword arguments."""
        self._document["metadata"]["labels"].update(labels or {}, **more)
        return self

    def annotation(self, annotations: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add annotations."""
        self._document["metadata"]["annotations"].update(annotations or {}, **more)
        return self

    def uid(self, uid: str) -> Self:
        """Set the UID."""
        self._document["metadata"]["uid"] = uid
        return self

    def created(self, time: str) -> Self:
        """Set the creation time, e.g. ``2026-01-01T00:00:00Z``."""
        self._document["metadata"]["creationTimestamp"] = time
        return self

    def terminating(self, time: str = "2026-01-01T00:00:00Z") -> Self:
        """Set the deletion time, so that the object is terminating."""
        self._document["metadata"]["deletionTimestamp"] = time
        return self

    def owner(self, kind: str, name: str, *, api_version: str = "apps/v1") -> Self:
        """Set the controller that owns the object."""
        reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}
        self._document["metadata"]["ownerReferences"] = [reference]
        return self

    def document(self) -> dict[str, Any]:
        """Return the manifest, which later calls still change."""
        return self._document

    def _typed(self) -> KubernetesObject:
        found = default_object(decode(self._document))
        check_values(self._document, lambda path: "")
        check_amounts(self._document, "")
        return found


class PodBuilder(Builder):
    """Builds a pod with one container; `container` adds more."""

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__("Pod", name, namespace)
        self._document["metadata"]["uid"] = f"{namespace}-{name}"
        self._document["spec"]["containers"] = [{"name": "c", "image": "registry.example/app:v1"}]

    @property
    def _container(self) -> dict[str, Any]:
        container: dict[str, Any] = self._document["spec"]["containers"][-1]
        return container

    def req(self, amounts: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add requests to the last container: ``req({"example.com/gpu": "1"}, cpu="2")``."""
        requests = self._container.setdefault("resources", {}).setdefault("requests", {})
        requests.update(amounts or {}, **more)
        return self

    def limit(self, amounts: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add limits to the last container."""
        limits = self._container.setdefault("resources", {}).setdefault("limits", {})
        limits.update(amounts or {}, **more)
        return self

    def container(self, name: str, image: str = "registry.example/app:v1") -> Self:
        """Add a container. Later calls for the last container apply to it."""
        self._document["spec"]["containers"].append({"name": name, "image": image})
        return self

    def init_container(self, name: str, image: str = "registry.example/init:v1", **requests: str) -> Self:
        """Add an init container with requests."""
        entry = {"name": name, "image": image, "resources": {"requests": requests}}
        self._document["spec"].setdefault("initContainers", []).append(entry)
        return self

    def image(self, image: str) -> Self:
        """Set the image of the last container."""
        self._container["image"] = image
        return self

    def host_port(self, port: int, *, protocol: str = "TCP", host_ip: str = "") -> Self:
        """Add a host port to the last container."""
        entry = {"containerPort": port, "hostPort": port, "protocol": protocol, "hostIP": host_ip}
        self._container.setdefault("ports", []).append(entry)
        return self

    def node(self, name: str) -> Self:
        """Bind the pod to a node."""
        self._document["spec"]["nodeName"] = name
        return self

    def nominated(self, node_name: str) -> Self:
        """Nominate the pod to a node."""
        self._document["status"]["nominatedNodeName"] = node_name
        return self

    def priority(self, priority: int, *, policy: str = "") -> Self:
        """Set the priority and, if given, the preemption policy, e.g. ``Never``."""
        self._document["spec"]["priority"] = priority
        if policy:
            self._document["spec"]["preemptionPolicy"] = policy
        return self

    def priority_class(self, name: str) -> Self:
        """Set the priority class."""
        self._document["spec"]["priorityClassName"] = name
        return self

    def overhead(self, **amounts: str) -> Self:
        """Set the overhead of the pod, in addition to its containers."""
        self._document["spec"]["overhead"] = amounts
        return self

    def started(self, time: str, *, phase: str = "Running") -> Self:
        """Set the start time and the phase."""
        self._document["status"] |= {"startTime": time, "phase": phase}
        return self

    def scheduler(self, name: str) -> Self:
        """Set the scheduler name."""
        self._document["spec"]["schedulerName"] = name
        return self

    def node_selector(self, labels: dict[str, str] | None = None, /, **more: str) -> Self:
        """Require labels on the node (nodeSelector)."""
        self._document["spec"].setdefault("nodeSelector", {}).update(labels or {}, **more)
        return self

    def toleration(self, key: str = "", value: str = "", effect: str = "", *, operator: str = "") -> Self:
        """Add a toleration. Without a value, it tolerates every value."""
        _check_taint_key("toleration", key)
        entry = {"key": key, "operator": operator or ("Equal" if value else "Exists"), "value": value, "effect": effect}
        self._document["spec"].setdefault("tolerations", []).append(entry)
        return self

    def node_affinity(self, key: str, *values: str, operator: str = "", weight: int = 0, fields: bool = False) -> Self:
        """Add a node affinity term with one requirement. With a `weight`, the term is preferred, otherwise required.

        Without values, the key must exist; name other operators explicitly. Several required terms are alternatives.
        `fields`: whether the key is a field (``metadata.name``) and not a label.
        """
        requirement: dict[str, Any] = {"key": key, "operator": operator or ("In" if values else "Exists")}
        if values:
            requirement["values"] = list(values)
        term = {"matchFields" if fields else "matchExpressions": [requirement]}
        affinity = self._affinity("nodeAffinity")
        if weight:
            affinity.setdefault(PREFERRED, []).append({"weight": weight, "preference": term})
        else:
            affinity.setdefault(REQUIRED, {}).setdefault("nodeSelectorTerms", []).append(term)
        return self

    def pod_affinity(self, labels: Selector, topology: str = "hostname", **more: Any) -> Self:
        """Add a pod affinity term, which attracts the pod to pods with these labels; see `pod_anti_affinity`."""
        return self._pod_term("podAffinity", labels, topology, **more)

    def pod_anti_affinity(self, labels: Selector, topology: str = "hostname", **more: Any) -> Self:
        """Add a pod anti-affinity term, which keeps the pod away from pods with these labels.

        Args:
            labels: the labels of the other pods.
            topology: ``hostname``, ``zone``, or a label key of nodes.
            more: ``weight`` makes the term preferred; ``namespaces`` and other fields of the term are as in a manifest.
        """
        return self._pod_term("podAntiAffinity", labels, topology, **more)

    def _pod_term(self, kind: str, labels: Selector, topology: str, *, weight: int = 0, **fields: Any) -> Self:
        term = {"labelSelector": _selector(labels), "topologyKey": TOPOLOGIES.get(topology, topology)} | fields
        affinity = self._affinity(kind)
        if weight:
            affinity.setdefault(PREFERRED, []).append({"weight": weight, "podAffinityTerm": term})
        else:
            affinity.setdefault(REQUIRED, []).append(term)
        return self

    def _affinity(self, kind: str) -> dict[str, Any]:
        affinity: dict[str, Any] = self._document["spec"].setdefault("affinity", {}).setdefault(kind, {})
        return affinity

    def spread(
        self, labels: Selector, topology: str = "zone", *, max_skew: int = 1, soft: bool = False, **fields: Any
    ) -> Self:
        """Add a topology spread constraint for pods with these labels.

        Args:
            labels: the labels of the pods to spread.
            topology: ``hostname``, ``zone``, or a label key of nodes.
            max_skew: the maximum difference in the number of pods between domains.
            soft: whether the constraint only lowers scores (ScheduleAnyway).
            fields: other fields as in a manifest, e.g. ``minDomains=3``.
        """
        constraint = {
            "maxSkew": max_skew,
            "topologyKey": TOPOLOGIES.get(topology, topology),
            "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
            "labelSelector": _selector(labels),
        }
        self._document["spec"].setdefault("topologySpreadConstraints", []).append(constraint | fields)
        return self

    def claim(self, name: str) -> Self:
        """Add a volume that refers to a PersistentVolumeClaim."""
        return self.volume(name, persistentVolumeClaim={"claimName": name})

    def volume(self, name: str, **source: Any) -> Self:
        """Add a volume as in a manifest: ``volume("data", emptyDir={})``."""
        self._document["spec"].setdefault("volumes", []).append({"name": name, **source})
        return self

    def resource_claim(self, name: str, *, template: str = "", claim: str = "") -> Self:
        """Add a resource claim that the last container uses: a ResourceClaim, or one created from a template."""
        entry = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim or name}
        self._document["spec"].setdefault("resourceClaims", []).append({"name": name} | entry)
        self._container.setdefault("resources", {}).setdefault("claims", []).append({"name": name})
        return self

    def host_network(self) -> Self:
        """Use the host network."""
        self._document["spec"]["hostNetwork"] = True
        return self

    def gate(self, name: str) -> Self:
        """Add a scheduling gate."""
        self._document["spec"].setdefault("schedulingGates", []).append({"name": name})
        return self

    def spec(self, **fields: Any) -> Self:
        """Set fields of the spec as in a manifest: ``spec(affinity={...}, hostNetwork=True)``."""
        self._document["spec"].update(fields)
        return self

    def obj(self) -> Pod:
        """Return the typed pod with defaults.

        Raises:
            InputError: a field has an invalid value.
        """
        pod = self._typed()
        assert isinstance(pod, Pod)
        return pod


class NodeBuilder(Builder):
    """Builds a node. Its hostname label is its name, as kubelets set it."""

    def __init__(self, name: str) -> None:
        super().__init__("Node", name)
        self._document["metadata"]["labels"]["kubernetes.io/hostname"] = name
        self._document["status"]["allocatable"] = {"pods": "110"}

    def capacity(self, amounts: dict[str, str] | None = None, /, **more: str) -> Self:
        """Set the allocatable resources of the node: ``capacity({"example.com/gpu": "4"}, cpu="8", memory="16Gi")``."""
        self._document["status"]["allocatable"].update(amounts or {}, **more)
        return self

    def zone(self, name: str) -> Self:
        """Put the node into a zone."""
        return self.label({"topology.kubernetes.io/zone": name})

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        """Add a taint: ``taint("dedicated", "gpu", "NoExecute")``."""
        _check_taint_key("taint", key)
        self._document["spec"].setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self

    def condition(self, kind: str, status: str = "True") -> Self:
        """Add a condition, e.g. ``condition("Ready", "False")``."""
        self._document["status"].setdefault("conditions", []).append({"type": kind, "status": status})
        return self

    def features(self, *names: str) -> Self:
        """Set the features that the node declares."""
        self._document["status"]["declaredFeatures"] = list(names)
        return self

    def region(self, name: str) -> Self:
        """Put the node into a region."""
        return self.label({"topology.kubernetes.io/region": name})

    def unschedulable(self) -> Self:
        """Cordon the node."""
        self._document["spec"]["unschedulable"] = True
        return self

    def image(self, name: str, size_bytes: int) -> Self:
        """Add an image to the node."""
        self._document["status"].setdefault("images", []).append({"names": [name], "sizeBytes": size_bytes})
        return self

    def obj(self) -> Node:
        """Return the typed node with defaults.

        Raises:
            InputError: a field has an invalid value.
        """
        node = self._typed()
        assert isinstance(node, Node)
        return node


def _check_taint_key(method: str, key: str) -> None:
    """Raise InputError if the key of a taint is a whole taint, as kubectl writes it: ``dedicated=gpu:NoSchedule``."""
    head, _, effect = key.partition(":")
    name, _, value = head.partition("=")
    if name != key:
        hint = ", ".join(f'"{part}"' for part in (name, value, *([effect] if effect else ())))
        wanted = "the key, the value and the effect"
        raise InputError(method, wanted=wanted, got=f"one text, {key!r}", hint=f"{method}({hint})")


def _selector(labels: Selector) -> dict[str, Any]:
    """Return a label selector as a document. Several values of a key are alternatives."""
    exact = {key: value for key, value in labels.items() if isinstance(value, str)}
    several = [
        {"key": key, "operator": "In", "values": value} for key, value in labels.items() if not isinstance(value, str)
    ]
    return {"matchLabels": exact} | ({"matchExpressions": several} if several else {})


def make_pod(name: str, namespace: str = "default") -> PodBuilder:
    """Return a builder of a pod: ``make_pod("web").req(cpu="500m").label(app="web").obj()``."""
    return PodBuilder(name, namespace)


def make_node(name: str) -> NodeBuilder:
    """Return a builder of a node: ``make_node("n1").capacity(cpu="8", memory="32Gi").zone("a").obj()``."""
    return NodeBuilder(name)
