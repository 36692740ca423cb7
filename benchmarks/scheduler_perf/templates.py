"""The objects of scheduler_perf's workloads: nodes, pods of every template, claims and volumes, each parsed from JSON.

Source: kubernetes/kubernetes, test/integration/scheduler_perf. Requests, labels, terms and weights are those of its
templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode_json
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from bayplan.objects.service import Service
from bayplan.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim

T = TypeVar("T", bound=KubernetesObject)
Json = Mapping[str, object]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NAMED_NODE = "scheduler-perf-node"
EBS = "ebs.csi.aws.com"
DRIVER = "test-driver.cdi.k8s.io"


def parsed(kind: type[T], document: Json) -> T:
    """Return the typed object of a document, with defaults."""
    return default_object(decode_json(msgspec.json.encode(document), kind))


# Nodes.


def make_node(
    name: str,
    *,
    zone: str = "",
    pods: str = "110",
    extended: Mapping[str, str] | None = None,
    taint: str = "",
    unschedulable: bool = False,
) -> Node:
    """Return a node of 4 CPU and 32Gi."""
    amounts = {"cpu": "4", "memory": "32Gi", "pods": pods, **(extended or {})}
    labels = {HOSTNAME: name, **({ZONE: zone} if zone else {})}
    spec: dict[str, object] = {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {}
    if unschedulable:
        spec["unschedulable"] = True
    return parsed(
        Node,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"capacity": amounts, "allocatable": amounts},
        },
    )


def make_csi_node(name: str, *, migrated: bool, limit: int) -> CSINode:
    """Return the CSINode of a node that can attach `limit` EBS volumes."""
    notes = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"} if migrated else {}
    driver = {"name": EBS, "nodeID": name, "allocatable": {"count": limit}}
    return parsed(
        CSINode,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name, "annotations": notes},
            "spec": {"drivers": [driver]},
        },
    )


# Pods.


def container(cpu: str = "", memory: str = "", *, host_port: int = 0, extended: str = "") -> Json:
    """Return the only container of a pod; its requests equal its limits."""
    amounts = {key: value for key, value in (("cpu", cpu), ("memory", memory), (extended, "1")) if key and value}
    port = {"containerPort": 80, **({"hostPort": host_port} if host_port else {})}
    return {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.1",
        "ports": [port],
        "resources": {"limits": amounts, "requests": amounts} if amounts else {},
    }


ORDINARY = container("100m", "500Mi")
SCHED_NAMESPACES = ("sched-1", "sched-0")


def term(color: str, key: str, *, by_selector: bool) -> Json:
    """Return an affinity term for pods with a colour, in namespaces selected by name or by label."""
    where: Json = {"namespaceSelector": {"matchLabels": {"team": "devops"}}}
    if not by_selector:
        where = {"namespaces": list(SCHED_NAMESPACES)}
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key, **where}


def affine(kind: str, color: str, key: str, *, required: bool, by_selector: bool = False) -> Json:
    """Return labels and spec of a pod with one affinity term; `kind` is ``podAffinity`` or ``podAntiAffinity``."""
    one = term(color, key, by_selector=by_selector)
    terms: Json = {"requiredDuringSchedulingIgnoredDuringExecution": [one]}
    if not required:
        terms = {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": one, "weight": 1}]}
    return {"labels": {"color": color}, "spec": {"affinity": {kind: terms}, "containers": [ORDINARY]}}


def spread(
    selected: Json, *constraints: tuple[int, str, str], policies: Json | None = None, container: Json = ORDINARY
) -> Json:
    """Return labels and spec of a pod with constraints (skew, key, action) over the pods with its own labels."""
    made = [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": action,
            "labelSelector": {"matchLabels": selected},
            **(policies or {}),
        }
        for skew, key, action in constraints
    ]
    return {"labels": selected, "spec": {"topologySpreadConstraints": made, "containers": [container]}}


def required_nodes(requirement: Json, *, fields: bool = False, container: Json = ORDINARY) -> Json:
    """Return the spec of a pod with required node affinity."""
    selector = {"nodeSelectorTerms": [{"matchFields" if fields else "matchExpressions": [requirement]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    return {"spec": {"affinity": affinity, "containers": [container]}}


def at_most_on_a_node(count: int) -> Json:
    """Return a constraint of at most `count` blue pods per node.

    There are fewer domains than minDomains, so the global minimum is 0.
    """
    return {
        "maxSkew": count,
        "minDomains": 10000,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"topology": "blue"}},
    }


UNSCHED = {"type": "unsched"}
"""The label of the pods that wait until blockers are deleted."""

PODDELETE: Mapping[str, Json] = {
    "poddelete-pod-blocker-topology-ports-resources": {
        "labels": {"topology": "blue", "type": "blocker"},
        "spec": {
            "topologySpreadConstraints": [at_most_on_a_node(10)],
            "containers": [container("350m", "3Gi")],
            "terminationGracePeriodSeconds": 0,
        },
    },
    "poddelete-pod-blocker-affinity": {
        "labels": {"color": "green", "type": "blocker"},
        "spec": {"containers": [container()], "terminationGracePeriodSeconds": 0},
    },
    "poddelete-pod-podtopologyspread": {
        "labels": {"topology": "blue", **UNSCHED},
        "spec": {"topologySpreadConstraints": [at_most_on_a_node(11)], "containers": [container()]},
    },
    "poddelete-pod-volumerestrictions": {"labels": UNSCHED, "spec": {"containers": [container()]}},
    "poddelete-pod-nodeports": {"labels": UNSCHED, "spec": {"containers": [container()]}},
    "poddelete-pod-noderesources": {"labels": UNSCHED, "spec": {"containers": [container("200m", "1Gi")]}},
    "poddelete-pod-nodevolumelimits": {"labels": UNSCHED, "spec": {"containers": [container()]}},
    "poddelete-pod-interpodaffinity": {
        "labels": {"color": "green", **UNSCHED},
        "spec": {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "labelSelector": {"matchLabels": {"color": "green"}},
                            "topologyKey": HOSTNAME,
                            "namespaces": ["blockeraffinity"],
                        }
                    ]
                }
            },
            "containers": [container()],
        },
    },
}
"""The templates of EventHandlingPodDelete; the batch adds ports and volumes."""

TEMPLATES: Mapping[str, Json] = {
    **PODDELETE,
    "pod-default": {"spec": {"containers": [ORDINARY]}},
    "light-pod": {"spec": {"containers": [container()], "terminationGracePeriodSeconds": 0}},
    "pod-with-label": {"labels": {"app": "scheduler-perf"}, "spec": {"containers": [container()]}},
    "pod-with-finalizer": {"spec": {"containers": [container()]}},
    "gated-pod": {"spec": {"schedulingGates": [{"name": "test.k8s.io/hold"}], "containers": [container()]}},
    "gated-pod-with-pod-affinity": {
        "labels": {"app": "scheduler-perf"},
        "spec": {
            "schedulingGates": [{"name": "scheduling-gate-1"}],
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchLabels": {"app": "scheduler-perf"}}, "topologyKey": HOSTNAME}
                    ]
                }
            },
            "containers": [container()],
        },
    },
    "daemonset-pod": required_nodes(
        {"key": "metadata.name", "operator": "In", "values": [NAMED_NODE]}, fields=True, container=container()
    ),
    "pod-low-priority": {
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container("900m", "500Mi")]},
    },
    "pod-high-priority": {"spec": {"priority": 10, "containers": [container("3000m", "500Mi")]}},
    "pod-high-priority-large-cpu": {"spec": {"priority": 10, "containers": [container("9", "500Mi")]}},
    "pod-hostport-80": {"spec": {"containers": [container("100m", "100Mi", host_port=80)]}},
    "pod-with-pod-anti-affinity": affine("podAntiAffinity", "green", HOSTNAME, required=True),
    "pod-with-pod-anti-affinity-label": {"labels": {"color": "green"}, "spec": {"containers": [ORDINARY]}},
    "pod-with-pod-affinity": affine("podAffinity", "blue", ZONE, required=True),
    "pod-with-preferred-pod-affinity": affine("podAffinity", "red", HOSTNAME, required=False),
    "pod-with-preferred-pod-anti-affinity": affine("podAntiAffinity", "yellow", HOSTNAME, required=False),
    "pod-anti-affinity-ns-selector": affine("podAntiAffinity", "green", HOSTNAME, required=True, by_selector=True),
    "pod-affinity-ns-selector": affine("podAffinity", "blue", ZONE, required=True, by_selector=True),
    "pod-preferred-anti-affinity-ns-selector": affine(
        "podAntiAffinity", "green", HOSTNAME, required=False, by_selector=True
    ),
    "pod-preferred-affinity-ns-selector": affine("podAffinity", "red", HOSTNAME, required=False, by_selector=True),
    "pod-with-node-affinity": required_nodes({"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}),
    "pod-with-topology-spreading": spread({"color": "blue"}, (5, ZONE, "DoNotSchedule")),
    "pod-with-preferred-topology-spreading": spread({"color": "blue"}, (5, ZONE, "ScheduleAnyway")),
    "pod-with-two-preferred-constraints": spread(
        {"color": "blue"}, (3, HOSTNAME, "ScheduleAnyway"), (5, ZONE, "ScheduleAnyway")
    ),
    "pod-with-node-inclusion-policy": spread(
        {"foo": "bar"},
        (1, HOSTNAME, "DoNotSchedule"),
        policies={"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Honor"},
    ),
    "blocker": {"labels": {"type": "blocker"}, "spec": {"containers": [container("400m", "500Mi")]}},
    "waits-for-room": {"spec": {"containers": [container("500m", "500Mi")]}},
    "waits-for-distance": {
        "spec": {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "labelSelector": {"matchLabels": {"type": "blocker"}},
                            "namespaces": ["blockers"],
                            "topologyKey": HOSTNAME,
                        }
                    ]
                }
            },
            "containers": [ORDINARY],
        }
    },
    "pod-with-secret-volume": {
        "spec": {
            "containers": [ORDINARY],
            "volumes": [{"name": "secret", "secret": {"secretName": "secret"}}],
        },
    },
}
"""Labels and spec of pods, by template."""

OURS = frozenset(("pod-with-two-preferred-constraints", "blocker", "waits-for-room", "waits-for-distance"))
"""The templates that upstream does not have."""


def make_pod(
    name: str,
    namespace: str,
    template: Json,
    *,
    claim: str = "",
    device_claim: str = "",
    extended: str = "",
    host_port: int = 0,
    node_name: str = "",
) -> Pod:
    """Return a pod of a template.

    `claim` names its volume's claim, `device_claim` the claim of its devices, `extended` the resource that it requests.
    """
    spec: dict[str, object] = dict(template["spec"]) if isinstance(template["spec"], Mapping) else {}
    if claim:
        spec["volumes"] = [{"name": "vol", "persistentVolumeClaim": {"claimName": claim}}]
    if device_claim:
        spec["resourceClaims"] = [{"name": "resource", "resourceClaimName": device_claim}]
        spec["containers"] = [{**ORDINARY, "resources": {"claims": [{"name": "resource"}]}}]
    if extended:
        spec["containers"] = [container(extended=extended)]
    if host_port and isinstance(spec["containers"], Sequence):
        port = {"containerPort": host_port, "hostPort": host_port}
        spec["containers"] = [{**one, "ports": [port]} for one in spec["containers"]]
    if node_name:
        spec["nodeName"] = node_name
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "labels": template.get("labels", {})},
        "spec": spec,
    }
    return parsed(Pod, document)


# Objects that pods refer to.


def make_namespace(name: str, *, labelled: bool) -> Namespace:
    """Return a namespace, with the team label that selectors require or without labels."""
    labels = {"team": "devops"} if labelled else {}
    return parsed(Namespace, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def make_service(namespace: str) -> Service:
    """Return a service that selects the labelled pods."""
    spec = {"selector": {"app": "scheduler-perf"}, "ports": [{"protocol": "TCP", "port": 80}]}
    metadata = {"name": "service", "namespace": namespace}
    return parsed(Service, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def make_volume(name: str, namespace: str, *, csi: bool, once: bool = False) -> Sequence[KubernetesObject]:
    """Return a bound claim and its volume; `once`: only one pod at a time may use the claim."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"pv.kubernetes.io/bind-completed": "true"},
        },
        "spec": {
            "accessModes": ["ReadWriteOncePod" if once else "ReadOnlyMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": f"pv-{name}",
        },
        "status": {"phase": "Bound"},
    }
    source: Json = {"csi": {"driver": EBS, "volumeHandle": name}}
    if not csi:
        source = {"awsElasticBlockStore": {"volumeID": name}}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{name}"},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
            **source,
        },
        "status": {"phase": "Bound"},
    }
    return (parsed(PersistentVolumeClaim, claim), parsed(PersistentVolume, volume))


def make_device_class(name: str = "test-class", extended: str = "") -> DeviceClass:
    """Return a class of the test driver's devices, with an extended resource if one is given."""
    resource = {"extendedResourceName": extended} if extended else {}
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return parsed(
        DeviceClass,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [selector], **resource},
        },
    )


def make_slice(node_name: str, devices: int) -> ResourceSlice:
    """Return the devices of a node."""
    return parsed(
        ResourceSlice,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node_name}-slice"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node_name,
                "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"dev-{number}"} for number in range(devices)],
            },
        },
    )


def make_device_claim(name: str, namespace: str) -> ResourceClaim:
    """Return a claim for one device."""
    request = {"name": "req-0", "exactly": {"deviceClassName": "test-class"}}
    return parsed(
        ResourceClaim,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
            "spec": {"devices": {"requests": [request]}},
        },
    )
