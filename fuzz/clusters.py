"""Random cycle cases: a cluster and some pods to schedule; each case has a separate seed."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.configurations import has_shape_of_volumes, random_configuration, random_gates
from fuzz.devices import random_devices
from fuzz.draws import APPS, NAMESPACES, Draws
from fuzz.nodes import random_nodes
from fuzz.pods import OWNERS, nominated_pod, pod_to_schedule, running_pod
from fuzz.selectors import label_selector
from fuzz.storage import ephemeral_claim, random_storage


def random_case(seed: int, number: int) -> JsonObject:
    """Return a case in the recorded format; the same seed and number give the same case."""
    draws = Draws(f"{seed}/{number}")
    draws.choose_features()
    nodes = random_nodes(draws)
    names = [f"n{place}" for place in range(1, len(nodes) + 1)]
    objects: list[JsonObject] = [*_namespaces(draws), *nodes]
    if draws.has("volumes"):
        objects += random_storage(draws, names)
    if draws.has("devices"):
        objects += random_devices(draws, names)
    if draws.has("owners"):
        objects += _owners(draws)
    if draws.has("priority", 0.5):
        objects += _budgets(draws)
    if names:
        running = draws.one((6, 10, 15, 20) if draws.has("crowded") else (0, 1, 2, 4, 6, 10, 15))
        objects += [running_pod(draws, f"r{place}", draws.one((*names, *names, "gone"))) for place in range(running)]
    if names and draws.has("nominated"):
        objects += [nominated_pod(draws, f"w{place}", draws.one(names)) for place in range(draws.randint(1, 3))]
    pods = [pod_to_schedule(draws, f"p{place}") for place in range(draws.one((1, 1, 1, 2, 3, 5)))]
    objects += _ephemeral_claims(draws, [*objects, *pods])
    case: JsonObject = {
        "id": f"fuzz/s{seed}-{number}",
        "family": "fuzz",
        "note": ", ".join(sorted(draws.features)),
        "objects": list[Json](objects),
        "pods": list[Json](pods),
    }
    if draws.has("configuration", 0.8):
        case["config"] = random_configuration(draws)
    gates = random_gates(draws) if draws.has("odd", 0.4) else {}
    if has_shape_of_volumes(case.get("config")) and draws.chance(0.97):
        gates["StorageCapacityScoring"] = True
    if gates:
        case["featureGates"] = gates
    return case


def _ephemeral_claims(draws: Draws, items: list[JsonObject]) -> list[JsonObject]:
    """Return claims for most of the pods' generic ephemeral volumes."""
    found: list[JsonObject] = []
    for item in items:
        metadata, spec = item["metadata"], item.get("spec")
        volumes = spec.get("volumes") if item["kind"] == "Pod" and isinstance(spec, dict) else None
        for volume in volumes if isinstance(volumes, list) else ():
            if isinstance(volume, dict) and "ephemeral" in volume and draws.chance(0.85):
                assert isinstance(metadata, dict)
                pod, namespace = str(metadata["name"]), str(metadata.get("namespace", "default"))
                found.append(ephemeral_claim(draws, f"{pod}-{volume['name']}", namespace, pod))
    return found


def _namespaces(draws: Draws) -> list[JsonObject]:
    found: list[JsonObject] = []
    for name in NAMESPACES:
        if draws.has("namespaces", 0.7):
            labels: JsonObject = {"kubernetes.io/metadata.name": name, "team": draws.one(("x", "y"))}
            found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return found


def _owners(draws: Draws) -> list[JsonObject]:
    """Return services and controllers, from whose selectors topology spreading derives its default constraints."""
    found: list[JsonObject] = []
    namespaces = NAMESPACES if draws.has("namespaces") else ("default",)
    for namespace in namespaces:
        for name in draws.some(("s1", "s2"), 2):
            selector: JsonObject = {} if draws.chance(0.1) else {"app": draws.one(APPS)}
            metadata: JsonObject = {"name": name, "namespace": namespace}
            found.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}})
        for api_version, kind, name in OWNERS:
            if draws.chance(0.6):
                chosen: Json = label_selector(draws) or {}
                spec: JsonObject = {"selector": {"app": draws.one(APPS)} if api_version == "v1" else chosen}
                of: JsonObject = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
                found.append({"apiVersion": api_version, "kind": kind, "metadata": of, "spec": spec})
    return found


def _budgets(draws: Draws) -> list[JsonObject]:
    found: list[JsonObject] = []
    for number in range(draws.randint(1, 3)):
        metadata: JsonObject = {"name": f"pdb{number}"}
        if draws.has("namespaces", 0.5):
            metadata["namespace"] = draws.one(NAMESPACES)
        status: JsonObject = {
            "disruptionsAllowed": draws.randint(0, 2),
            "currentHealthy": 3,
            "desiredHealthy": 2,
            "expectedPods": 3,
        }
        spec: JsonObject = {"selector": label_selector(draws) or {}}
        found.append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": metadata,
                "spec": spec,
                "status": status,
            }
        )
    return found
