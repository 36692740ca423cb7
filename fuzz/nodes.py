"""Generate the random nodes of a case: labels, taints, capacity, images."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import EXTENDED, HOSTNAME, IMAGES, NODE_CPU, NODE_MEMORY, Draws
from fuzz.selectors import NODE_LABELS, taints


def random_nodes(draws: Draws) -> list[JsonObject]:
    """Return the nodes of a case, usually two to six."""
    count = draws.one((0, 1, 2, 3, 3, 4, 5, 6, 8, 12)) if draws.chance(0.3) else draws.randint(2, 6)
    return [_node(draws, f"n{number}") for number in range(1, count + 1)]


def _node(draws: Draws, name: str) -> JsonObject:
    labels: JsonObject = {}
    if draws.chance(0.95):
        labels[HOSTNAME] = name
    for key, values in NODE_LABELS.items():
        if draws.chance(0.6):
            labels[key] = draws.one(values)
    spec: JsonObject = {}
    if draws.has("taints", 0.6):
        spec["taints"] = taints(draws)
    if draws.has("taints", 0.1):
        spec["unschedulable"] = True
    allocatable = _allocatable(draws)
    status: JsonObject = {"capacity": dict(allocatable), "allocatable": allocatable}
    if draws.has("images", 0.8):
        status["images"] = [_image(draws, image) for image in draws.some(IMAGES, 3)]
    if draws.has("odd", 0.3):
        status["declaredFeatures"] = list[Json](
            draws.one(
                (
                    ["UserNamespacesHostNetworkSupport"],
                    ["InPlacePodLevelResourcesVerticalScaling", "UserNamespacesHostNetworkSupport"],
                    [],
                )
            )
        )
    metadata: JsonObject = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _allocatable(draws: Draws) -> JsonObject:
    allocatable: JsonObject = {
        "cpu": draws.one(NODE_CPU),
        "memory": draws.one(NODE_MEMORY),
        "pods": draws.one(("1", "2", "3", "10", "110", "110", "110")),
    }
    if draws.chance(0.6):
        allocatable["ephemeral-storage"] = draws.one(("1Gi", "10Gi", "100G"))
    if draws.has("extended"):
        for name in draws.some((*EXTENDED, "hugepages-2Mi", "kubernetes.io/batch"), 3):
            allocatable[name] = (
                draws.one(("0", "10Mi", "64Mi")) if name.startswith("hugepages") else str(draws.randint(0, 4))
            )
    if draws.has("odd", 0.1):
        allocatable.pop(draws.one(sorted(allocatable)))
    if draws.has("odd", 0.03):
        allocatable["memory"] = draws.one(("1P", "90P", "7E", "0"))
    if draws.has("odd", 0.03):
        allocatable["cpu"] = draws.one(("0", "1000000", "9P"))
    return allocatable


def _image(draws: Draws, name: str) -> JsonObject:
    sizes: dict[str, int] = {image: (40, 300, 700, 5000)[place] << 20 for place, image in enumerate(IMAGES)}
    names: list[Json] = [name]
    if draws.chance(0.2):
        names.append(f"{name.partition('@')[0]}-mirror")
    if name.endswith("/c") and draws.chance(0.7):
        names = ["registry.example/c:latest"]
    return {"names": names, "sizeBytes": sizes[name]}
