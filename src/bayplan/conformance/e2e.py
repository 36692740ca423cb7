"""Recorded end-to-end runs of a real scheduler on a real API server, repeated with Bayplan's API, engine and requests.

A run is repeated step by step in virtual time, at the recorded instants, in process: no sockets, threads or real clock.
The engine's actions go to the API as the requests of `bayplan.client.exchanges`, as in every host. As in the recording,
there is no kubelet and no controller.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

import msgspec

from bayplan.apiserver.bridge.bridge import Bridge
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.in_process import answer_at_once
from bayplan.apiserver.store.store import Store
from bayplan.base.durations import MILLISECOND_NS
from bayplan.client.action_executor import ActionExecutor
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.cluster.store import ChangeEvent
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.e2e_runs import objects_with_uids
from bayplan.engine.actions import Action
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import Pick, Ties, first_by_name
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.live.leader_election import LeaderElectionOptions, LeaderElector
from bayplan.objects.kinds import KINDS
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.cluster_state import ClusterState

T = TypeVar("T", bound=KubernetesObject)

EPOCH_NS = 1_767_225_600_000_000_000
AFTERWARDS_MS = 50
"""Time for which a run continues after the last step, so that all expected events are written."""

HOST_NAME = "host"
SCHEDULER_AGENT = "kube-scheduler/v1.36.3"
_HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOT_STORED_AT_CREATION = ("PersistentVolume",)
_PLURALS = {kind.kind: kind for kind in KINDS}


def answer_e2e_case(case: JsonObject) -> JsonObject:
    """Return the observations of Bayplan's run of the recorded steps: ``{"id", "observed"}``.

    Args:
        case: the recorded run. Of its observations, only the choices among equally good nodes are used, and the names
            of the objects whose uids are in steps.
    """
    run = E2eRun(case)
    run.repeat(cast("list[JsonObject]", case["steps"]))
    return {"id": case["id"], "observed": run.observed()}


def following(
    case: JsonObject, queue_type: type[SchedulingQueue] = SchedulingQueue
) -> tuple[Pick, type[SchedulingQueue]]:
    """Return a pick function that chooses a pod's recorded node if it is among the best, and a queue type for it.

    The queue type stores the key of the last popped pod for the pick function.
    """
    bound = _recorded_bindings(case)
    popped = [""]

    class ScriptedQueue(queue_type):  # type: ignore[misc, valid-type]  # A class as an argument is none to mypy.
        """A queue that stores the key of the pod that it popped last."""

        def pop(self) -> QueuedPod | None:
            """Return the next pod; see `SchedulingQueue.pop`."""
            queued: QueuedPod | None = super().pop()
            popped[0] = queued.key if queued is not None else ""
            return queued

    def pick(state: ClusterState, ties: Ties) -> int:
        row = state.nodes.row_of.get(bound.get(popped[0], ""), -1)
        return row if row in list(map(int, ties)) else first_by_name(state, ties)

    return pick, ScriptedQueue


class E2eRun:
    """An API, and the scheduler that uses it once started.

    Args:
        case: the recorded run.
    """

    def __init__(self, case: JsonObject) -> None:
        self.now = EPOCH_NS
        backend = Backend(Store(), clock=lambda: self.now / 1e9)
        bootstrap(backend)
        self.api = Api(backend)
        self.calls: list[Json] = []
        self._case = case
        self._uids = dict(objects_with_uids(case["observed"]))
        self._bridge = Bridge(backend, seed=0)
        self._changes: list[ChangeEvent] = []
        self._bridge.listen(lambda changes: self._changes.extend(changes))
        self._scheduler: Scheduler | None = None
        self._executor = ActionExecutor(self, self, host_name=HOST_NAME, now_ns=lambda: self.now)
        self._executor.engine = self
        self._is_executing = False
        self._elector = LeaderElector(
            LeaderElectionOptions(),
            identity=f"{HOST_NAME}_00000000-0000-4000-8000-000000000000",
            controller=_first_profile(case),
            now_ns=lambda: self.now,
            jitter=lambda: 0.0,
        )
        self._paused: list[tuple[int, int, Callable[[], None]]] = []
        self._pauses = 0

    # --- the steps ----------------------------------------------------------------------------------------------------

    def repeat(self, steps: Sequence[JsonObject]) -> None:
        """Execute the steps at their instants.

        Everything that a step waits for has happened by then, as in the recording.
        """
        end_ms = 0.0
        for step in steps:
            at_ms = cast("float", step["at_ms"])
            self.advance(EPOCH_NS + int(at_ms * MILLISECOND_NS))
            operation = step["op"]
            if operation == "create":
                self._create(cast("JsonObject", step["object"]))
            elif operation == "patch":
                self._patch(step)
            elif operation == "delete":
                self._delete(step)
            elif operation == "scheduler starts":
                self._start_scheduler()
            self.settle()
            seconds = step.get("seconds")
            end_ms = at_ms + 1000 * (seconds if isinstance(seconds, int | float) else 0)
        self.advance(EPOCH_NS + int((end_ms + AFTERWARDS_MS) * MILLISECOND_NS))

    def _create(self, document: JsonObject) -> None:
        kind = _PLURALS[str(document["kind"])]
        path = self._collection(kind.kind, document)
        body = self._with_our_uids(msgspec.json.encode(document))
        self._send_step("POST", path, body)
        name = cast("JsonObject", document["metadata"])["name"]
        if kind.kind in _NOT_STORED_AT_CREATION and "status" in document:
            self._merge(f"{path}/{name}/status", {"status": document["status"]})
        if kind.kind == "Node":
            # The recorded server did not taint new nodes. This server always does, so the taints are reset.
            taints = cast("JsonObject", document.get("spec") or {}).get("taints")
            self._merge(f"{path}/{name}", {"spec": {"taints": taints}})

    def _merge(self, path: str, patch: JsonObject) -> None:
        self._send_step("PATCH", path, msgspec.json.encode(patch), "application/merge-patch+json")

    def _patch(self, step: JsonObject) -> None:
        path = f"{self._collection(str(step['kind']))}/{step['name']}{step['subresource']}"
        self._send_step("PATCH", path, self._with_our_uids(msgspec.json.encode(step["patch"])), str(step["type"]))

    def _delete(self, step: JsonObject) -> None:
        path = f"{self._collection(str(step['kind']))}/{step['name']}"
        grace = step["gracePeriodSeconds"]
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        self._send_step("DELETE", path, msgspec.json.encode(options))

    def _collection(self, kind: str, document: Mapping[str, Json] | None = None) -> str:
        row = _PLURALS[kind]
        version = str(document["apiVersion"]) if document is not None else row.api_version
        prefix = f"/apis/{version}" if row.group else f"/api/{version}"
        namespace = ""
        if row.namespaced:
            metadata = cast("JsonObject", document["metadata"]) if document is not None else {}
            namespace = f"/namespaces/{metadata.get('namespace') or 'default'}"
        return f"{prefix}{namespace}/{row.plural}"

    def _send_step(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> None:
        request = ApiRequest(method, path, body, content_type)
        response = answer_at_once(self.api, request, user_agent="conformance/1.0")
        if not response.ok:
            raise RuntimeError(f"{method} {path}: {response.message}")

    def _with_our_uids(self, body: bytes) -> bytes:
        """Return a body with the uids of recorded objects replaced by those of Bayplan's objects with the same names."""

        def ours(match: re.Match[str]) -> str:
            kind, _, key = self._uids.get(match[0], "").partition(" ")
            found = self.get(_PLURALS[kind].struct, key) if kind in _PLURALS else None
            return found.metadata.uid if found is not None else match[0]

        return _UID.sub(ours, body.decode()).encode()

    def _start_scheduler(self) -> None:
        config = cast("JsonObject", self._case.get("config") or {})
        configuration = load_configuration({**_HEADER, **config})
        pick, queue_type = following(self._case)
        scheduler = assemble_scheduler(
            configuration,
            in_tree_registry(),
            feature_gates=FeatureGates(),
            start_ns=self.now,
            pick=pick,
            queue_type=queue_type,
        )
        self._go_on(self._lead(scheduler))

    def _lead(self, scheduler: Scheduler) -> RequestSteps[None]:
        yield from self._elector.acquire()
        yield from self._elector.announce()
        self._scheduler = scheduler
        yield from self._elector.renew()

    # --- time ---------------------------------------------------------------------------------------------------------

    def advance(self, until_ns: int) -> None:
        """Advance virtual time to an instant, stopping whenever something is due."""
        self.settle()
        while True:
            due = [entry[0] for entry in self._paused[:1]]
            if self._scheduler is not None:
                wakeup_ns = self._scheduler.next_wakeup_ns(self.now)
                due += [] if wakeup_ns is None else [wakeup_ns]
                due.append(self._executor.next_wakeup_ns())
            next_ns = min(due, default=until_ns + 1)
            if next_ns > until_ns:
                break
            self.now = max(self.now, next_ns)
            if self._scheduler is not None:
                self._execute(self._scheduler.tick(self.now))
                self._executor.tick()
            while self._paused and self._paused[0][0] <= self.now:
                heapq.heappop(self._paused)[2]()
            self._execute(())
            self.settle()
        self.now = max(self.now, until_ns)

    def settle(self) -> None:
        """Let the scheduler process changes and schedule ready pods until it has no more work at this time."""
        while True:
            self._bridge.flush()
            scheduler = self._scheduler
            if scheduler is None:
                return
            changes, self._changes = self._changes, []
            for change in changes:
                self._execute(scheduler.handle(change.old, change.new, self.now))
            report = scheduler.schedule_one(self.now)
            if report is not None:
                self._execute(report.actions)
            elif not changes:
                return

    # --- actions and requests of the scheduler ------------------------------------------------------------------------

    def _execute(self, actions: Sequence[Action]) -> None:
        self._executor.execute(actions)
        if not self._is_executing:
            self._is_executing = True
            self._executor.run_all()
            self._is_executing = False

    def _go_on(self, steps: Generator[ApiRequest | float, ApiResponse, object]) -> None:
        """Continue the leader election until it waits, or ends."""
        try:
            step = next(steps)
            while not isinstance(step, float):
                step = steps.send(self._call(step))
        except StopIteration:
            return
        self.call_later(step, partial(self._go_on, steps))

    def _call(self, request: ApiRequest) -> ApiResponse:
        response = answer_at_once(self.api, request, user_agent=SCHEDULER_AGENT)
        if request.method != "GET" and "/leases" not in request.path and "LeaderElection" not in request.body.decode():
            body = cast("Json", msgspec.json.decode(request.body))
            call: JsonObject = {"method": request.method, "path": request.path, "body": body, "status": response.status}
            self.calls.append(call)
        return response

    # --- the channel of the executor, and the known objects -----------------------------------------------------------

    def send(self, request: ApiRequest, *, is_event: bool, answer: Callable[[ApiResponse], None]) -> ApiResponse:
        """Execute a request and return the API's response."""
        return self._call(request)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after a delay in virtual time."""
        self._pauses += 1
        heapq.heappush(self._paused, (self.now + int(seconds * 1e9), self._pauses, call))

    def wake(self) -> None:
        """Do nothing: everything is executed before the clock advances."""

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object of the API by kind and key, or None."""
        self._bridge.flush()
        return self._bridge.store.get(kind, key)

    # --- reports of the executor to the engine ------------------------------------------------------------------------

    def binding_failed(
        self, pod: Pod, message: str, *, plugin: str = "", point: str = "", generation: int | None = None
    ) -> None:
        """Report a failed binding to the scheduler."""
        assert self._scheduler is not None
        self._execute(self._scheduler.binding_failed(pod, message, self.now, plugin=plugin, point=point))

    def binding_written(self, pod: Pod, *, generation: int | None = None) -> None:
        """Do nothing: the scheduler gets all changes of the API."""

    def preemption_failed(self, pod: Pod, *, generation: int | None = None) -> None:
        """Report a failed preemption to the scheduler, which retries the pod."""
        assert self._scheduler is not None
        self._scheduler.preemption_failed(pod, self.now)

    # --- results ------------------------------------------------------------------------------------------------------

    def observed(self) -> JsonObject:
        """Return calls, events and pods in the recorded format."""
        return observed(self.calls, self._list("/apis/events.k8s.io/v1/events"), self._list("/api/v1/pods"))

    def _list(self, path: str) -> list[JsonObject]:
        response = answer_at_once(self.api, ApiRequest("GET", path), user_agent="conformance/1.0")
        return cast("list[JsonObject]", msgspec.json.decode(response.body)["items"])


def observed(calls: list[Json], events: Sequence[JsonObject], pods: Sequence[JsonObject]) -> JsonObject:
    """Return calls, events and pods in the recorded format."""
    named = {str(cast("JsonObject", item["metadata"])["name"]): _pod(item) for item in pods}
    return {"calls": calls, "events": [_event(item) for item in events], "pods": cast("Json", named)}


def _event(item: JsonObject) -> JsonObject:
    names = ("type", "reason", "action", "note", "reportingController", "regarding", "related", "series", "eventTime")
    return {name: item.get(name) for name in names}


def _pod(item: JsonObject) -> JsonObject:
    spec, status = cast("JsonObject", item["spec"]), cast("JsonObject", item["status"])
    conditions = cast("list[JsonObject]", status.get("conditions") or [])
    times = ("lastProbeTime", "lastTransitionTime")
    return {
        "nodeName": spec.get("nodeName"),
        "nominatedNodeName": status.get("nominatedNodeName"),
        "phase": status.get("phase"),
        "terminating": "deletionTimestamp" in cast("JsonObject", item["metadata"]),
        "priority": spec.get("priority"),
        "conditions": [{name: value for name, value in each.items() if name not in times} for each in conditions],
    }


def _first_profile(case: JsonObject) -> str:
    config = cast("JsonObject", case.get("config") or {})
    profiles = cast("list[JsonObject]", config.get("profiles") or [{}])
    return str(profiles[0].get("schedulerName", "default-scheduler"))


def _recorded_bindings(case: JsonObject) -> dict[str, str]:
    """Return the name of the node that each pod was bound to, by the pod's key."""
    found = {}
    for call in cast("list[JsonObject]", cast("JsonObject", case["observed"])["calls"]):
        body = cast("JsonObject", call.get("body") or {})
        if body.get("kind") == "Binding":
            metadata, target = cast("JsonObject", body["metadata"]), cast("JsonObject", body["target"])
            found[f"{metadata['namespace']}/{metadata['name']}"] = str(target["name"])
    return found
