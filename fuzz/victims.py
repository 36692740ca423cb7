"""Random cycle cases with many equally important victims on a node: more than upstream sorts stably."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import Draws


def random_victims_case(seed: int, number: int) -> JsonObject:
    """Return a cycle case in which the order of victims is compared; the same seed and number give the same case."""
    draws = Draws(f"victims/{seed}/{number}")
    names = [f"n{place}" for place in range(draws.randint(1, 3))]
    priorities = draws.one(((0,), (0, 5), (-5, 0, 0, 10), (0, 1, 2, 3, 4)))
    starts = draws.one((1, 1, 2, 3, 8, 60))
    sizes = draws.one((("100m",), ("50m", "100m"), ("10m", "100m", "250m")))
    objects: list[JsonObject] = [_node(draws, name) for name in names]
    for name in names:
        count = draws.one((draws.randint(13, 60), draws.randint(13, 60), draws.randint(1, 110)))
        drift = draws.one((0, 0, 1, -1))
        for place in range(count):
            minute = draws.randrange(starts)
            if drift and draws.chance(0.9):
                # Mostly in order of their start, or in the reverse order, because upstream's sort detects both.
                minute = (place if drift > 0 else count - 1 - place) * starts // count
            start = f"2026-01-01T00:{minute:02d}:00Z" if draws.chance(0.9) else ""
            objects.append(_victim(draws, f"{name}-{place}", name, draws.one(priorities), draws.one(sizes), start))
    objects += [_budget(draws, f"pdb{place}") for place in range(draws.one((0, 0, 1, 2)))]
    pods = [_preemptor(draws, f"p{place}") for place in range(draws.one((1, 1, 2)))]
    return {
        "id": f"victims/s{seed}-{number}",
        "family": "victims",
        "note": f"{len(names)} nodes",
        "exactVictims": True,
        "objects": list[Json](objects),
        "pods": list[Json](pods),
    }


def _node(draws: Draws, name: str) -> JsonObject:
    amounts: JsonObject = {"cpu": draws.one(("1", "2", "4")), "memory": "64Gi", "pods": draws.one(("40", "110"))}
    status: JsonObject = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {}}, "status": status}


def _victim(draws: Draws, name: str, node: str, priority: int, cpu: str, start: str) -> JsonObject:
    spec: JsonObject = {**_containers(cpu), "nodeName": node, "priority": priority}
    status: JsonObject = {"phase": "Running"}
    if start:
        status["startTime"] = start
    metadata: JsonObject = {"name": name, "labels": {"app": draws.one(("a", "b", "c"))}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _preemptor(draws: Draws, name: str) -> JsonObject:
    spec: JsonObject = {**_containers(draws.one(("300m", "900m", "1500m", "2"))), "priority": draws.one((4, 1000))}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _containers(cpu: str) -> JsonObject:
    requests: JsonObject = {"cpu": cpu, "memory": "10Mi"}
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}


def _budget(draws: Draws, name: str) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": draws.one(("a", "b"))}}},
        "status": {"disruptionsAllowed": draws.randint(0, 20)},
    }
