"""Repeat recorded scenarios of kube-scheduler-simulator with Bayplan's scheduler, and return its annotations.

The scenarios are described in `conformance/annotations/README.md`. They run in virtual time, on Bayplan's API, like
other recorded runs (`bayplan.conformance.e2e`). A stand-in for kwok sets bound pods to Running and removes pods that
are being deleted. `bayplan.conformance.annotation_values` determines which values can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from bayplan.apiserver.rest.in_process import answer_at_once
from bayplan.base.durations import SECOND_NS
from bayplan.client.requests import ApiRequest
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.e2e import E2eRun, following
from bayplan.conformance.scripted_server import Response, scripted
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import RecordLevel
from bayplan.extender.connections import ExtenderConnections
from bayplan.formats.result_annotations import encode
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.live.attempt_results import attempt_results
from bayplan.live.decision_store import DecisionStore
from bayplan.plugins.registry import in_tree_registry

STEP_SECONDS = 4
"""Time between two steps: longer than the first backoff. The recording waited until nothing had changed for 2 s."""

AFTERWARDS_SECONDS = 20
STARTED = "2026-01-01T00:00:00Z"


def answer_annotation_case(case: JsonObject) -> JsonObject:
    """Return the annotations of every attempt by pod, oldest first: ``{"id", "attempts"}``.

    Args:
        case: the recorded scenario. Of its results, only the pods' nodes are used, to choose among equally good nodes.
    """
    with _extender(case) as address:
        config = json.loads(json.dumps(case["config"]).replace("127.0.0.1:8890", address))
        run = _Run(case, config)
        try:
            for step in cast("list[Json]", case["steps"]):
                run.take_step(cast("list[JsonObject]", step if isinstance(step, list) else [step]))
            run.pass_time(AFTERWARDS_SECONDS)
            attempts = json.dumps(run.attempts()).replace(address, "127.0.0.1:8890")
        finally:
            run.close()
    return {"id": case["id"], "attempts": json.loads(attempts)}


@contextmanager
def _extender(case: JsonObject) -> Iterator[str]:
    """Run the extender of a scenario, which responds to each request as recorded; yield its address."""
    responses: dict[str, list[Response]] = {}
    behaviour = cast("JsonObject", case.get("extender") or {})
    for exchange in cast("list[Any]", behaviour.get("exchanges") or []):
        body = json.dumps(exchange["response"])
        responses.setdefault(exchange["path"], []).append({"status": 200, "body": body})
    with scripted(responses) as server:
        yield server.address


class _Run(E2eRun):
    """One scenario; its scheduler runs from the beginning and records full decisions."""

    def __init__(self, case: JsonObject, config: Mapping[str, Any]) -> None:
        super().__init__({"config": dict(config), "observed": _bindings(case)})
        self._decisions = DecisionStore(RecordLevel.FULL)
        self._start_scheduler()

    def close(self) -> None:
        """Close the connections to the extender."""
        self._connections.close()

    def _start_scheduler(self) -> None:
        configuration = load_configuration(cast("dict[str, object]", self._case["config"]))
        self._connections = ExtenderConnections(configuration.extenders)
        pick, queue_type = following(self._case)
        scheduler = assemble_scheduler(
            configuration,
            in_tree_registry(),
            feature_gates=FeatureGates(),
            start_ns=self.now,
            pick=pick,
            queue_type=queue_type,
            extenders=self._connections.extenders,
        )
        scheduler.records = self._decisions
        self._scheduler = scheduler

    # --- steps --------------------------------------------------------------------------------------------------------

    def take_step(self, items: Sequence[JsonObject]) -> None:
        """Create, patch or delete the objects of a step together, and wait for the cluster to become idle."""
        for item in items:
            if "patch" in item:
                kind, name, patch = cast("list[Any]", item["patch"])
                path = f"{self._collection(kind)}/{name}"
                self._send_step("PATCH", path, json.dumps(patch).encode(), "application/json-patch+json")
            elif "delete" in item:
                kind, name = cast("list[Any]", item["delete"])
                self._send_step("DELETE", f"{self._collection(kind)}/{name}", b"{}")
            else:
                self._create_with_status(item)
        self.pass_time(STEP_SECONDS)

    def _create_with_status(self, document: JsonObject) -> None:
        self._create(document)
        if document["kind"] == "PersistentVolumeClaim" and "status" in document:
            name = cast("JsonObject", document["metadata"])["name"]
            path = f"{self._collection('PersistentVolumeClaim', document)}/{name}/status"
            self._merge(path, {"status": document["status"]})

    def pass_time(self, seconds: int) -> None:
        """Let virtual time pass; pods start and end immediately.

        The simulator wraps plugins without registering their events, so any event causes a retry of the failed pods.
        """
        assert self._scheduler is not None
        queue = self._scheduler.queue
        for _ in range(seconds):
            self.settle()
            failed = [queued.pod for queued in queue.unschedulable() if not queued.gating_plugin]
            queue.activate(failed, self.now)
            self.settle()
            while self._run_pods():
                self.settle()
            self.advance(self.now + SECOND_NS)

    def _run_pods(self) -> bool:
        """Do what kwok does: start bound pods, and remove terminating ones; return whether there were any."""
        worked = False
        for pod in self._list("/api/v1/pods"):
            metadata, spec, status = (cast("JsonObject", pod[part]) for part in ("metadata", "spec", "status"))
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            if "deletionTimestamp" in metadata:
                self._send_step("DELETE", path, json.dumps({"gracePeriodSeconds": 0}).encode())
                worked = True
            elif spec.get("nodeName") and status.get("phase") != "Running":
                self._merge(f"{path}/status", {"status": {"phase": "Running", "startTime": STARTED}})
                worked = True
        return worked

    # --- results ------------------------------------------------------------------------------------------------------

    def attempts(self) -> JsonObject:
        """Return the annotations of the attempts of each pod."""
        decisions, found = self._decisions, dict[str, list[Json]]()
        for number, record in enumerate(decisions):
            points = decisions.late_points(number)
            if record.frame < 0 or points is None:
                continue
            outputs, extended = decisions.late_results(number), bool(self._connections.extenders)
            results = attempt_results(decisions.decision(number), points, outputs, extended=extended)
            found.setdefault(record.pod.partition("/")[2], []).append(cast("Json", encode(results)))
        return cast("JsonObject", found)

    def _list(self, path: str) -> list[JsonObject]:
        response = answer_at_once(self.api, ApiRequest("GET", path), user_agent="conformance/1.0")
        return cast("list[JsonObject]", json.loads(response.body)["items"])


def _bindings(case: JsonObject) -> JsonObject:
    """Return the recorded nodes of pods in the form of a recorded run."""
    nodes = cast("dict[str, str | None]", case["nodeName"])
    calls: list[Json] = [
        {
            "body": {
                "kind": "Binding",
                "metadata": {"namespace": "default", "name": pod},
                "target": {"kind": "Node", "name": node},
            }
        }
        for pod, node in nodes.items()
        if node
    ]
    return {"calls": calls, "events": [], "pods": {}}
