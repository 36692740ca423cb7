"""Small invented cases in the format of recorded ones, with one of everything that tests of the comparison change."""

import copy
from pathlib import Path

import msgspec

from bayplan.conformance.answers import Answer
from bayplan.conformance.cases import Json, JsonObject, RecordedCase

FAILED_NODE: JsonObject = {"code": "Unschedulable", "reasons": ["Insufficient cpu", "Insufficient memory"]}


def pod(name: str, *, priority: int = 0, started: str | None = None, node: str | None = None) -> JsonObject:
    spec: JsonObject = {"priority": priority, "containers": [{"name": "c", "image": "i"}]}
    if node is not None:
        spec["nodeName"] = node
    status: JsonObject = {} if started is None else {"startTime": started}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": status}


def placed_cycle(name: str = "default/web") -> JsonObject:
    """Return the cycle of a pod that fits two of three nodes."""
    return {
        "pod": name,
        "preFilter": {"plugin": "", "code": "Success", "reasons": [], "nodeNames": None},
        "preFilterSkipped": ["NodePorts"],
        "filterAll": {"NodeResourcesFit": {"n3": copy.deepcopy(FAILED_NODE)}},
        "filter": {"n3": {"plugin": "NodeResourcesFit", **copy.deepcopy(FAILED_NODE)}},
        "feasible": ["n1", "n2"],
        "preScoreSkipped": [],
        "scores": {
            "NodeResourcesFit": {"weight": 1, "raw": {"n1": 37, "n2": 37}, "normalized": {"n1": 37, "n2": 37}},
            "TaintToleration": {"weight": 3, "raw": {"n1": 0, "n2": 0}, "normalized": {"n1": 100, "n2": 100}},
        },
        "total": {"n1": 337, "n2": 337},
        "best": ["n1", "n2"],
        "message": None,
        "preemption": None,
        "chosen": "n1",
    }


def preempting_cycle() -> JsonObject:
    """Return a preemptor's cycle: n1 and n2 are equally good candidates; two victims on n1 have the same rank."""
    return {
        "pod": "default/urgent",
        "preFilter": {"plugin": "", "code": "Success", "reasons": [], "nodeNames": None},
        "preFilterSkipped": [],
        "filterAll": {"NodeResourcesFit": {n: copy.deepcopy(FAILED_NODE) for n in ("n1", "n2", "n3")}},
        "filter": {n: {"plugin": "NodeResourcesFit", **copy.deepcopy(FAILED_NODE)} for n in ("n1", "n2", "n3")},
        "feasible": [],
        "preScoreSkipped": [],
        "scores": {},
        "total": {},
        "best": [],
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
        "preemption": {
            "code": "Success",
            "reasons": ["no new claims to deallocate"],
            "nominatedNode": "n1",
            "nominatedNodes": ["n1", "n2"],
            "victims": ["default/high", "default/twin-a", "default/twin-b"],
            "candidates": {
                "n1": {"victims": ["default/high", "default/twin-a", "default/twin-b"], "numPDBViolations": 0},
                "n2": {"victims": ["default/other"], "numPDBViolations": 0},
                "n3": {"victims": ["default/third"], "numPDBViolations": 1},
            },
        },
        "chosen": None,
    }


def objects() -> list[Json]:
    return [
        pod("high", priority=5, started="2026-01-01T00:00:00Z", node="n1"),
        pod("twin-a", priority=1, started="2026-01-01T00:00:01Z", node="n1"),
        pod("twin-b", priority=1, started="2026-01-01T00:00:01Z", node="n1"),
        pod("other", priority=1, started="2026-01-01T00:00:01Z", node="n2"),
        pod("third", priority=1, started="2026-01-01T00:00:01Z", node="n3"),
    ]


def recorded(*cycles: JsonObject, name: str = "family/h0001") -> RecordedCase:
    case: JsonObject = {
        "id": name,
        "family": name.split("/")[0],
        "note": "made for a test",
        "objects": objects(),
        "pods": [pod(str(cycle["pod"]).split("/")[1]) for cycle in cycles],
    }
    want: JsonObject = {"id": name, "kubernetes": "v1.36.3", "error": None, "cycles": list(cycles)}
    return RecordedCase("cycles", name, name.split("/")[0], "made for a test", "cases.jsonl:1", case, want)


def answered(case: RecordedCase) -> Answer:
    """Return the recorded answer of a case as a copy that tests may change."""
    return Answer(copy.deepcopy(case.want))


def at(value: Json, *path: str | int) -> Json:
    """Return the value at a path in decoded JSON."""
    for step in path:
        if isinstance(step, int):
            assert isinstance(value, list)
            value = value[step]
        else:
            assert isinstance(value, dict)
            value = value[step]
    return value


def put(value: Json, path: tuple[str | int, ...], new: Json) -> None:
    """Replace the value at a path in decoded JSON."""
    inner = at(value, *path[:-1])
    last = path[-1]
    if isinstance(last, int):
        assert isinstance(inner, list)
        inner[last] = new
    else:
        assert isinstance(inner, dict)
        inner[last] = new


def write_cases(path: Path, *cases: RecordedCase) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode({"case": each.case, "want": each.want}) + b"\n" for each in cases))
    return path
