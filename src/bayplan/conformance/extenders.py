"""Answer cases with HTTP extenders: the engine's decisions, and its requests to extenders, over HTTP on loopback.

The format is described in `conformance/extenders/README.md`. As in sampled cases (`bayplan.conformance.sampled`),
``follow`` in a case names the nodes that the real scheduler chose among the best, and ``hosts`` in the answer are all
equally good nodes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from bayplan.base.errors import BayplanError
from bayplan.base.version import KUBERNETES_VERSION
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.cluster_objects import ClusterObjects, read_objects
from bayplan.conformance.sampled import take
from bayplan.conformance.scripted_server import ScriptedServer, scripted
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.cycle import ScheduleResult, schedule_pod
from bayplan.engine.extenders import bind_by_extenders
from bayplan.engine.queued_pod import key_of
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import first_by_name
from bayplan.extender.connections import ExtenderConnections
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry

SCORING_VERBS = ("/prioritize", "/p")
"""Paths of scoring requests in the cases; their order varies, because upstream sends them concurrently."""


def answer_extender_case(case: JsonObject) -> JsonObject:
    """Return Bayplan's answer to a case with extenders; an error if upstream would reject the case."""
    answer: JsonObject = {
        "id": case["id"],
        "kubernetes": KUBERNETES_VERSION,
        "error": None,
        "cycles": None,
        "extended": None,
    }
    script: Any = case["extended"]
    with scripted(script["responses"]) as server:
        moved: JsonObject = json.loads(json.dumps(case).replace(script["address"], server.address))
        try:
            world = _World(moved)
        except BayplanError as problem:
            answer["error"] = str(problem)
            return answer
        with world.connections:
            cycles = [world.run(key, server) for key in world.objects.pods_to_schedule]
        extended: Json = json.loads(json.dumps(cycles).replace(server.address, script["address"]))
    answer["extended"] = extended
    return answer


class _World:
    """The scheduler and the objects of a case."""

    def __init__(self, case: JsonObject) -> None:
        gates = FeatureGates()
        written = case["config"]
        assert isinstance(written, dict)
        configuration = load_configuration(dict[str, object](written), feature_gates=gates)
        self.connections = ExtenderConnections(configuration.extenders)
        self._follow: dict[str, Json] = {}
        self.scheduler: Scheduler = assemble_scheduler(
            configuration,
            in_tree_registry(),
            feature_gates=gates,
            record_level=RecordLevel.OFF,
            pick=first_by_name,
            extenders=self.connections.extenders,
        )
        self.objects: ClusterObjects = read_objects(case)
        for item in (*self.objects.others, *self.objects.bound):
            self.scheduler.handle(None, item, 0)
        for pod in self.objects.pending:
            self.scheduler.pods[key_of(pod)] = pod
            if pod.status.nominated_node_name:
                self.scheduler.queue.nominator.add(pod)
        follow = case.get("follow")
        if isinstance(follow, list):
            self._follow = dict(zip(self.objects.pods_to_schedule, follow, strict=True))

    def run(self, key: str, server: ScriptedServer) -> JsonObject:
        """Run one pod's cycle, and bind the pod if an extender does; return the result in the recorded format."""
        scheduler = self.scheduler
        pod, state = scheduler.pods[key], CycleState()
        plan = scheduler.plans.plan_for(scheduler.profiles[pod.spec.scheduler_name], pod)
        result = schedule_pod(
            plan,
            pod,
            state,
            scheduler.nominated_pods,
            take(self._follow.get(key)),
            scheduler.sampling,
            scheduler.extenders,
        )
        recorded: JsonObject = {
            "pod": key,
            "host": None,
            "hosts": [],
            "evaluated": 0,
            "feasible": 0,
            "message": None,
            "rejected": False,
            "nominated": None,
            "bound": None,
        }
        if result.row < 0:
            recorded |= _failed(scheduler, pod, result, state)
        else:
            names = scheduler.state.nodes.names
            host = names[result.row] or ""
            hosts = list[Json](sorted(names[row] or "" for row in np.asarray(result.ties).tolist()))
            recorded |= {"host": host, "hosts": hosts}
            recorded |= {"evaluated": result.evaluated_nodes, "feasible": result.feasible_nodes}
            binder, status = bind_by_extenders(scheduler.extenders, pod, host)
            recorded["bound"] = bool(binder)
            if status.message:
                recorded["bindError"] = status.message
            scheduler.assume(plan, pod, key, result.row)
        recorded["exchanges"] = [{"path": path, "request": names_of(request)} for path, request in server.take()]
        return as_compared(recorded)


def _failed(scheduler: Scheduler, pod: Pod, result: ScheduleResult, state: CycleState) -> JsonObject:
    if result.diagnosis is None:
        return {"message": result.failure.message if result.failure is not None else None}
    profile = scheduler.profiles[pod.spec.scheduler_name]
    found, status = scheduler.run_post_filter_plugins(profile, pod, result.diagnosis, state)
    return {
        "rejected": True,
        "message": result.diagnosis.message(),
        "unschedulablePlugins": list[Json](sorted(result.diagnosis.unschedulable_plugins)),
        "postFilter": status.code.text,
        "nominated": None if found is None else found.nominated_node_name,
    }


def as_compared(result: JsonObject) -> JsonObject:
    """Return the result of a pod without the details that vary upstream.

    A cleared nomination equals none. Errors of dry runs and scoring requests may be in any order.
    """
    exchanges: Any = result["exchanges"]
    message = result["message"]
    compared: JsonObject = dict(result)
    compared["nominated"] = result["nominated"] or None
    compared["message"] = re.sub(r"\[(.*)\]", _sorted_list, message) if isinstance(message, str) else None
    compared["exchanges"] = sorted(exchanges, key=_scoring_last)
    return compared


def _scoring_last(exchange: Any) -> str:
    path: str = exchange["path"]
    return path if path.endswith(SCORING_VERBS) else ""


def _sorted_list(match: re.Match[str]) -> str:
    return f"[{', '.join(sorted(match[1].split(', ')))}]"


def names_of(request: Any) -> JsonObject:
    """Return a request with only the recorded parts: names instead of pods and nodes."""
    kept: JsonObject = dict(request)
    if "Pod" in request:
        kept["Pod"] = _name_of(request["Pod"])
    if request.get("Nodes"):
        nodes = request["Nodes"]
        kept["Nodes"] = {"metadata": nodes["metadata"], "items": [_name_of(item) for item in nodes["items"]]}
    if request.get("NodeNameToVictims"):
        kept["NodeNameToVictims"] = {
            node: victims | {"Pods": [_name_of(pod) for pod in victims["Pods"]]}
            for node, victims in request["NodeNameToVictims"].items()
        }
    return kept


def _name_of(item: Any) -> JsonObject:
    return {"metadata": {"name": item["metadata"]["name"]}}
