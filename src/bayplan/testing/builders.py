"""Builders of typed objects for tests and notebooks: ``make_pod("web").req(cpu="2").label(app="web").obj()``.

A builder collects an ordinary manifest, and `obj` reads it as the loader would: decoded, defaulted, ready to be scheduled.
"""

from __future__ import annotations

from typing import Any, Self

from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod


class _Builder:
    """A manifest in the making."""

    def __init__(self, kind: str, name: str, namespace: str = "") -> None:
        metadata: dict[str, Any] = {"name": name, "labels": {}, "annotations": {}}
        if namespace:
            metadata["namespace"] = namespace
        self._document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": metadata,
            "spec": {},
            "status": {},
        }

    def label(self, labels: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add labels: those of a mapping, and those given by keyword."""
        self._document["metadata"]["labels"].update(labels or {}, **more)
        return self

    def annotation(self, annotations: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add annotations."""
        self._document["metadata"]["annotations"].update(annotations or {}, **more)
        return self

    def uid(self, uid: str) -> Self:
        """Set the uid."""
        self._document["metadata"]["uid"] = uid
        return self

    def document(self) -> dict[str, Any]:
        """Return the manifest."""
        return self._document


class PodBuilder(_Builder):
    """Builds a pod with one container, unless more are added."""

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__("Pod", name, namespace)
        self._document["metadata"]["uid"] = f"{namespace}-{name}"
        self._document["spec"]["containers"] = [{"name": "c", "image": "registry.example/app:v1"}]

    @property
    def _container(self) -> dict[str, Any]:
        container: dict[str, Any] = self._document["spec"]["containers"][-1]
        return container

    def req(self, amounts: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add requests of the last container; ``req({"example.com/gpu": "1"}, cpu="2")``."""
        requests = self._container.setdefault("resources", {}).setdefault("requests", {})
        requests.update(amounts or {}, **more)
        return self

    def limit(self, amounts: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add limits of the last container."""
        limits = self._container.setdefault("resources", {}).setdefault("limits", {})
        limits.update(amounts or {}, **more)
        return self

    def container(self, name: str, image: str = "registry.example/app:v1") -> Self:
        """Add a container; what follows is about it."""
        self._document["spec"]["containers"].append({"name": name, "image": image})
        return self

    def image(self, image: str) -> Self:
        """Set the image of the last container."""
        self._container["image"] = image
        return self

    def host_port(self, port: int, *, protocol: str = "TCP", host_ip: str = "") -> Self:
        """Let the last container take a port of the node."""
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

    def priority(self, priority: int) -> Self:
        """Set the priority."""
        self._document["spec"]["priority"] = priority
        return self

    def scheduler(self, name: str) -> Self:
        """Set the scheduler name."""
        self._document["spec"]["schedulerName"] = name
        return self

    def node_selector(self, labels: dict[str, str] | None = None, /, **more: str) -> Self:
        """Add node labels that are required."""
        self._document["spec"].setdefault("nodeSelector", {}).update(labels or {}, **more)
        return self

    def toleration(self, key: str = "", value: str = "", effect: str = "", *, operator: str = "") -> Self:
        """Add a toleration; without a value it tolerates every one."""
        entry = {"key": key, "operator": operator or ("Equal" if value else "Exists"), "value": value, "effect": effect}
        self._document["spec"].setdefault("tolerations", []).append(entry)
        return self

    def gate(self, name: str) -> Self:
        """Add a scheduling gate."""
        self._document["spec"].setdefault("schedulingGates", []).append({"name": name})
        return self

    def spec(self, **fields: Any) -> Self:
        """Set fields of the spec as a manifest writes them: ``spec(affinity={...}, hostNetwork=True)``."""
        self._document["spec"].update(fields)
        return self

    def obj(self) -> Pod:
        """Return the typed pod, defaulted."""
        pod = default_object(decode(self._document))
        assert isinstance(pod, Pod)
        return pod


class NodeBuilder(_Builder):
    """Builds a node that is labelled with its own name, as every kubelet does."""

    def __init__(self, name: str) -> None:
        super().__init__("Node", name)
        self._document["metadata"]["labels"]["kubernetes.io/hostname"] = name
        self._document["status"]["allocatable"] = {"pods": "110"}

    def capacity(self, amounts: dict[str, str] | None = None, /, **more: str) -> Self:
        """Set what the node offers; ``capacity({"example.com/gpu": "4"}, cpu="8", memory="16Gi")``."""
        self._document["status"]["allocatable"].update(amounts or {}, **more)
        return self

    def zone(self, name: str) -> Self:
        """Put the node into a zone."""
        return self.label({"topology.kubernetes.io/zone": name})

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        """Add a taint."""
        self._document["spec"].setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self

    def unschedulable(self) -> Self:
        """Cordon the node."""
        self._document["spec"]["unschedulable"] = True
        return self

    def image(self, name: str, size_bytes: int) -> Self:
        """Let the node hold an image."""
        self._document["status"].setdefault("images", []).append({"names": [name], "sizeBytes": size_bytes})
        return self

    def obj(self) -> Node:
        """Return the typed node, defaulted."""
        node = default_object(decode(self._document))
        assert isinstance(node, Node)
        return node


def make_pod(name: str, namespace: str = "default") -> PodBuilder:
    """Start a pod."""
    return PodBuilder(name, namespace)


def make_node(name: str) -> NodeBuilder:
    """Start a node."""
    return NodeBuilder(name)
