"""Random pods: running, nominated, and pods to schedule."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.claims import pod_claims
from fuzz.draws import CPU, EXTENDED, IMAGES, MEMORY, NAMESPACES, PRIORITIES, Draws
from fuzz.selectors import (
    NODE_LABELS,
    node_selector_term,
    pod_affinity_term,
    pod_labels,
    spread_constraint,
    tolerations,
)
from fuzz.storage import pod_volume

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OWNERS = (("apps/v1", "ReplicaSet", "rs"), ("apps/v1", "StatefulSet", "sts"), ("v1", "ReplicationController", "rc"))


def pod_to_schedule(draws: Draws, name: str) -> JsonObject:
    """Return a pod without a node."""
    pod = _pod(draws, name, rich=True)
    spec, metadata = pod["spec"], pod["metadata"]
    assert isinstance(spec, dict)
    assert isinstance(metadata, dict)
    if draws.has("crowded", 0.7):
        spec["priority"] = draws.one((10, 100, 1000))
        spec.pop("preemptionPolicy", None)
    if draws.has("nominated", 0.3):
        pod["status"] = {"nominatedNodeName": f"n{draws.randint(1, 4)}"}
    elif name == "p0" and draws.has("devices", 0.3):
        claims = spec.setdefault("resourceClaims", [])
        assert isinstance(claims, list)
        claims.append({"name": "made", "resourceClaimTemplateName": "template"})
        made: Json = draws.one(("claim-5", "claim-5", "claim-1", None))
        pod["status"] = {"resourceClaimStatuses": [{"name": "made", "resourceClaimName": made}]} if made else {}
    if draws.has("odd", 0.04):
        spec["schedulingGates"] = [{"name": "wait"}]
    if draws.has("odd", 0.12):
        spec["schedulerName"] = draws.one(("other", "default-scheduler"))
    if draws.has("odd", 0.05):
        spec["nodeName"] = f"n{draws.randint(1, 6)}"
    if draws.has("odd", 0.03):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


def running_pod(draws: Draws, name: str, node: str) -> JsonObject:
    """Return a pod on a node."""
    pod = _pod(draws, name, rich=draws.chance(0.5))
    spec, metadata = pod["spec"], pod["metadata"]
    assert isinstance(spec, dict)
    assert isinstance(metadata, dict)
    spec["nodeName"] = node
    if draws.has("crowded"):
        _fill(draws, spec)
    status: JsonObject = {"phase": "Running"}
    if draws.chance(0.7):
        status["startTime"] = f"2026-01-0{draws.randint(1, 3)}T00:0{draws.randint(0, 3)}:00Z"
    if draws.chance(0.05):
        status["phase"] = draws.one(("Succeeded", "Failed", "Pending"))
    if draws.chance(0.08):
        metadata["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        if draws.chance(0.5):
            reason = draws.one(("PreemptionByScheduler", "PreemptionByScheduler", "EvictionByEvictionAPI"))
            status["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
    if draws.has("requests", 0.2) and not spec.get("overhead"):
        status |= _resize(draws, spec)
    pod["status"] = status
    return pod


def _fill(draws: Draws, spec: JsonObject) -> None:
    """Let a running pod use much of its node, and give it a low priority."""
    containers = spec["containers"]
    assert isinstance(containers, list)
    first = containers[0]
    assert isinstance(first, dict)
    first["resources"] = {"requests": {"cpu": draws.one(("500m", "1", "1500m", "2", "3")), "memory": draws.one(MEMORY)}}
    spec["priority"] = draws.one((-5, 0, 0, 0, 5, 10))


def nominated_pod(draws: Draws, name: str, node: str) -> JsonObject:
    """Return a pod without a node that is nominated for one."""
    pod = _pod(draws, name, rich=draws.chance(0.5))
    pod["status"] = {"nominatedNodeName": node}
    return pod


def _pod(draws: Draws, name: str, *, rich: bool) -> JsonObject:
    metadata: JsonObject = {"name": name, "labels": pod_labels(draws)}
    if draws.has("namespaces", 0.5):
        metadata["namespace"] = draws.one(NAMESPACES)
    if draws.has("devices") or draws.has("volumes"):
        metadata["uid"] = f"uid-{name}"
    if draws.has("owners", 0.5):
        api_version, kind, owner = draws.one(OWNERS)
        reference: JsonObject = {"apiVersion": api_version, "kind": kind, "name": owner, "uid": f"uid-{owner}"}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    spec: JsonObject = {"containers": [_container(draws, f"c{number}") for number in range(draws.one((1, 1, 1, 2, 3)))]}
    if draws.has("requests"):
        _add_uncommon_requests(draws, spec)
    if draws.has("priority"):
        spec["priority"] = draws.one(PRIORITIES)
        if draws.chance(0.1):
            spec["preemptionPolicy"] = "Never"
    if rich:
        _add_rules(draws, spec)
    if draws.has("devices", 0.6 if rich else 0.2):
        spec |= pod_claims(draws)
    if draws.has("odd", 0.05):
        spec["hostNetwork"] = True
        if draws.chance(0.5):
            spec["hostUsers"] = False
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(draws: Draws, name: str) -> JsonObject:
    container: JsonObject = {"name": name, "image": draws.one((*IMAGES, "registry.example/a"))}
    resources: JsonObject = {}
    if draws.chance(0.75):
        resources["requests"] = _amounts(draws)
    if draws.has("requests", 0.3):
        resources["limits"] = _amounts(draws)
    if resources:
        container["resources"] = resources
    if draws.has("ports", 0.5):
        container["ports"] = [_port(draws) for _ in range(draws.randint(1, 2))]
    return container


def _amounts(draws: Draws) -> JsonObject:
    amounts: JsonObject = {}
    if draws.chance(0.8):
        amounts["cpu"] = draws.one(CPU)
    if draws.chance(0.7):
        amounts["memory"] = draws.one(MEMORY)
    if draws.has("requests", 0.2):
        amounts["ephemeral-storage"] = draws.one(("0", "500Mi", "2Gi"))
    if draws.has("extended", 0.4):
        amounts[draws.one(EXTENDED)] = str(draws.randint(0, 3))
    if draws.has("devices", 0.15):
        amounts[draws.one(("example.com/dra", "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"))] = "1"
    if draws.has("extended", 0.1):
        amounts["hugepages-2Mi"] = draws.one(("2Mi", "10Mi", "32Mi"))
    if draws.has("odd", 0.03):
        amounts["memory"] = draws.one(("8E", "1P", "1m", "9223372036854775807"))
    return amounts


def _port(draws: Draws) -> JsonObject:
    port: JsonObject = {"containerPort": draws.one((80, 443))}
    if draws.chance(0.85):
        port["hostPort"] = draws.one((80, 8080, 9090))
    if draws.chance(0.5):
        port["protocol"] = draws.one(("TCP", "UDP", "SCTP"))
    if draws.chance(0.4):
        port["hostIP"] = draws.one(("", "0.0.0.0", "10.0.0.1", "127.0.0.1", "::"))
    return port


def _add_uncommon_requests(draws: Draws, spec: JsonObject) -> None:
    if draws.chance(0.4):
        initial: list[Json] = []
        for number in range(draws.randint(1, 3)):
            container = _container(draws, f"i{number}")
            container.pop("ports", None)
            if draws.chance(0.5):
                container["restartPolicy"] = "Always"
            initial.append(container)
        spec["initContainers"] = initial
    if draws.chance(0.15):
        spec["overhead"] = {"cpu": draws.one(("10m", "250m")), "memory": draws.one(("16Mi", "120M"))}
    if draws.chance(0.2):
        level: JsonObject = {}
        for part in draws.some(("requests", "limits"), 2, 1):
            level[part] = {
                name: draws.one(CPU if name == "cpu" else MEMORY) for name in draws.some(("cpu", "memory"), 2, 1)
            }
        if draws.chance(0.1):
            level["requests"] = {**_object_of(level.get("requests")), "hugepages-2Mi": "4Mi"}
        spec["resources"] = level


def _resize(draws: Draws, spec: JsonObject) -> JsonObject:
    """Return the status of a pod whose containers are being resized, or were resized."""
    statuses: list[Json] = []
    containers = spec["containers"]
    assert isinstance(containers, list)
    for container in containers:
        assert isinstance(container, dict)
        status: JsonObject = {
            "name": container["name"],
            "image": "i",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "allocatedResources": {"cpu": draws.one(CPU), "memory": draws.one(MEMORY)},
        }
        if draws.chance(0.7):
            status["resources"] = {"requests": {"cpu": draws.one(CPU), "memory": draws.one(MEMORY)}}
        statuses.append(status)
    found: JsonObject = {"containerStatuses": statuses}
    if draws.chance(0.5):
        kind = draws.one(("PodResizePending", "PodResizeInProgress"))
        reason = draws.one(("Deferred", "Infeasible", ""))
        found["conditions"] = [{"type": kind, "status": "True", "reason": reason}]
    return found


def _add_rules(draws: Draws, spec: JsonObject) -> None:
    affinity: JsonObject = {}
    if draws.has("taints", 0.6):
        spec["tolerations"] = tolerations(draws)
    if draws.has("node_affinity", 0.3):
        key = draws.one(sorted(NODE_LABELS))
        spec["nodeSelector"] = {key: draws.one(NODE_LABELS[key])}
    if draws.has("node_affinity", 0.6):
        affinity["nodeAffinity"] = _node_affinity(draws)
    for kind in ("podAffinity", "podAntiAffinity"):
        if draws.has("pod_affinity", 0.45):
            affinity[kind] = _pod_affinity(draws)
    if affinity:
        spec["affinity"] = affinity
    if draws.has("spread", 0.6):
        constraints = [spread_constraint(draws) for _ in range(draws.randint(1, 3))]
        # The API refuses two constraints with the same key and action; cases have only objects that the API accepts.
        distinct = {(item["topologyKey"], item["whenUnsatisfiable"]): item for item in constraints}
        spec["topologySpreadConstraints"] = list[Json](distinct.values())
    if draws.has("volumes", 0.65):
        # The claim of an ephemeral volume is created later, when the whole case is known.
        spec["volumes"] = [pod_volume(draws, f"v{number}") for number in range(draws.one((1, 1, 2, 3)))]


def _node_affinity(draws: Draws) -> JsonObject:
    affinity: JsonObject = {}
    if draws.chance(0.6):
        terms: list[Json] = [node_selector_term(draws) for _ in range(draws.one((1, 1, 2, 3)))]
        affinity[REQUIRED] = {"nodeSelectorTerms": terms}
    if draws.chance(0.6):
        affinity[PREFERRED] = [
            {"weight": draws.randint(1, 100), "preference": node_selector_term(draws)}
            for _ in range(draws.randint(1, 3))
        ]
    return affinity


def _pod_affinity(draws: Draws) -> JsonObject:
    affinity: JsonObject = {}
    if draws.chance(0.5):
        affinity[REQUIRED] = [pod_affinity_term(draws) for _ in range(draws.one((1, 1, 1, 2)))]
    if draws.chance(0.6):
        affinity[PREFERRED] = [
            {"weight": draws.randint(1, 100), "podAffinityTerm": pod_affinity_term(draws)}
            for _ in range(draws.randint(1, 3))
        ]
    return affinity


def _object_of(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
