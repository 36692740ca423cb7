"""Random traces of the classic queue, in the recorded format.

The clock advances before every operation, so that no two pods are equal: the order of equal pods in the real queue
depends on the layout of its heaps and, if several are moved at once, on the order of a Go map.
"""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import Draws

NAMES = ("p0", "p1", "p2", "p3", "p4", "p5")
NODES = ("n1", "n2")
STEPS_MS = (1, 3, 17, 250, 999, 1000, 1001, 2500, 5000, 11_000, 21_000, 31_000, 61_000)
OPERATIONS = {
    "add": 10,
    "addIfNotPresent": 3,
    "pop": 18,
    "unschedulable": 16,
    "update": 8,
    "delete": 4,
    "moveAll": 4,
    "assignedAdded": 3,
    "assignedUpdated": 2,
    "nominate": 3,
    "deleteNominated": 2,
    "flushBackoff": 6,
    "flushUnschedulable": 4,
    "run": 6,
}
"""Operations and their relative frequencies."""


def random_classic_queue_case(seed: int, number: int) -> JsonObject:
    """Return a trace; the same seed and number give the same trace."""
    draws = Draws(f"classic queue/{seed}/{number}")
    pods: JsonObject = {}
    for name in NAMES:
        for version in range(draws.randint(1, 3)):
            pods[f"{name}v{version}"] = _pod(draws, name, version)
    ops: list[Json] = []
    for _ in range(draws.randint(10, 80)):
        # Fractions of a millisecond are not recorded, so advance by whole ones to make every instant different.
        ops.append({"op": "advance", "ms": draws.one(STEPS_MS) if draws.chance(0.4) else 1})
        ops.append(_operation(draws, sorted(pods)))
    return {"id": f"fuzz/z{seed}-{number}", "family": "fuzz", "note": "random", "pods": pods, "ops": ops}


def _pod(draws: Draws, name: str, version: int) -> JsonObject:
    metadata: JsonObject = {"name": name, "resourceVersion": str(version), "labels": {"app": draws.one(("a", "b"))}}
    spec: JsonObject = {"priority": draws.one((0, 0, 5, 10))}
    if draws.chance(0.4):
        term: JsonObject = {
            "labelSelector": {"matchLabels": {"app": draws.one(("a", "b"))}},
            "topologyKey": "kubernetes.io/hostname",
        }
        spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    status: JsonObject = {}
    if draws.chance(0.3):
        status["nominatedNodeName"] = draws.one(NODES)
    if draws.chance(0.3):
        status["message"] = draws.one(("x", "y"))
    return {"metadata": metadata, "spec": spec, "status": status}


def _operation(draws: Draws, keys: list[str]) -> JsonObject:
    name = draws.choices(list(OPERATIONS), list(OPERATIONS.values()))[0]
    operation: JsonObject = {"op": name}
    if name in ("pop", "moveAll", "flushBackoff", "flushUnschedulable"):
        return operation
    if name == "run":
        return {**operation, "ms": draws.one((500, 1000, 3000, 12_000, 35_000, 95_000))}
    operation["pod"] = draws.one(keys)
    if name == "unschedulable":
        operation["pod"] = "@last"
        if draws.chance(0.3):
            operation["cycle"] = draws.randint(0, 12)
    elif name == "update":
        # Only between versions of one pod.
        pod = str(operation["pod"])
        operation["to"] = draws.one([key for key in keys if key.startswith(pod[:2])])
    elif name == "nominate":
        operation["node"] = draws.one((*NODES, ""))
    return operation
