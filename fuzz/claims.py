"""Random specs and allocations of resource claims."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import DEVICE_CLASSES, Draws
from fuzz.expressions import selectors

TOLERATIONS: tuple[JsonObject, ...] = (
    {"operator": "Exists"},
    {"key": "unhealthy", "operator": "Exists"},
    {"key": "unhealthy", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
    {"key": "reserved.example.com/for", "operator": "Equal", "value": "b"},
    {"key": "unhealthy", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
)


def claim_spec(draws: Draws) -> JsonObject:
    """Return the spec of a claim."""
    requests: list[Json] = []
    names: list[str] = []
    for number in range(draws.one((1, 1, 1, 1, 2, 3))):
        name = f"r{number}"
        if draws.chance(0.2):
            choices = [{"name": f"s{place}", **_device_request(draws)} for place in range(draws.randint(1, 3))]
            requests.append({"name": name, "firstAvailable": list[Json](choices)})
            names += [name, *(f"{name}/{choice['name']}" for choice in choices)]
        else:
            exactly = _device_request(draws)
            if draws.chance(0.1):
                exactly["adminAccess"] = True
            requests.append({"name": name, "exactly": exactly})
            names.append(name)
    devices: JsonObject = {"requests": requests}
    if draws.chance(0.25):
        constraint: JsonObject = {}
        if draws.chance(0.6):
            constraint["requests"] = list[Json](draws.some(names, 2, 1))
        attribute = draws.one(("gpu.example.com/model", "shared.example.com/numa", "gpu.example.com/index", "x.y/none"))
        constraint["matchAttribute" if draws.chance(0.7) else "distinctAttribute"] = attribute
        devices["constraints"] = [constraint]
    return {"devices": devices}


def _device_request(draws: Draws) -> JsonObject:
    request: JsonObject = {
        "deviceClassName": draws.one((*DEVICE_CLASSES, "missing") if draws.has("odd", 0.2) else DEVICE_CLASSES)
    }
    if draws.chance(0.2):
        request["selectors"] = selectors(draws)
    if draws.chance(0.15):
        request["allocationMode"] = "All"
    elif draws.chance(0.8):
        request |= {"allocationMode": "ExactCount", "count": draws.one((1, 1, 1, 1, 2, 3))}
    if draws.has("taints", 0.4):
        request["tolerations"] = [dict(item) for item in draws.some(TOLERATIONS, 2, 1)]
    if draws.has("shared_devices", 0.5):
        amounts: JsonObject = {"memory": draws.one(("1Gi", "3Gi", "4Gi", "9Gi", "16Gi", "33Gi"))}
        if draws.chance(0.2):
            amounts["bandwidth"] = draws.one(("1", "6"))
        request["capacity"] = {"requests": amounts}
    return request


def allocated_status(draws: Draws, spec: JsonObject, devices: list[tuple[str, str, str, str]]) -> JsonObject:
    """Return the status of a claim with one allocated device (driver, pool, name, node) and its consumers."""
    driver, pool, name, node = draws.one(devices)
    asked = spec["devices"]
    assert isinstance(asked, dict)
    requests = asked["requests"]
    assert isinstance(requests, list)
    first = requests[0]
    assert isinstance(first, dict)
    request = f"{first['name']}/s0" if "firstAvailable" in first else str(first["name"])
    result: JsonObject = {"request": request, "driver": driver, "pool": pool, "device": name}
    exactly = first.get("exactly")
    if isinstance(exactly, dict) and exactly.get("adminAccess"):
        result["adminAccess"] = True
    if draws.has("shared_devices", 0.7):
        result["shareID"] = f"00000000-0000-0000-0000-{draws.randint(0, 10**11):012d}"
        if draws.chance(0.8):
            result["consumedCapacity"] = {"memory": draws.one(("1Gi", "2Gi", "4Gi"))}
    allocation: JsonObject = {"devices": {"results": [result]}}
    if node or draws.chance(0.2):
        field: JsonObject = {"key": "metadata.name", "operator": "In", "values": [node or "n1"]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    status: JsonObject = {"allocation": allocation}
    users = draws.some(("p0", "p1", "r0", "r1", "r2"), 2)
    if users:
        status["reservedFor"] = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users]
    return status


def pod_claims(draws: Draws) -> JsonObject:
    """Return the `resourceClaims` of a pod's spec."""
    named: list[Json] = []
    for number in range(draws.one((1, 1, 1, 2, 3))):
        named.append(
            {"name": f"claim{number}", "resourceClaimName": f"claim-{draws.randint(1, 4 if draws.chance(0.95) else 9)}"}
        )
    return {"resourceClaims": named}
