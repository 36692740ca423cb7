"""Random sampled cases: clusters so large that a search can end before all nodes are examined."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.configurations import API_VERSION
from fuzz.draws import HOSTNAME, ZONE, Draws
from fuzz.selectors import label_selector

FIRST_SIZES = (40, 99, 100, 101, 120, 150, 201, 250, 300, 420)
"""Sizes around the smallest cluster that is sampled, and larger ones."""


def random_sampled_case(seed: int, number: int) -> JsonObject:
    """Return a sampled case; the same seed and number give the same case."""
    draws = Draws(f"sampled/{seed}/{number}")
    draws.choose_features()
    zones = draws.randint(0, 4)
    count = draws.one(FIRST_SIZES)
    width = draws.one((1, 3))
    names = [f"n{place:0{width}d}" for place in range(count)]
    nodes = [_node(draws, name, f"z{draws.randint(1, zones)}" if zones else "") for name in names]
    if draws.chance(0.5):
        draws.shuffle(nodes)
    running = [_pod(draws, f"r{place}", draws.one(names)) for place in range(draws.randint(0, 12))]
    templates = [_spec(draws, names) for _ in range(draws.randint(1, 3))]
    pods = [_pod(draws, f"p{place}", "", draws.one(templates)) for place in range(draws.randint(2, 14))]
    if draws.chance(0.2):
        pods[draws.randint(0, len(pods) - 1)]["status"] = {"nominatedNodeName": draws.one((*names[:3], "gone"))}
    return {
        "id": f"sampled/s{seed}-{number}",
        "family": "sampled",
        "note": f"{count} nodes in {zones} zones",
        "sampled": True,
        "config": _configuration(draws),
        "featureGates": {"OpportunisticBatching": False},
        "objects": [*nodes, *running],
        "pods": list[Json](pods),
    }


def _node(draws: Draws, name: str, zone: str) -> JsonObject:
    labels: JsonObject = {HOSTNAME: name, "disk": draws.one(("ssd", "hdd"))}
    if zone:
        labels[ZONE] = zone
    if draws.chance(0.1):
        labels["topology.kubernetes.io/region"] = "r1"
    amounts: JsonObject = {
        "cpu": draws.one(("2", "4", "8")),
        "memory": f"{draws.randint(2000, 16000)}Mi",
        "pods": draws.one(("1", "3", "110", "110")),
    }
    node: JsonObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    spec: JsonObject = {}
    if draws.has("taints", 0.3):
        spec["taints"] = [{"key": "dedicated", "effect": draws.one(("NoSchedule", "PreferNoSchedule"))}]
    if draws.chance(0.05):
        spec["unschedulable"] = True
    if spec:
        node["spec"] = spec
    return node


def _spec(draws: Draws, names: list[str]) -> JsonObject:
    requests: JsonObject = {
        "cpu": draws.one(("100m", "500m", "1500m", "3")),
        "memory": draws.one(("100Mi", "1Gi", "5Gi")),
    }
    spec: JsonObject = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    affinity: JsonObject = {}
    if draws.has("node_affinity", 0.6):
        spec["nodeSelector"] = {"disk": "ssd"}
    elif draws.chance(0.1):
        chosen = list[Json](draws.some((*names[:5], "gone"), 1, 1))
        term: JsonObject = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": chosen}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    if draws.has("pod_affinity", 0.6):
        key = draws.one((HOSTNAME, ZONE))
        anti: JsonObject = {"labelSelector": label_selector(draws) or {}, "topologyKey": key}
        affinity["podAntiAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": anti}]
        }
        if key == HOSTNAME and draws.chance(0.5):
            affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [anti]}
    if affinity:
        spec["affinity"] = affinity
    if draws.has("spread", 0.7):
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": draws.randint(1, 2),
                "topologyKey": draws.one((HOSTNAME, ZONE)),
                "whenUnsatisfiable": draws.one(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": {"matchLabels": {"app": "a"}},
            }
        ]
    if draws.has("taints", 0.4):
        spec["tolerations"] = [{"operator": "Exists"}]
    return spec


def _pod(draws: Draws, name: str, node: str, spec: JsonObject | None = None) -> JsonObject:
    labels: JsonObject = {"app": draws.one(("a", "b"))}
    chosen: JsonObject = dict(spec) if spec is not None else {"containers": [{"name": "c", "image": "i"}]}
    if node:
        chosen["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": chosen}


def _configuration(draws: Draws) -> JsonObject:
    profile: JsonObject = {"schedulerName": "default-scheduler"}
    configuration: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 1,
        "profiles": [profile],
    }
    if draws.chance(0.5):
        configuration["percentageOfNodesToScore"] = draws.one((0, 1, 10, 34, 50, 70, 99, 100))
    if draws.chance(0.3):
        profile["percentageOfNodesToScore"] = draws.one((0, 5, 40, 100))
    if draws.chance(0.1):
        few: list[Json] = [{"name": name} for name in ("PrioritySort", "NodeResourcesFit", "DefaultBinder")]
        profile["plugins"] = {"multiPoint": {"enabled": few, "disabled": [{"name": "*"}]}}
    elif draws.chance(0.1):
        profile["plugins"] = {"score": {"disabled": [{"name": "*"}]}, "preScore": {"disabled": [{"name": "*"}]}}
    return configuration
