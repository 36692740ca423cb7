"""Random volumes of all kinds: classes, drivers, persistent volumes, claims, attachments, capacities."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import APPS, HOSTNAME, NAMESPACES, REGION, ZONE, Draws

CLASSES = ("local", "net", "static", "in-tree")
SIZES = ("1Gi", "5Gi", "10Gi", "20Gi")
MODES = ("ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
DRIVERS = ("csi.example", "ebs.csi.aws.com", "other.example")
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
ATTRIBUTES = ("silver", "gold")


def random_storage(draws: Draws, nodes: list[str]) -> list[JsonObject]:
    """Return the storage objects of a case."""
    found: list[JsonObject] = [
        _object("storage.k8s.io/v1", "StorageClass", name, **_class(draws, name))
        for name in CLASSES
        if draws.chance(0.95)
    ]
    for driver in DRIVERS[:2]:
        if draws.chance(0.6):
            found.append(_object("storage.k8s.io/v1", "CSIDriver", driver, spec=_driver(draws)))
    numbers = range(1, draws.randint(1, 9))
    found += [_volume(draws, f"pv-{number}", nodes) for number in numbers]
    namespaces = NAMESPACES if draws.has("namespaces") else ("default",)
    for namespace in namespaces:
        for number in range(1, 6):
            if draws.chance(0.93):
                found.append(_claim(draws, namespace, number, nodes))
    found += [_csi_node(draws, node) for node in nodes if draws.chance(0.7)]
    for number in range(draws.one((0, 0, 1, 3))):
        found.append(_attachment(draws, f"va-{number}", draws.one((*nodes, "gone"))))
    for number in range(draws.one((0, 0, 1, 2, 4))):
        found.append(_storage_capacity(draws, f"capacity-{number}"))
    return found


def pod_volume(draws: Draws, name: str) -> JsonObject:
    """Return a volume of a pod."""
    volume: JsonObject = {"name": name}
    kind = draws.random()
    if kind < 0.62:
        number = draws.randint(1, 5 if draws.chance(0.95) else 6)
        volume["persistentVolumeClaim"] = {"claimName": f"claim-{number}", "readOnly": draws.chance(0.1)}
    elif kind < 0.69:
        volume["gcePersistentDisk"] = {"pdName": draws.one(APPS), "readOnly": draws.chance(0.5)}
    elif kind < 0.76:
        volume["awsElasticBlockStore"] = {"volumeID": draws.one(APPS), "readOnly": draws.chance(0.5)}
    elif kind < 0.82:
        volume["iscsi"] = {
            "targetPortal": "10.0.0.1:3260",
            "iqn": f"iqn.2001-04.com.example:{draws.one(APPS)}",
            "lun": draws.randint(0, 1),
            "readOnly": draws.chance(0.5),
        }
    elif kind < 0.87:
        volume["rbd"] = {
            "monitors": list[Json](draws.some(("m1", "m2", "m3"), 2, 1)),
            "image": draws.one(APPS),
            "pool": draws.one(("", "rbd", "other")),
            "readOnly": draws.chance(0.5),
        }
    elif kind < 0.91:
        volume["csi"] = {"driver": draws.one(DRIVERS)}
    elif kind < 0.94:
        volume["azureDisk"] = {"diskName": draws.one(APPS), "diskURI": draws.one(APPS)}
    elif kind < 0.98:
        volume["ephemeral"] = {"volumeClaimTemplate": {"spec": _claim_spec(draws)}}
    else:
        volume["emptyDir"] = {}
    return volume


def ephemeral_claim(draws: Draws, name: str, namespace: str, pod: str) -> JsonObject:
    """Return the claim of an ephemeral volume; sometimes another pod owns it."""
    uid = f"uid-{pod}" if draws.chance(0.85) else "uid-other"
    owner: JsonObject = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}
    metadata: JsonObject = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
    claim: JsonObject = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    claim["spec"] = _bound_or_not(draws, _claim_spec(draws), metadata)
    return claim


def _class(draws: Draws, name: str) -> JsonObject:
    provisioners = {"net": draws.one(DRIVERS), "in-tree": draws.one(("kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"))}
    settings: JsonObject = {"provisioner": provisioners.get(name, "kubernetes.io/no-provisioner")}
    if draws.chance(0.8):
        settings["volumeBindingMode"] = "Immediate" if name == "static" else "WaitForFirstConsumer"
    if name in provisioners and draws.chance(0.4):
        values: list[Json] = list(draws.some(("z1", "z2", "z3"), 2, 1))
        expressions: list[Json] = [{"key": draws.one((ZONE, ZONE, BETA_ZONE, "rack")), "values": values}]
        if draws.chance(0.2):
            expressions.append({"key": REGION, "values": ["r1"]})
        settings["allowedTopologies"] = [{"matchLabelExpressions": expressions}]
    return settings


def _driver(draws: Draws) -> JsonObject:
    spec: JsonObject = {"attachRequired": draws.chance(0.85), "storageCapacity": draws.chance(0.5)}
    if draws.chance(0.3):
        spec["preventPodSchedulingIfMissing"] = draws.chance(0.7)
    return spec


def _volume(draws: Draws, name: str, nodes: list[str]) -> JsonObject:
    spec: JsonObject = {
        "capacity": {"storage": draws.one(SIZES)},
        "accessModes": list[Json](dict.fromkeys((draws.one(MODES), draws.one(MODES)))),
        "storageClassName": draws.one(("local", "local", "net", "static", "in-tree", "")),
    }
    kind = draws.random()
    if kind < 0.7:
        spec["csi"] = {"driver": draws.one(DRIVERS), "volumeHandle": draws.one(("h1", "h2", "h3", "h4"))}
    elif kind < 0.8:
        spec["awsElasticBlockStore"] = {"volumeID": draws.one(APPS)}
    elif kind < 0.9:
        spec["gcePersistentDisk"] = {"pdName": draws.one(APPS)}
    else:
        spec["hostPath"] = {"path": "/tmp"}
    if draws.chance(0.5):
        key, values = draws.one(((HOSTNAME, nodes or ["n1"]), (ZONE, ["z1", "z2", "z3"]), (BETA_ZONE, ["z1", "z2"])))
        chosen = list[Json](draws.some(values, 2, 1))
        expression: JsonObject = {"key": key, "operator": "In", "values": chosen}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if draws.chance(0.1):
        spec["volumeMode"] = draws.one(("Block", "Filesystem"))
    if draws.chance(0.1):
        spec["volumeAttributesClassName"] = draws.one(ATTRIBUTES)
    if draws.chance(0.15):
        claim: JsonObject = {"name": f"claim-{draws.randint(1, 5)}", "namespace": "default"}
        spec["claimRef"] = claim
        if draws.chance(0.4):
            claim["uid"] = draws.one(("uid-claim-1", "uid-claim-2"))
    metadata: JsonObject = {"name": name}
    labels: JsonObject = {}
    if draws.chance(0.25):
        labels[draws.one((ZONE, BETA_ZONE))] = draws.one(("z1", "z2", "z1__z2", "z3"))
    if draws.chance(0.1):
        labels[REGION] = draws.one(("r1", "r2"))
    if draws.chance(0.3):
        labels["tier"] = draws.one(("front", "back"))
    if labels:
        metadata["labels"] = labels
    if draws.chance(0.05):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    phases = ("Available", "Available", "Available", "Available", "Bound", "Released")
    status: JsonObject = {"phase": draws.one(phases)} if draws.chance(0.9) else {}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status}


def _claim_spec(draws: Draws) -> JsonObject:
    spec: JsonObject = {
        "accessModes": [draws.one(MODES)],
        "resources": {"requests": {"storage": draws.one(SIZES)}},
    }
    if draws.chance(0.9):
        spec["storageClassName"] = draws.one(("local", "local", "local", "net", "net", "in-tree", "static", ""))
    if draws.chance(0.12):
        spec["selector"] = {"matchLabels": {"tier": draws.one(("front", "back"))}}
    if draws.chance(0.08):
        spec["volumeMode"] = draws.one(("Block", "Filesystem"))
    if draws.chance(0.08):
        spec["volumeAttributesClassName"] = draws.one(ATTRIBUTES)
    return spec


def _claim(draws: Draws, namespace: str, number: int, nodes: list[str]) -> JsonObject:
    metadata: JsonObject = {"name": f"claim-{number}", "namespace": namespace, "uid": f"uid-claim-{number}"}
    if draws.chance(0.04):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = _bound_or_not(draws, _claim_spec(draws), metadata)
    if draws.chance(0.08):
        annotations = metadata.setdefault("annotations", {})
        assert isinstance(annotations, dict)
        annotations["volume.kubernetes.io/selected-node"] = draws.one((*nodes, "gone"))
    status: JsonObject = {"phase": draws.one(("Bound", "Pending", "Lost"))} if draws.chance(0.3) else {}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def _bound_or_not(draws: Draws, spec: JsonObject, metadata: JsonObject) -> JsonObject:
    if draws.chance(0.35):
        spec["volumeName"] = f"pv-{draws.randint(1, 6)}"
        if draws.chance(0.9):
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return spec


def _csi_node(draws: Draws, node: str) -> JsonObject:
    drivers: list[Json] = []
    for name in draws.some(DRIVERS, 3, 1):
        driver: JsonObject = {"name": name, "nodeID": node, "topologyKeys": [HOSTNAME]}
        if draws.chance(0.6):
            driver["allocatable"] = {"count": draws.randint(0, 3)}
        drivers.append(driver)
    csi_node = _object("storage.k8s.io/v1", "CSINode", node, spec={"drivers": drivers})
    if draws.chance(0.3):
        metadata = csi_node["metadata"]
        assert isinstance(metadata, dict)
        plugins = draws.one(("kubernetes.io/aws-ebs", "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"))
        metadata["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": plugins}
    return csi_node


def _attachment(draws: Draws, name: str, node: str) -> JsonObject:
    source: JsonObject = {"persistentVolumeName": f"pv-{draws.randint(1, 6)}"}
    spec: JsonObject = {"attacher": draws.one(DRIVERS), "nodeName": node, "source": source}
    return _object("storage.k8s.io/v1", "VolumeAttachment", name, spec=spec, status={"attached": draws.chance(0.8)})


def _storage_capacity(draws: Draws, name: str) -> JsonObject:
    capacity = _object("storage.k8s.io/v1", "CSIStorageCapacity", name, storageClassName=draws.one(("net", "local")))
    metadata = capacity["metadata"]
    assert isinstance(metadata, dict)
    metadata["namespace"] = "default"
    kind = draws.random()
    if kind < 0.6:
        capacity["nodeTopology"] = {"matchLabels": {ZONE: draws.one(("z1", "z2", "z3"))}}
    elif kind < 0.8:
        capacity["nodeTopology"] = {}
    capacity["capacity"] = draws.one(("0", "4Gi", "15Gi", "100Gi"))
    if draws.chance(0.2):
        capacity["maximumVolumeSize"] = draws.one(("1Gi", "8Gi"))
    return capacity


def _object(api_version: str, kind: str, name: str, **content: Json) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}
