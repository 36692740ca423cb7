"""The nodes and the four kinds of pods of oracle/current/realcluster/kinds, with which both schedulers are measured."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode_json
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

KINDS = ("basic", "spread", "antiaffinity", "prefaffinity")
TITLES: Mapping[str, str] = {
    "basic": "plain",
    "spread": "hard zone spreading",
    "antiaffinity": "required anti-affinity",
    "prefaffinity": "preferred affinity",
}
ANTI_AFFINITY_GROUPS = 10

Json = Mapping[str, object]


def node_document(number: int) -> Json:
    """Return a node with 32 CPU, 256Gi and 110 pods, in one of three zones."""
    name = f"node-{number:05}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "topology.kubernetes.io/region": "r",
    }
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod_document(kind: str, number: int) -> Json:
    """Return a pod with 100m and 200Mi. Pods with anti-affinity are in ten groups, all others in one."""
    group = f"g{number % ANTI_AFFINITY_GROUPS}" if kind == "antiaffinity" else "g0"
    selector = {"labelSelector": {"matchLabels": {"group": group}}}
    requests = {"cpu": "100m", "memory": "200Mi"}
    return {
        "metadata": {"name": f"{kind}-{number:05}", "namespace": "default", "labels": {"group": group}},
        "spec": {
            "containers": [{"name": "c", "image": "pause:3.10", "resources": {"requests": requests}}],
            **_constraints(kind, selector),
        },
    }


def _constraints(kind: str, selector: Json) -> Json:
    if kind == "basic":
        return {}
    if kind == "spread":
        constraint = {"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        return {"topologySpreadConstraints": [{**constraint, **selector}]}
    term = {"topologyKey": "kubernetes.io/hostname", **selector}
    if kind == "antiaffinity":
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    if kind == "prefaffinity":
        preferred = [{"weight": 1, "podAffinityTerm": term}]
        return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}
    raise ValueError(f"unknown kind of pods {kind!r}; expected one of {', '.join(KINDS)}")


def node_of(document: Json) -> Node:
    """Return the typed node of a document, with defaults."""
    return default_object(decode_json(msgspec.json.encode({"apiVersion": "v1", "kind": "Node", **document}), Node))


def pod_of(document: Json) -> Pod:
    """Return the typed pod of a document, with defaults."""
    return default_object(decode_json(msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", **document}), Pod))


def real_nodes(count: int) -> list[Node]:
    """Return nodes, each parsed from separate JSON."""
    return [node_of(node_document(number)) for number in range(count)]


def real_pods(kind: str, count: int) -> list[Pod]:
    """Return pods of a kind, each parsed from separate JSON."""
    return [pod_of(pod_document(kind, number)) for number in range(count)]
