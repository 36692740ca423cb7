"""A host for tests of exchanges: it records its calls, and answers requests from lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

import msgspec

from bayplan.client.event_recorder import PodEvent
from bayplan.client.exchanges import Exchange, exchanges_of
from bayplan.client.pre_bind import BindLimits
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.engine.actions import Action, Emit
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.pod import Pod, PodSpec

T = TypeVar("T", bound=KubernetesObject)
Answers = Mapping[str, list[ApiResponse]]

POD_PATH = "/api/v1/namespaces/n/pods"
OK = ApiResponse(200, b"{}")


def pod(name: str = "p") -> Pod:
    metadata = ObjectMeta(name=name, namespace="n", uid=f"uid-{name}", resource_version="7", generation=1)
    return Pod(metadata=metadata, spec=PodSpec(scheduler_name="second" if name == "vip" else "default-scheduler"))


def refusal(status: int, message: str = "no") -> ApiResponse:
    return ApiResponse(status, msgspec.json.encode({"kind": "Status", "message": message}))


class Host:
    """A host that records its calls, and answers requests from lists."""

    def __init__(self, answers: Answers | None = None, objects: tuple[KubernetesObject, ...] = ()) -> None:
        self.answers = {request: list(found) for request, found in (answers or {}).items()}
        self.objects = {(type(item), item.key): item for item in objects}
        self.log: list[str] = []
        self.bound: list[str] = []
        self.notes: list[str] = []
        self.bodies: dict[str, object] = {}
        self.pauses = 0
        self.limits = BindLimits()
        self.on_pause: Callable[[], None] = lambda: None
        self.on_request: Callable[[str], None] = lambda name: None
        self.binding: Exchange | None = None

    def get(self, kind: type[T], key: str) -> T | None:
        return cast("T | None", self.objects.get((kind, key)))

    def now_ns(self) -> int:
        return 1_800_000_000_000_000_000

    def record_event(self, event: PodEvent) -> None:
        self.log.append(f"event {event.reason} of {event.pod.metadata.name} by {event.controller}")
        self.notes.append(event.note)

    def bind_limits(self, pod: Pod) -> BindLimits:
        return self.limits

    def binding_failed(self, pod: Pod, message: str, *, plugin: str, point: str) -> None:
        self.log.append(f"{point} of {pod.key} failed in {plugin}: {message}")

    def binding_written(self, pod: Pod) -> None:
        self.bound.append(pod.key)

    def cancel_pre_bind(self, pod: Pod) -> bool:
        phase = self.binding.pre_bind if self.binding is not None and self.binding.pod.key == pod.key else None
        return phase is not None and phase.cancel()

    def preemption_failed(self, pod: Pod) -> None:
        self.log.append(f"preemption for {pod.key} failed")

    def run(self, exchange: Exchange) -> None:
        try:
            step = next(exchange.steps)
            while True:
                if isinstance(step, ApiRequest):
                    step = exchange.steps.send(self._answer(step))
                    continue
                self.pauses += 1
                self.on_pause()
                step = next(exchange.steps)
        except StopIteration:
            return

    def _answer(self, request: ApiRequest) -> ApiResponse:
        name = f"{request.method} {request.path}"
        self.log.append(name)
        self.on_request(name)
        if request.body:
            self.bodies[name] = msgspec.json.decode(request.body)
        found = self.answers.get(name)
        return OK if not found else found.pop(0) if len(found) > 1 else found[0]

    def execute(self, *actions: Action) -> list[str]:
        for exchange in exchanges_of(actions, self):
            self.binding = exchange if exchange.is_binding else self.binding
            self.run(exchange)
        return self.log


def emit(of: Pod, reason: str) -> Emit:
    return Emit(of, "Normal", reason, "Doing", "note")
