"""Recorded cycles of the real scheduler with HTTP extenders: the same extenders, asked over loopback, the same outcome.

The cases and how they were recorded: conformance/extenders/README.md.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from bayplan.conformance.cluster_objects import ClusterObjects, read_objects
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.cycle import ScheduleResult, schedule_pod
from bayplan.engine.extenders import bind_by_extenders
from bayplan.engine.queued_pod import key_of
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.tie_set import BestRows
from bayplan.extender.connections import ExtenderConnections
from bayplan.framework.configuration.loading import load_configuration_mapping
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.cluster_state import ClusterState
from tests.extender.servers import Json, ScriptedServer, scripted

FILE = Path(__file__).resolve().parents[2] / "conformance" / "extenders" / "extenders.jsonl.gz"
RECORDS = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]


class World:
    """The scheduler of a case. Of equally good nodes it takes the one that was recorded."""

    def __init__(self, case: Json) -> None:
        self.wanted = ""
        gates = FeatureGates()
        configuration = load_configuration_mapping(case["config"], feature_gates=gates)
        self.connections = ExtenderConnections(configuration.extenders)
        self.scheduler = assemble_scheduler(
            configuration,
            in_tree_registry(),
            feature_gates=gates,
            record_level=RecordLevel.OFF,
            pick=self._pick,
            extenders=self.connections.extenders,
        )
        self.objects: ClusterObjects = read_objects(case)
        for item in (*self.objects.others, *self.objects.bound):
            self.scheduler.handle(None, item, 0)
        for pod in self.objects.pending:
            self.scheduler.pods[key_of(pod)] = pod
            if pod.status.nominated_node_name:
                self.scheduler.queue.nominate(pod)

    def _pick(self, state: ClusterState, rows: BestRows) -> int:
        recorded = state.nodes.row_of.get(self.wanted, -1)
        return recorded if recorded in list(rows) else int(rows[0])


def run(world: World, server: ScriptedServer, want: Json) -> Json:
    """Run one pod's cycle as the recording did; return what happened in the recorded format."""
    scheduler = world.scheduler
    pod = scheduler.pods[want["pod"]]
    world.wanted = want["host"] or want["nominated"] or ""
    got: Json = dict.fromkeys(want) | {"pod": want["pod"], "evaluated": 0, "feasible": 0, "rejected": False}
    state = CycleState()
    profile = scheduler.profiles[pod.spec.scheduler_name]
    plan = scheduler.plans.plan_for(profile, pod)
    result = schedule_pod(
        plan, pod, state, scheduler.nominated_pods, world._pick, scheduler.sampling, scheduler.extenders
    )
    if result.row < 0:
        got |= failed(scheduler, pod, result, state)
    else:
        host = scheduler.state.nodes.names[result.row] or ""
        got |= {"host": host, "evaluated": result.evaluated_nodes, "feasible": result.feasible_nodes}
        binder, status = bind_by_extenders(scheduler.extenders, pod, host)
        got["bound"] = bool(binder)
        if status.message:
            got["bindError"] = status.message
        scheduler.assume(plan, pod, want["pod"], result.row)
    got["exchanges"] = [{"path": path, "request": names_of(request)} for path, request in server.take()]
    return got


def failed(scheduler: Scheduler, pod: Pod, result: ScheduleResult, state: CycleState) -> Json:
    assert result.failure is not None
    if result.diagnosis is None:
        return {"message": result.failure.message}
    profile = scheduler.profiles[pod.spec.scheduler_name]
    found, status = scheduler.run_post_filter_plugins(profile, pod, result.diagnosis, state)
    return {
        "rejected": True,
        "message": result.diagnosis.message(),
        "unschedulablePlugins": sorted(result.diagnosis.unschedulable_plugins),
        "postFilter": status.code.text,
        "nominated": None if found is None else found.nominated_node_name,
    }


def names_of(request: Json) -> Json:
    """Keep of an exchange what was recorded of it: names instead of objects."""
    kept: Json = dict(request)
    if "Pod" in request:
        kept["Pod"] = {"metadata": {"name": request["Pod"]["metadata"]["name"]}}
    if request.get("Nodes"):
        items = [{"metadata": {"name": item["metadata"]["name"]}} for item in request["Nodes"]["items"]]
        kept["Nodes"] = {"metadata": request["Nodes"]["metadata"], "items": items}
    if request.get("NodeNameToVictims"):
        kept["NodeNameToVictims"] = {
            node: victims | {"Pods": [{"metadata": {"name": pod["metadata"]["name"]}} for pod in victims["Pods"]]}
            for node, victims in request["NodeNameToVictims"].items()
        }
    return kept


def told(outcome: Json) -> Json:
    """Return what is compared: a cleared nomination is as good as none; upstream asks for scores and tells errors in any order."""
    scoring = ("/prioritize", "/p")
    return outcome | {
        "exchanges": sorted(outcome["exchanges"], key=lambda it: it["path"] if it["path"].endswith(scoring) else ""),
        "nominated": outcome["nominated"] or None,
        "message": re.sub(r"\[(.*)\]", lambda match: str(sorted(match[1].split(", "))), outcome["message"] or ""),
    }


@pytest.mark.parametrize("record", [pytest.param(record, id=record["case"]["id"]) for record in RECORDS])
def test_the_real_scheduler_came_to_the_same_outcome(record: Json) -> None:
    case = record["case"]
    with scripted(case["extended"]["responses"]) as server:
        case, want = moved(case, server), moved(record["want"], server, back=case)
        world = World(case)
        with world.connections:
            got = [told(run(world, server, outcome)) for outcome in want["extended"]]
    assert got == [told(outcome) for outcome in want["extended"]]


def moved(value: Json, server: ScriptedServer, back: Json | None = None) -> Json:
    """Return a case or its answer with the address of the server in place of the recorded one."""
    address = (back or value)["extended"]["address"]
    found: Json = json.loads(json.dumps(value).replace(address, server.address))
    return found
