"""Random cases of the classic scheduler: clusters like those of other cases, as Kubernetes 1.16 could have had them.

Fields that 1.16 lacks are removed from the objects of the other modules, zones get the labels of that release, and a
provider or a Policy is added. The cases avoid random choices of upstream that the answers don't show (see
`random_policy` about services), and label selectors that the API refuses: with one of them in a running pod, upstream
ends every cycle with an error.
"""

from __future__ import annotations

import json

import msgspec

from bayplan.conformance.cases import Json, JsonObject
from fuzz.classic_policies import random_policy
from fuzz.draws import NAMESPACES, REGION, ZONE, Draws
from fuzz.nodes import random_nodes
from fuzz.pods import nominated_pod, pod_to_schedule, running_pod
from fuzz.selectors import label_selector
from fuzz.storage import random_storage

FEATURES = (
    "taints",
    "node_affinity",
    "pod_affinity",
    "spread",
    "ports",
    "images",
    "requests",
    "extended",
    "priority",
    "nominated",
    "crowded",
    "volumes",
    "owners",
    "namespaces",
    "policy",
    "odd",
)
THEMES = (
    ("volumes",),
    ("crowded", "priority", "requests"),
    ("crowded", "nominated"),
    ("crowded", "pod_affinity"),
    ("crowded", "spread"),
    ("owners",),
    ("pod_affinity", "namespaces"),
    ("policy",),
    ("policy", "owners"),
)

UNKNOWN = frozenset(
    (
        "declaredFeatures",
        "hostUsers",
        "matchLabelKeys",
        "minDomains",
        "mismatchLabelKeys",
        "namespaceSelector",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "resourceClaims",
        "resourceClaimStatuses",
        "schedulingGates",
        "restartPolicy",
        "volumeAttributesClassName",
        "containerStatuses",
    )
)
"""Fields that 1.16 does not have."""

UNKNOWN_KINDS = frozenset(("CSIDriver", "CSIStorageCapacity", "VolumeAttachment"))

RENAMED = (
    (ZONE, "failure-domain.beta.kubernetes.io/zone"),
    (REGION, "failure-domain.beta.kubernetes.io/region"),
    ("ReadWriteOncePod", "ReadWriteOnce"),
    ("policy/v1", "policy/v1beta1"),
    ('"apiVersion":"storage.k8s.io/v1","kind":"CSINode"', '"apiVersion":"storage.k8s.io/v1beta1","kind":"CSINode"'),
)
AVOIDING = "scheduler.alpha.kubernetes.io/preferAvoidPods"
INSTANCE_TYPES = ("c5.large", "m5.xlarge", "t3.small", "t2.micro", "my-z1d", "x1")

STABLY_SORTED = 12


def random_classic_case(seed: int, number: int) -> JsonObject:
    """Return a case in the recorded format; the same seed and number give the same case."""
    draws = Draws(f"classic/{seed}/{number}")
    theme = draws.one(THEMES) if draws.chance(0.5) else ()
    share = 0.05 if theme else draws.one((0.06, 0.15, 0.3, 0.5, 0.8))
    draws.features = frozenset(feature for feature in FEATURES if feature in theme or draws.chance(share))
    nodes = random_nodes(draws)
    names = [f"n{place}" for place in range(1, len(nodes) + 1)]
    policy = random_policy(draws) if draws.has("policy") else None
    # Upstream follows any pod of a service; with a single pod there is no choice.
    alone = policy is not None and "serviceAffinity" in json.dumps(policy)
    objects = [*nodes]
    if draws.has("volumes"):
        objects += random_storage(draws, names)
    if draws.has("owners"):
        objects += _owners(draws)
    if draws.has("priority", 0.5) or draws.has("crowded", 0.5):
        objects += _budgets(draws)
    if names:
        running = 1 if alone else draws.one((6, 10, 15, 20) if draws.has("crowded") else (0, 1, 2, 4, 6, 10, 15))
        objects += _running(draws, names, running)
    if names and draws.has("nominated") and not alone:
        objects += [nominated_pod(draws, f"w{place}", draws.one(names)) for place in range(draws.randint(1, 3))]
    count = 1 if alone else draws.one((1, 1, 1, 2, 3, 5))
    pods = [pod_to_schedule(draws, f"p{place}") for place in range(count)]
    case: JsonObject = {
        "id": f"fuzz/k{seed}-{number}",
        "family": "fuzz",
        "note": ", ".join(sorted(draws.features)),
        "objects": [_of_the_time(draws, item) for item in objects if item["kind"] not in UNKNOWN_KINDS],
        "pods": [_of_the_time(draws, item) for item in pods],
    }
    if policy is not None:
        case["policy"] = policy
    elif draws.chance(0.4):
        case["provider"] = draws.one(("DefaultProvider", "ClusterAutoscalerProvider"))
    gates = _gates(draws)
    if gates:
        case["featureGates"] = gates
    text = msgspec.json.encode(case).decode()
    for later, earlier in RENAMED:
        text = text.replace(later, earlier)
    decoded: JsonObject = msgspec.json.decode(text)
    return decoded


def _running(draws: Draws, nodes: list[str], count: int) -> list[JsonObject]:
    """Return pods on nodes, with distinct start times if there are more than `STABLY_SORTED`.

    Go sorts up to twelve equal items stably.
    """
    pods = [running_pod(draws, f"r{place}", draws.one(nodes)) for place in range(count)]
    if count > STABLY_SORTED:
        for place, pod in enumerate(draws.some(pods, count, count)):
            status = pod["status"]
            assert isinstance(status, dict)
            status["startTime"] = f"2026-01-01T00:00:{place:02}Z"
    return pods


def _gates(draws: Draws) -> JsonObject:
    """Return feature gates, only for some cases: the real scheduler needs a separate process for each combination."""
    gates: JsonObject = {}
    if draws.has("spread", 0.5):
        gates["EvenPodsSpread"] = True
    if draws.has("odd", 0.1):
        gates[draws.one(("ResourceLimitsPriorityFunction", "PodOverhead", "NonPreemptingPriority"))] = True
    if draws.has("odd", 0.05) or draws.has("taints", 0.05):
        gates["TaintNodesByCondition"] = False
    return gates


def _of_the_time(draws: Draws, item: JsonObject) -> JsonObject:
    """Return an object without fields that 1.16 lacks, and with some fields that only 1.16 reads."""
    item = _known(item)
    metadata, spec = item["metadata"], item.get("spec")
    assert isinstance(metadata, dict)
    if item["kind"] == "Pod" and isinstance(spec, dict):
        spec.pop("resources", None)
        volumes = spec.get("volumes")
        if isinstance(volumes, list):
            spec["volumes"] = [each for each in volumes if isinstance(each, dict) and "ephemeral" not in each]
    if item["kind"] == "Node":
        _add_to_node(draws, item, metadata)
    return item


def _known(value: JsonObject) -> JsonObject:
    return {key: _known_value(inner) for key, inner in value.items() if key not in UNKNOWN}


def _known_value(value: Json) -> Json:
    if isinstance(value, dict):
        expressions = value.get("matchExpressions")
        if isinstance(expressions, list):
            for each in expressions:
                if isinstance(each, dict) and each.get("operator") in ("Exists", "DoesNotExist"):
                    each.pop("values", None)
        return _known(value)
    return [_known_value(inner) for inner in value] if isinstance(value, list) else value


def _add_to_node(draws: Draws, node: JsonObject, metadata: JsonObject) -> None:
    status = node["status"]
    assert isinstance(status, dict)
    if draws.chance(0.4):
        types = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
        status["conditions"] = [
            {"type": kind, "status": draws.one(("True", "False", "False", "Unknown"))} for kind in draws.some(types, 4)
        ]
    if draws.has("owners", 0.3):
        controller: JsonObject = {
            "kind": draws.one(("ReplicaSet", "ReplicationController")),
            "uid": draws.one(("uid-rs", "uid-rc")),
        }
        avoid: JsonObject = {"preferAvoidPods": [{"podSignature": {"podController": controller}}]}
        text = draws.one((json.dumps(avoid), json.dumps(avoid), "{", '{"preferAvoidPods": 3}', "{}"))
        metadata["annotations"] = {AVOIDING: text}
    if draws.has("volumes"):
        allocatable, labels = status["allocatable"], metadata["labels"]
        assert isinstance(allocatable, dict)
        assert isinstance(labels, dict)
        for name in ("aws-ebs", "gce-pd", "csi-csi.example", "azure-disk"):
            if draws.chance(0.4):
                allocatable[f"attachable-volumes-{name}"] = str(draws.randint(0, 3))
        if draws.chance(0.3):
            labels["beta.kubernetes.io/instance-type"] = draws.one(INSTANCE_TYPES)


def _owners(draws: Draws) -> list[JsonObject]:
    """Return services and controllers. Controllers always have selectors, because the API refuses missing ones."""
    found: list[JsonObject] = []
    namespaces = NAMESPACES if draws.has("namespaces") else ("default",)
    for namespace in namespaces:
        for name in draws.some(("s1", "s2"), 2):
            metadata: JsonObject = {"name": name, "namespace": namespace}
            selector: JsonObject = {} if draws.chance(0.1) else {"app": draws.one(("a", "b", "c"))}
            if draws.chance(0.3):
                selector["tier"] = "front"
            found.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}})
        for api_version, kind, name in (
            ("apps/v1", "ReplicaSet", "rs"),
            ("apps/v1", "StatefulSet", "sts"),
            ("v1", "ReplicationController", "rc"),
        ):
            if draws.chance(0.6):
                of: JsonObject = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
                plain: JsonObject = {"app": draws.one(("a", "b"))}
                spec: JsonObject = {"selector": plain if api_version == "v1" else label_selector(draws) or {}}
                found.append({"apiVersion": api_version, "kind": kind, "metadata": of, "spec": spec})
    return found


def _budgets(draws: Draws) -> list[JsonObject]:
    found: list[JsonObject] = []
    for number in range(draws.randint(1, 3)):
        metadata: JsonObject = {"name": f"pdb{number}", "namespace": "default"}
        if draws.has("namespaces", 0.5):
            metadata["namespace"] = draws.one(NAMESPACES)
        spec: JsonObject = {"selector": label_selector(draws) or {}}
        status: JsonObject = {
            "disruptionsAllowed": draws.randint(0, 2),
            "currentHealthy": 3,
            "desiredHealthy": 2,
            "expectedPods": 3,
        }
        budget: JsonObject = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
        found.append({**budget, "spec": spec, "status": status})
    return found
