"""Defaults that depend on something: on a tag, on another field, on what is left out. See `bayplan.apiserver.kinds.defaults`."""

from __future__ import annotations

from typing import cast

from bayplan.base.plain_data import Document

_SOURCELESS = "emptyDir"
_INT32_MAX = 2**31 - 1


def _part(document: Document, name: str) -> Document:
    found = document.get(name)
    return cast("Document", found) if isinstance(found, dict) else {}


def _parts(document: Document, name: str) -> list[Document]:
    found = document.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def default_pod(pod: Document) -> None:
    """Fill requests from limits, host ports of a pod in the node's network, and service links."""
    spec = _part(pod, "spec")
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    for container in (*_parts(spec, "containers"), *_parts(spec, "initContainers")):
        resources = _part(container, "resources")
        limits = _part(resources, "limits")
        if limits:
            resources["requests"] = {**_part(resources, "requests")} | {
                name: amount for name, amount in limits.items() if name not in _part(resources, "requests")
            }
        if spec.get("hostNetwork"):
            for port in _parts(container, "ports"):
                port.setdefault("hostPort", port.get("containerPort"))


def default_image_pull_policy(container: Document) -> None:
    """Pull always where the tag is ``latest`` or absent."""
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(str(container.get("image") or ""))


def default_image_volume(source: Document) -> None:
    """Pull an image that is a volume as one that is a container."""
    if not source.get("pullPolicy"):
        source["pullPolicy"] = _pull_policy(str(source.get("reference") or ""))


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or (not tag and not digest) else "IfNotPresent"


def default_volume(volume: Document) -> None:
    """Make a volume without a source an empty directory."""
    if set(volume) <= {"name"}:
        volume[_SOURCELESS] = {}


def default_namespace(namespace: Document) -> None:
    """Label a namespace with its name."""
    metadata = _part(namespace, "metadata")
    if metadata.get("name"):
        labels = dict(_part(metadata, "labels"))
        labels["kubernetes.io/metadata.name"] = metadata["name"]
        metadata["labels"] = labels


def default_node_status(status: Document) -> None:
    """Let all capacity be allocatable."""
    if not status.get("allocatable") and status.get("capacity"):
        status["allocatable"] = dict(_part(status, "capacity"))


def default_service(spec: Document) -> None:
    """Fill in type, affinity, traffic policies and target ports."""
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        config = spec["sessionAffinityConfig"] = dict(_part(spec, "sessionAffinityConfig"))
        client = config["clientIP"] = dict(_part(config, "clientIP"))
        client.setdefault("timeoutSeconds", 10800)
    kind = spec.setdefault("type", "ClusterIP")
    for port in _parts(spec, "ports"):
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind != "ExternalName" and not spec.get("internalTrafficPolicy"):
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True


def default_replication_controller(controller: Document) -> None:
    """Take selector and labels from the template."""
    metadata, spec = _part(controller, "metadata"), _part(controller, "spec")
    labels = _part(_part(_part(spec, "template"), "metadata"), "labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)


def default_limit_range_item(item: Document) -> None:
    """Limits of containers default to the maximum, requests to the limit, then to the minimum."""
    if item.get("type") != "Container":
        return
    default = {**_part(item, "max"), **_part(item, "default")}
    request = {**_part(item, "min"), **default, **_part(item, "defaultRequest")}
    if default:
        item["default"] = default
    if request:
        item["defaultRequest"] = request


def default_deployment(deployment: Document) -> None:
    """Roll by quarters."""
    spec = _part(deployment, "spec")
    strategy = spec["strategy"] = dict(_part(spec, "strategy"))
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"] = dict(_part(strategy, "rollingUpdate"))
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def default_stateful_set(spec: Document) -> None:
    """Roll all, and retain claims."""
    strategy = spec["updateStrategy"] = dict(_part(spec, "updateStrategy"))
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and isinstance(strategy.get("rollingUpdate"), dict):
        _part(strategy, "rollingUpdate").setdefault("partition", 0)
    policy = spec["persistentVolumeClaimRetentionPolicy"] = dict(_part(spec, "persistentVolumeClaimRetentionPolicy"))
    policy.setdefault("whenDeleted", "Retain")
    policy.setdefault("whenScaled", "Retain")


def default_daemon_set(spec: Document) -> None:
    """Roll one node at a time."""
    strategy = spec["updateStrategy"] = dict(_part(spec, "updateStrategy"))
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"] = dict(_part(strategy, "rollingUpdate"))
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def default_job(job: Document) -> None:
    """One pod, once, unless the job says otherwise."""
    metadata, spec = _part(job, "metadata"), _part(job, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = _INT32_MAX if spec.get("backoffLimitPerIndex") is not None else 6
    if not metadata.get("labels"):
        labels = _part(_part(_part(spec, "template"), "metadata"), "labels")
        if labels:
            metadata["labels"] = dict(labels)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    if not spec.get("podReplacementPolicy"):
        spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"


def default_network_policy(spec: Document) -> None:
    """A policy concerns ingress, and egress where it has rules for that."""
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def default_subject(subject: Document) -> None:
    """Users and groups are of the RBAC group, service accounts of the core group."""
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = "rbac.authorization.k8s.io"


def default_device_count(request: Document) -> None:
    """Ask for one device."""
    if request.get("allocationMode") == "ExactCount" and not request.get("count"):
        request["count"] = 1


def default_autoscaler(spec: Document) -> None:
    """Scale by processor time, 80 % of what is requested."""
    if not spec.get("metrics"):
        target: Document = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
