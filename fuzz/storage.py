"""Random volumes: classes, drivers, persistent volumes and claims that pods name."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import HOSTNAME, NAMESPACES, ZONE, Draws

CLASSES = ("local", "net", "static")
SIZES = ("1Gi", "5Gi", "10Gi", "20Gi")
MODES = ("ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def random_storage(draws: Draws, nodes: list[str]) -> list[JsonObject]:
    """Return the storage objects of a case."""
    found: list[JsonObject] = [
        _object("storage.k8s.io/v1", "StorageClass", name, **_class(draws, name))
        for name in CLASSES
        if draws.chance(0.9)
    ]
    for number in range(1, draws.randint(1, 6)):
        found.append(_object("v1", "PersistentVolume", f"pv-{number}", spec=_volume_spec(draws, nodes)))
    namespaces = NAMESPACES if draws.has("namespaces") else ("default",)
    for namespace in namespaces:
        for number in range(1, 6):
            if draws.chance(0.8):
                found.append(_claim(draws, namespace, number))
    for node in nodes:
        if draws.chance(0.7):
            driver: JsonObject = {"name": "csi.example", "nodeID": node, "topologyKeys": [HOSTNAME]}
            if draws.chance(0.6):
                driver["allocatable"] = {"count": draws.randint(0, 3)}
            found.append(_object("storage.k8s.io/v1", "CSINode", node, spec={"drivers": [driver]}))
    return found


def _class(draws: Draws, name: str) -> JsonObject:
    provisioner = "kubernetes.io/no-provisioner" if name != "net" else "csi.example"
    settings: JsonObject = {"provisioner": provisioner}
    if draws.chance(0.8):
        settings["volumeBindingMode"] = "Immediate" if name == "static" else "WaitForFirstConsumer"
    if name == "net" and draws.chance(0.4):
        values: list[Json] = list(draws.some(("z1", "z2", "z3"), 2, 1))
        settings["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]
    return settings


def _volume_spec(draws: Draws, nodes: list[str]) -> JsonObject:
    spec: JsonObject = {
        "capacity": {"storage": draws.one(SIZES)},
        "accessModes": [draws.one(MODES)],
        "storageClassName": draws.one(CLASSES),
        "csi": {"driver": "csi.example", "volumeHandle": draws.one(("h1", "h2", "h3", "h4"))},
    }
    if draws.chance(0.6):
        key, values = draws.one(((HOSTNAME, nodes or ["n1"]), (ZONE, ["z1", "z2", "z3"])))
        chosen = list[Json](draws.some(values, 2, 1))
        expression: JsonObject = {"key": key, "operator": "In", "values": chosen}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return spec


def _claim(draws: Draws, namespace: str, number: int) -> JsonObject:
    spec: JsonObject = {
        "accessModes": [draws.one(MODES)],
        "storageClassName": draws.one(CLASSES),
        "resources": {"requests": {"storage": draws.one(SIZES)}},
    }
    metadata: JsonObject = {"name": f"claim-{number}", "namespace": namespace}
    if draws.chance(0.45):
        spec["volumeName"] = f"pv-{draws.randint(1, 6)}"
        if draws.chance(0.9):
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _object(api_version: str, kind: str, name: str, **content: Json) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}
