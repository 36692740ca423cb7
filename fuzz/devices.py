"""Random devices: classes, slices of pools, taint rules, and the claims that pods name."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.conformance.cases import Json, JsonObject
from fuzz.claims import allocated_status, claim_spec
from fuzz.draws import DEVICE_CLASSES, DRIVERS, NAMESPACES, ZONE, Draws
from fuzz.expressions import selectors

API = "resource.k8s.io/v1"
EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "None")
TAINT_KEYS = ("unhealthy", "reserved.example.com/for")
POLICIES: tuple[JsonObject, ...] = (
    {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}},
    {"default": "2Gi", "validRange": {"min": "2Gi", "max": "8Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi", "max": "6Gi", "step": "2Gi"}},
    {"default": "4Gi", "validValues": ["2Gi", "4Gi", "8Gi"]},
)
COUNTER_SETS = ("cores", "slots")


class Where(NamedTuple):
    """An existing device: the driver, pool and name that an allocation has, and its node or ""."""

    driver: str
    pool: str
    name: str
    node: str


def random_devices(draws: Draws, nodes: list[str]) -> list[JsonObject]:
    """Return the device classes, slices, taint rules and claims of a case."""
    objects = [_class(draws, name) for name in DEVICE_CLASSES if draws.chance(0.95)]
    slices, devices = _slices(draws, nodes)
    objects += slices
    if draws.has("odd", 0.2):
        objects.append(_taint_rule(draws))
    namespaces = NAMESPACES if draws.has("namespaces") else ("default",)
    for namespace in namespaces:
        objects += [_claim(draws, namespace, number, devices) for number in range(1, 6) if draws.chance(0.8)]
    return objects


def _class(draws: Draws, name: str) -> JsonObject:
    spec: JsonObject = {}
    if draws.chance(0.35):
        spec["selectors"] = selectors(draws)
    if draws.chance(0.4):
        spec["extendedResourceName"] = draws.one(("example.com/gpu", "example.com/fpga", "example.com/dra"))
    metadata: JsonObject = {"name": name}
    if draws.chance(0.3):
        metadata["creationTimestamp"] = f"2026-01-0{draws.randint(1, 3)}T00:00:00Z"
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": metadata, "spec": spec}


def _slices(draws: Draws, nodes: list[str]) -> tuple[list[JsonObject], list[Where]]:
    slices: list[JsonObject] = []
    devices: list[Where] = []
    for node in nodes:
        if draws.chance(0.8):
            _add_pool(draws, slices, devices, draws.one(DRIVERS[:2]), node, {"nodeName": node})
    kind = draws.random()
    if kind < 0.15:
        _add_pool(draws, slices, devices, DRIVERS[2], "everywhere", {"allNodes": True})
    elif kind < 0.3:
        values: list[Json] = list(draws.some(("z1", "z2", "z3"), 2, 1))
        term: JsonObject = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": values}]}
        _add_pool(draws, slices, devices, DRIVERS[2], "zonal", {"nodeSelector": {"nodeSelectorTerms": [term]}})
    elif kind < 0.45 and nodes:
        _add_pool(draws, slices, devices, DRIVERS[2], "mixed", {"perDeviceNodeSelection": True}, nodes)
    return slices, devices


def _add_pool(
    draws: Draws,
    slices: list[JsonObject],
    devices: list[Where],
    driver: str,
    pool: str,
    where: JsonObject,
    nodes: list[str] | None = None,
) -> None:
    """Add the one or two slices of a pool, sometimes with one of them missing, or with an additional outdated slice."""
    partitioned = draws.has("partitions", 0.6)
    names = [f"d{number}" for number in range(draws.one((0, 1, 2, 3, 4, 5)))]
    written = [_device(draws, name, driver, partitioned=partitioned) for name in names]
    if nodes is not None:
        for device in written:
            selection: tuple[JsonObject, ...] = (
                {"nodeName": draws.one(nodes)},
                {"allNodes": True},
                {"nodeName": "gone"},
            )
            device |= draws.one(selection)
    devices += [Where(driver, pool, name, pool if "nodeName" in where else "") for name in names]
    parts = [written]
    if len(written) > 1 and draws.chance(0.2):
        parts = [written[:1], written[1:]]
    count, generation = len(parts) + partitioned, draws.randint(1, 2)
    if draws.has("odd", 0.06):
        count += 1
    if draws.has("odd", 0.05) and written:
        parts[-1].append(dict(written[0]))

    def add(content: JsonObject, generation: int) -> None:
        described: JsonObject = {"name": pool, "generation": generation, "resourceSliceCount": count}
        spec: JsonObject = {"driver": driver, "pool": described, **where, **content}
        metadata: JsonObject = {"name": f"slice-{len(slices)}"}
        slices.append({"apiVersion": API, "kind": "ResourceSlice", "metadata": metadata, "spec": spec})

    if partitioned:
        add({"sharedCounters": [_counter_set(draws, name) for name in COUNTER_SETS]}, generation)
    for part in parts:
        add({"devices": list[Json](part)}, generation)
    if draws.has("odd", 0.06):
        add({"devices": [{"name": "old"}]}, generation - 1)


def _counter_set(draws: Draws, name: str) -> JsonObject:
    return {
        "name": name,
        "counters": {
            "units": {"value": str(draws.randint(1, 4))},
            "memory": {"value": draws.one(("10Gi", "20Gi", "40Gi"))},
        },
    }


def _device(draws: Draws, name: str, driver: str, *, partitioned: bool) -> JsonObject:
    device: JsonObject = {"name": name}
    attributes: JsonObject = {}
    if draws.chance(0.9):
        attributes["model"] = {"string": draws.one(("a100", "t4", "h100"))}
    if draws.chance(0.9):
        attributes["index"] = {"int": draws.randint(0, 4)}
    if draws.chance(0.8):
        attributes["fast"] = {"bool": draws.chance(0.5)}
    if draws.chance(0.4):
        attributes["version"] = {"version": draws.one(("1.0.0", "1.2.3", "2.0.0-rc.1"))}
    if draws.chance(0.4):
        attributes["shared.example.com/numa"] = {"int": draws.randint(0, 1)}
    if attributes:
        device["attributes"] = attributes
    if draws.chance(0.7):
        device["capacity"] = _capacity(draws, device)
    if partitioned and draws.chance(0.9):
        counters: JsonObject = {"units": {"value": str(draws.randint(0, 2))}}
        if draws.chance(0.5):
            counters["memory"] = {"value": draws.one(("5Gi", "10Gi", "20Gi"))}
        name_of_set = draws.one((*COUNTER_SETS, "unknown")) if draws.has("odd", 0.1) else draws.one(COUNTER_SETS)
        device["consumesCounters"] = [{"counterSet": name_of_set, "counters": counters}]
    if draws.has("taints", 0.3):
        taint: JsonObject = {"key": draws.one(TAINT_KEYS), "effect": draws.one(EFFECTS)}
        if draws.chance(0.5):
            taint["value"] = draws.one(("a", "b"))
        device["taints"] = [taint]
    if draws.has("odd", 0.05):
        device["bindsToNode"] = True
    if draws.has("odd", 0.05):
        device |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    return device


def _capacity(draws: Draws, device: JsonObject) -> JsonObject:
    memory: JsonObject = {"value": draws.one(("8Gi", "16Gi", "32Gi"))}
    capacity: JsonObject = {"memory": memory}
    if draws.has("shared_devices", 0.7):
        device["allowMultipleAllocations"] = True
        if draws.chance(0.7):
            memory["requestPolicy"] = dict(draws.one(POLICIES))
        if draws.chance(0.3):
            capacity["bandwidth"] = {"value": draws.one(("5", "10"))}
    return capacity


def _taint_rule(draws: Draws) -> JsonObject:
    selector: JsonObject = {"driver": draws.one(DRIVERS)}
    if draws.chance(0.5):
        selector["device"] = "d1"
    taint: JsonObject = {
        "key": draws.one(TAINT_KEYS),
        "effect": draws.one(EFFECTS[:3]),
        "timeAdded": "2026-01-01T00:00:00Z",
    }
    spec: JsonObject = {"deviceSelector": selector, "taint": taint}
    metadata: JsonObject = {"name": "rule"}
    return {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": metadata, "spec": spec}


def _claim(draws: Draws, namespace: str, number: int, devices: list[Where]) -> JsonObject:
    metadata: JsonObject = {"name": f"claim-{number}", "namespace": namespace, "uid": f"uid-claim-{namespace}-{number}"}
    spec = claim_spec(draws)
    claim: JsonObject = {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
    if number == 5:
        # The claim that was created from a template for the first pod to schedule.
        owner: JsonObject = {"apiVersion": "v1", "kind": "Pod", "name": "p0", "uid": "uid-p0", "controller": True}
        metadata["ownerReferences"] = [owner]
    if devices and draws.chance(0.2):
        status = allocated_status(draws, spec, [(item.driver, item.pool, item.name, item.node) for item in devices])
        claim["status"] = status
        metadata["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        if draws.has("odd", 0.1):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return claim
