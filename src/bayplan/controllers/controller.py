"""The base class of controllers, and the objects that it is created with (`ControllerTools`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import ClassVar, Protocol, TypeVar

import msgspec

from bayplan.base.durations import MILLISECOND_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.cluster.store import ChangeEvent, Kind, ObjectStore
from bayplan.controllers.pod_factory import PodFactory, PreparedTemplate
from bayplan.controllers.writer import NORMAL, WARNING, AwaitsAnswers, Writer, WriteRejected
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod, PodSpec

UNLIMITED = 2**31

T = TypeVar("T")

Enqueue = Callable[["Controller", str, int], None]
"""A function that queues a reconcile; its arguments are the controller, the key and the time (ns)."""


class ControllerTools(msgspec.Struct, frozen=True):
    """The objects and limits that every controller is created with.

    Attributes:
        store: the store to read from.
        writer: the writer to write through.
        pods: creates pods from templates.
        burst: the maximum number of pods that one reconcile creates or deletes. The next reconcile, at the same time,
            continues.
    """

    store: ObjectStore
    writer: Writer
    pods: PodFactory
    burst: int = UNLIMITED


class PartialFailure(msgspec.Struct, frozen=True):
    """The result of a reconcile of which the API rejected some writes.

    Attributes:
        problem: why the API rejected the first of them.
        again_ns: the time (ns) at which to reconcile again even if nothing changes, or None.
    """

    problem: InputError
    again_ns: int | None = None


ReconcileResult = int | None | PartialFailure
"""The result of a reconcile: the time (ns) of the next one, None, or `PartialFailure`."""


class RejectedWrites:
    """Collects rejected writes: ``with rejected: write()``. So one rejected write does not prevent the others.

    Attributes:
        problem: why the first of them was rejected, or None.
    """

    def __init__(self) -> None:
        self.problem: InputError | None = None
        self._made_progress = False

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(problem, InputError):
            self._made_progress = self._made_progress or problem is None
            return False
        self.problem = self.problem or problem
        return True

    def result(self, again_ns: int | None, now_ns: int) -> ReconcileResult:
        """Return the result of a reconcile that is due again at a time (ns), or None.

        If writes were rejected and none succeeded, an immediate reconcile would fail like this one, so there is none.
        """
        if self.problem is None:
            return again_ns
        if again_ns is not None and again_ns <= now_ns and not self._made_progress:
            again_ns = None
        return PartialFailure(self.problem, again_ns)


class Adopter(Protocol):
    """Adopts and releases the objects that a workload owns; see `bayplan.controllers.adoption`."""

    def claim(self, kind: Kind, key: str, now_ns: int) -> bool:
        """Handle the pending changes of what an owner owns; return whether any object was written."""
        ...


class Controller(ABC):
    """One control loop.

    Attributes:
        component: the reporting component of the events that the controller records.
        kind: the kind that it reconciles. `reconcile` is called with an object's key when the object, or an object that
            it controls, changes.
        watches: the additional kinds, except pods, whose events it receives, see `keys_for`.
        watches_pods: whether it receives the events of all pods. The manager reads it again after every event of
            another kind.
        follows_pods: whether it receives every event of a pod that one of its objects controls, see `pod_changed`.
        retry_delays_ns: the first and the longest delay (ns) before a failed reconcile is repeated on a server, by
            default those of client-go's work queues.
        ownership: adopts and releases the objects that a workload owns, before each reconcile, or None.
    """

    kind: ClassVar[Kind]
    component: ClassVar[str] = ""
    watches: ClassVar[tuple[Kind, ...]] = ()
    follows_pods: ClassVar[bool] = False
    retry_delays_ns: ClassVar[tuple[int, int]] = (5 * MILLISECOND_NS, 1000 * SECOND_NS)
    ownership: Adopter | None = None

    def __init__(self, tools: ControllerTools) -> None:
        self.store = tools.store
        self.writer = tools.writer
        self.pods = tools.pods
        self.burst = tools.burst
        self._reports = tools.writer.records_events
        self._turns: dict[str, int] = {}

    @property
    def watches_pods(self) -> bool:
        """Whether the controller receives the events of all pods."""
        return False

    @abstractmethod
    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Move one object a step closer to its spec.

        Args:
            key: the key of the object, which may be deleted.
            now_ns: the current time.

        Returns:
            The time (ns) at which to call this again even if nothing changes, or None. `PartialFailure` if a pod was
            rejected, for example because a priority class does not exist. The manager then calls again when a priority
            class, a quota or the object changes.

        Raises:
            InputError: a write was refused, and nothing more was done.
        """

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the keys to reconcile after an event of a kind in `watches`, or of a pod."""
        raise AssertionError(f"{type(self).__name__} watches {event.kind.__name__} objects, but has no keys_for()")

    def failed(self, key: str, problem: InputError) -> None:  # noqa: B027
        """Report a failed reconcile of an object; called by the manager, which retries."""

    # --- shared by several controllers ------------------------------------------------------------------------------

    def record(self, item: KubernetesObject, reason: str, message: str, *, type_: str = NORMAL) -> None:
        """Record an event about an object."""
        self.writer.record(item, reason, message, self.component, type_=type_)

    def create_pod(
        self,
        owner: KubernetesObject,
        prepared: PreparedTemplate,
        now_ns: int,
        *,
        name_prefix: str = "",
        spec: PodSpec | None = None,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> Pod:
        """Create one pod of an owner, and record an event about the pod or the error; see `PodFactory.create`."""
        try:
            pod = self.pods.create(
                prepared, now_ns, name_prefix=name_prefix, spec=spec, labels=labels, annotations=annotations
            )
        except AwaitsAnswers:
            raise
        except WriteRejected as refusal:
            self.record(owner, "FailedCreate", f"Error creating: {refusal.message}", type_=WARNING)
            raise
        if self._reports:
            self.record(owner, "SuccessfulCreate", f"Created pod: {pod.metadata.name}")
        return pod

    def delete_pod(self, owner: KubernetesObject, pod: Pod, now_ns: int) -> None:
        """Delete a pod of an owner, and record an event about it."""
        self.writer.delete(pod, now_ns)
        if self._reports:
            self.record(owner, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    def write_each(
        self, key: str, items: list[T], write: Callable[[T], None], rejected: RejectedWrites
    ) -> tuple[list[T], bool]:
        """Write up to `burst` items of the object with this key; those whose writes were rejected before come last.

        Returns:
            The items whose writes succeeded, and whether `burst` leaves items for the next call.
        """
        start = self._turns.pop(key, 0) % max(len(items), 1)
        turn = (items[start:] + items[:start])[: self.burst]
        written: list[T] = []
        for each in turn:
            with rejected:
                write(each)
                written.append(each)
        if len(written) < len(turn):
            self._turns[key] = start + len(turn) - len(written)
        return written, len(items) > len(turn)

    def pod_changed(self, key: str, event: ChangeEvent) -> None:
        """Record an event of a pod that the object with this key controls.

        A pod that the object no longer controls is reported as deleted, a pod that it adopted as added. The manager
        reconciles the object afterwards.
        """
        raise AssertionError(f"{type(self).__name__} follows pods, but has no pod_changed()")
