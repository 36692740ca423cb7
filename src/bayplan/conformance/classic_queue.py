"""Answer traces of the classic queue: replay the operations of a case and return the state after each operation.

The operations are described in `conformance/classic/README.md`; times are milliseconds since the start.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, convert, field
from msgspec.structs import replace

from bayplan.base.durations import MILLISECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.version import CLASSIC_KUBERNETES_VERSION
from bayplan.classic.queue import ClassicQueue
from bayplan.conformance.cases import Json, JsonObject
from bayplan.engine.queued_pod import QueuedPod, key_of, uid_of
from bayplan.objects import kinds
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod

SECOND_MS = 1000
FLUSH_UNSCHEDULABLE_MS = 30 * SECOND_MS
LAST = "@last"


class _Op(Struct):
    op: str
    pod: str = ""
    to: str = ""
    node: str = ""
    ms: int = 0
    cycle: int | None = None


class _Case(Struct):
    id: str
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    ops: list[_Op] = field(default_factory=list)


def answer_classic_queue_case(case: JsonObject) -> JsonObject:
    """Return Bayplan's answer to a trace of the classic queue, in the recorded format."""
    trace = convert(case, _Case)
    replay = _Replay({key: _pod(key, document) for key, document in trace.pods.items()})
    steps: list[Json] = [replay.step(op) for op in trace.ops]
    return {"id": trace.id, "kubernetes": CLASSIC_KUBERNETES_VERSION, "error": None, "steps": steps}


def _pod(key: str, document: dict[str, Any]) -> Pod:
    pod = kinds.decode({"apiVersion": "v1", "kind": "Pod", **document})
    assert isinstance(pod, Pod)
    metadata: ObjectMeta = pod.metadata
    name, namespace = metadata.name or key, metadata.namespace or "default"
    uid = metadata.uid or f"{namespace}/{name}"
    return replace(pod, metadata=replace(metadata, name=name, namespace=namespace, uid=uid))


class _Replay:
    def __init__(self, pods: dict[str, Pod]) -> None:
        self._pods = pods
        # The nominations of this queue do not check whether a pod exists or has a node, so any pod will do.
        self._queue = ClassicQueue({}, {}, lambda key: Pod())
        self._now_ms = 0
        self._last: QueuedPod | None = None

    def step(self, op: _Op) -> JsonObject:
        if op.pod == LAST and self._last is None:
            return {**self._state(), "result": "(none)"}
        result, error = self._do(op)
        answer = self._state()
        if result:
            answer["result"] = result
        if error:
            answer["error"] = error
        return answer

    def _named(self, key: str) -> Pod:
        if key == LAST:
            assert self._last is not None
            return self._last.pod
        if key not in self._pods:
            raise InputError("operation", got=f'no pod "{key}"', wanted="a pod of the case")
        return self._pods[key]

    def _do(self, op: _Op) -> tuple[str, str]:
        """Execute one operation; return its result and its error, "" for none."""
        queue, now_ns = self._queue, self._now_ms * MILLISECOND_NS
        match op.op:
            case "add":
                queue.add(self._named(op.pod), now_ns)
            case "addIfNotPresent":
                queue.add_if_not_present(self._named(op.pod), now_ns)
            case "unschedulable":
                record = queue.new_record(self._named(op.pod), now_ns)
                return "", queue.add_unschedulable_if_not_present(record, now_ns, scheduling_cycle=op.cycle)
            case "pop":
                popped = queue.pop()
                if popped is None:
                    return "(empty)", ""
                self._last = popped
                return popped.key, ""
            case "update":
                queue.update(self._named(op.pod), self._named(op.to), now_ns)
            case "delete":
                queue.delete(self._named(op.pod))
            case "moveAll":
                queue.move_all_to_active_queue(now_ns)
            case "assignedAdded" | "assignedUpdated":
                queue.assigned_pod_added(self._named(op.pod), now_ns)
            case "nominate":
                queue.nominator.add(self._named(op.pod), op.node or None)
            case "deleteNominated":
                queue.nominator.remove(uid_of(self._named(op.pod)))
            case _:
                self._pass_time(op)
        return "", ""

    def _pass_time(self, op: _Op) -> None:
        queue = self._queue
        if op.op == "advance":
            self._now_ms += op.ms
        elif op.op == "flushBackoff":
            queue.flush_backoff(self._now_ms * MILLISECOND_NS)
        elif op.op == "flushUnschedulable":
            queue.flush_unschedulable(self._now_ms * MILLISECOND_NS)
        elif op.op == "run":
            end_ms = self._now_ms + op.ms
            while (tick_ms := self._now_ms - self._now_ms % SECOND_MS + SECOND_MS) <= end_ms:
                self._now_ms = tick_ms
                queue.flush_backoff(tick_ms * MILLISECOND_NS)
                if tick_ms % FLUSH_UNSCHEDULABLE_MS == 0:
                    queue.flush_unschedulable(tick_ms * MILLISECOND_NS)
            self._now_ms = end_ms
        else:
            raise InputError("operation", got=repr(op.op), wanted="an operation of conformance/classic/README.md")

    def _state(self) -> JsonObject:
        queue = self._queue
        backoff = queue.pod_backoff
        return {
            "atMs": self._now_ms,
            "active": _names(queue.active()),
            "backoff": _names(queue.backing_off()),
            "unschedulable": _names(queue.unschedulable()),
            "nominated": {node: list[Json](queue.nominator.on_node(node).values()) for node in queue.nominator},
            "backoffMap": {
                key: {"attempts": attempts, "untilMs": (backoff.backoff_time_ns(key) or 0) // MILLISECOND_NS}
                for key, attempts in backoff.attempts.items()
            },
            "schedulingCycle": queue.scheduling_cycle,
            "moveRequestCycle": queue.move_request_cycle,
        }


def _names(waiting: list[QueuedPod]) -> list[Json]:
    return list[Json](sorted(key_of(queued.pod) for queued in waiting))
