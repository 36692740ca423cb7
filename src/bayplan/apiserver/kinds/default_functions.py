"""Defaults that depend on other values, such as an image tag or another field. See `bayplan.apiserver.kinds.defaults`.

Each function sets defaults in place, in the object or part of an object that it receives.
"""

from __future__ import annotations

import re
from typing import cast

from bayplan.apiserver.schema.emptied import Emptied
from bayplan.apiserver.validation.pod_resources import pod_amounts
from bayplan.base.plain_data import Document

_MAX_NAME_LENGTH = 255
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_DEFAULT_DOMAIN = "docker.io/"
_DEFAULT_REPOSITORY = "library/"


def image_tag(image: str) -> str:
    """Return the tag of an image: ``latest`` if it has neither tag nor digest, "" if the name is invalid."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    domain, slash, rest = image.partition("/")
    if not slash or not (set(domain) & set(".:") or domain == "localhost" or domain.lower() != domain):
        rest = image if slash else _DEFAULT_REPOSITORY + image
        domain = _DEFAULT_DOMAIN.rstrip("/")
    path = rest.partition("@")[0]
    if ":" in path:
        path = path[: path.index(":")]
    if path.lower() != path:
        return ""
    found = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if found is None or len(found["name"]) - len(domain) - 1 > _MAX_NAME_LENGTH:
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")


_SOURCELESS = "emptyDir"
_INT32_MAX = 2**31 - 1
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _part(document: Document, name: str) -> Document:
    found = document.get(name)
    return cast("Document", found) if isinstance(found, dict) else {}


def _parts(document: Document, name: str) -> list[Document]:
    found = document.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def default_pod(pod: Document) -> None:
    """Set requests from limits, host ports of pods in the host network, service links, and pod-level requests."""
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
    default_pod_resources(spec)


_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def default_pod_resources(spec: Document) -> None:
    """Set missing pod-level resources of a pod that has some.

    Limits of huge pages without a request are the sum of the containers' limits. If there are limits, missing requests are
    the sum of the containers' requests, else the limit.
    """
    resources = _part(spec, "resources")
    requests, limits = dict(_part(resources, "requests")), dict(_part(resources, "limits"))
    if not requests and not limits:
        return
    containers = pod_amounts({"spec": {name: spec.get(name) for name in ("containers", "initContainers")}})
    for name, amount in containers.total("limits", overhead=False).items():
        if name.startswith(_HUGE_PAGES) and name not in requests:
            limits.setdefault(name, str(amount))
    if not limits:
        return
    together = containers.total("requests", overhead=False)
    for name in _POD_LEVEL:
        if name in together:
            requests.setdefault(name, str(together[name]))
    for name, limit in limits.items():
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES):
            requests.setdefault(name, limit)
    resources["limits"] = limits
    if requests:
        resources["requests"] = requests


def default_pod_spec(spec: Document) -> None:
    """Set `serviceAccountName` and its deprecated alias `serviceAccount` to the same value."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def default_image_pull_policy(container: Document) -> None:
    """Set the pull policy: Always if the image has the tag ``latest``, or neither tag nor digest; else IfNotPresent."""
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(str(container.get("image") or ""))


def default_image_volume(source: Document) -> None:
    """Set the pull policy of an image volume by the same rule as for containers."""
    if not source.get("pullPolicy"):
        source["pullPolicy"] = _pull_policy(str(source.get("reference") or ""))


def _pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def default_volume(volume: Document) -> None:
    """Make a volume without a source an emptyDir."""
    if set(volume) <= {"name"}:
        volume[_SOURCELESS] = {}


def default_namespace(namespace: Document) -> None:
    """Set the label that contains the namespace's name."""
    metadata = _part(namespace, "metadata")
    if metadata.get("name"):
        labels = dict(_part(metadata, "labels"))
        labels["kubernetes.io/metadata.name"] = metadata["name"]
        metadata["labels"] = labels


def default_node_status(status: Document) -> None:
    """Set the allocatable resources to the capacity if they are missing."""
    if not status.get("allocatable") and status.get("capacity"):
        status["allocatable"] = dict(_part(status, "capacity"))


def default_node_spec(spec: Document) -> None:
    """Make `podCIDR` and the first of `podCIDRs` agree; if they differ, `podCIDR` wins."""
    first, listed = spec.get("podCIDR"), spec.get("podCIDRs")
    networks = listed if isinstance(listed, list) else []
    if first and (not networks or networks[0] != first):
        spec["podCIDRs"] = [first]
    elif networks and networks[0]:
        spec["podCIDR"] = networks[0]


def default_service(spec: Document) -> None:
    """Set type, session affinity, traffic policies and target ports of a Service's spec."""
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec["sessionAffinityConfig"] = dict(_part(spec, "sessionAffinityConfig"))
        client = config["clientIP"] = dict(_part(config, "clientIP"))
        client.setdefault("timeoutSeconds", 10800)
    kind = spec.setdefault("type", "ClusterIP")
    for port in _parts(spec, "ports"):
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("ClusterIP", "NodePort", "LoadBalancer") and spec.get("internalTrafficPolicy") is None:
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True


def default_service_object(service: Document) -> None:
    """Set the IP mode VIP for a load balancer's addresses."""
    if _part(service, "spec").get("type") == "LoadBalancer":
        for ingress in _parts(_part(_part(service, "status"), "loadBalancer"), "ingress"):
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"


def default_replication_controller(controller: Document) -> None:
    """Set missing selector and labels to the labels of the template."""
    metadata, spec = _part(controller, "metadata"), _part(controller, "spec")
    labels = _part(_part(_part(spec, "template"), "metadata"), "labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)


def default_limit_range_item(item: Document) -> None:
    """Set default limits of containers to the maximum; default requests to the default limit, else the minimum."""
    if item.get("type") != "Container":
        return
    default = {**_part(item, "max"), **_part(item, "default")}
    request = {**_part(item, "min"), **default, **_part(item, "defaultRequest")}
    if default:
        item["default"] = default
    if request:
        item["defaultRequest"] = request


def default_deployment(deployment: Document) -> None:
    """Set a rolling update with 25 % surge and 25 % unavailable pods."""
    spec = _part(deployment, "spec")
    strategy = spec["strategy"] = dict(_part(spec, "strategy"))
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"] = dict(_part(strategy, "rollingUpdate"))
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def default_stateful_set(spec: Document) -> None:
    """Set a rolling update of all pods, the policy to retain claims, and the kind of claim templates."""
    default_claim_template(spec)
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
    """Set a rolling update of one node at a time."""
    strategy = spec["updateStrategy"] = dict(_part(spec, "updateStrategy"))
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"] = dict(_part(strategy, "rollingUpdate"))
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    elif isinstance(strategy.get("rollingUpdate"), dict):
        # Upstream's internal type has numbers instead of pointers, so absent fields become zero.
        strategy["rollingUpdate"] = {"maxUnavailable": 0, "maxSurge": 0} | _part(strategy, "rollingUpdate")


def default_daemon_set_object(daemon_set: Document) -> None:
    """Set the annotation with the template generation, for older clients."""
    metadata = _part(daemon_set, "metadata")
    metadata["annotations"] = {TEMPLATE_GENERATION: "0"} | _part(metadata, "annotations")


def default_claim_template(spec: Document) -> None:
    """Set kind and apiVersion of claim templates."""
    for claim in _parts(spec, "volumeClaimTemplates"):
        if not claim.get("kind"):
            claim |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}


def default_definition_spec(spec: Document) -> None:
    """Set the singular name and the kind of lists from the kind, and drop a webhook without values."""
    conversion = _part(spec, "conversion")
    webhook = conversion.get("webhook")
    if (
        isinstance(webhook, dict)
        and webhook.get("clientConfig") is None
        and not webhook.get("conversionReviewVersions")
    ):
        spec["conversion"] = {name: value for name, value in conversion.items() if name != "webhook"}
    names = _part(spec, "names")
    kind = str(names.get("kind") or "")
    names["singular"] = names.get("singular") or kind.lower()
    if kind and not names.get("listKind"):
        names["listKind"] = f"{kind}List"
    if not names["singular"]:
        del names["singular"]


def default_definition(definition: Document) -> None:
    """Set the stored versions of a definition that has none: its storage version."""
    status = _part(definition, "status")
    if not status.get("storedVersions"):
        definition["status"] = {**status, "storedVersions": stored_versions(definition)}


def stored_versions(definition: Document) -> list[str]:
    """Return a list with the name of the first version that is marked as the storage version, or an empty list."""
    versions = _parts(_part(definition, "spec"), "versions")
    return [str(each.get("name") or "") for each in versions if each.get("storage")][:1]


def default_job(job: Document) -> None:
    """Set completions, parallelism, backoff limit, labels and policies of a Job."""
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
            # Share the map, as upstream does: labels that are generated for the pods then become the Job's, too.
            metadata["labels"] = labels
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    if not spec.get("podReplacementPolicy"):
        spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"


def default_network_policy(spec: Document) -> None:
    """Set the policy types: Ingress, and also Egress if the policy has egress rules."""
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def default_subject(subject: Document) -> None:
    """Set the API group of a user or group; the API group of a service account stays empty."""
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = "rbac.authorization.k8s.io"


def default_device_count(request: Document) -> None:
    """Set the number of devices of an exact request to 1."""
    if request.get("allocationMode") == "ExactCount" and not request.get("count"):
        request["count"] = 1


def default_autoscaler(spec: Document) -> None:
    """Set the metric CPU utilization with a target of 80 %, and missing rules of the behavior."""
    if not spec.get("metrics"):
        target: Document = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        for name, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            sent = _part(behavior, name)
            # Do not replace policies that were sent as an empty list: validation rejects them.
            empties = sent.empties if isinstance(sent, Emptied) else {}
            filled = {key: item for key, item in rules.items() if key not in empties}
            behavior[name] = Emptied(filled | sent, empties)


_SCALE_UP: Document = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Document = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}
