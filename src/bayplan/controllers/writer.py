"""The write interface of controllers: creates, updates, deletes, removals of finalizers, and events.

Controllers read from an `ObjectStore` and write through a `Writer`, which hides where objects are stored: in the store
itself (`bayplan.sim.store_writer`), or behind an API (`bayplan.apiserver.bridge.api_writer`). When a call returns, the
store has the result. The simulator and the API server run the same controllers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, TypeVar

from bayplan.base.durations import MILLISECOND_NS
from bayplan.base.errors import InputError
from bayplan.objects.meta import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"

NORMAL, WARNING = "Normal", "Warning"
"""Types of events."""


class Propagation(StrEnum):
    """The propagation policy for the dependents of a deleted object."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class WriteRejected(InputError):
    """A write that admission rejected, or that conflicts with the stored object.

    Attributes:
        message: the reason, in the words of the API.
    """

    def __init__(self, what: str, message: str) -> None:
        self.message = message
        super().__init__(what, got=message)


ANSWER_WAIT_NS = 20 * MILLISECOND_NS
"""Delay after which an external service has most likely responded."""


class AwaitsAnswers(WriteRejected):
    """A write that waits for webhook responses. Retry it later; until then, no failure is reported."""


class Writer(Protocol):
    """Writes of controllers. All of them raise `WriteRejected` if the write is rejected.

    Attributes:
        records_events: whether events are recorded; if not, controllers do not create their messages.
    """

    @property
    def records_events(self) -> bool:
        """Whether events are recorded."""
        ...

    def create(self, new: T, now_ns: int) -> T:
        """Store a new object and return it as stored: with resource version, uid and creation time."""
        ...

    def update(self, new: T) -> T:
        """Replace an object with a newer version and return it as stored.

        Raises:
            InvariantError: the object does not exist, or has another uid.
        """
        ...

    def delete(
        self,
        item: KubernetesObject,
        now_ns: int,
        *,
        grace_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete an object immediately, or mark it as being deleted until finalizers and grace period have ended.

        Args:
            item: the stored object.
            now_ns: the current time.
            grace_seconds: the grace period of pods; None for `terminationGracePeriodSeconds` of the pod.
            propagation: the propagation policy. Background deletes dependents after the owner, Foreground before it;
                Orphan leaves them.
        """
        ...

    def drop_finalizer(self, item: KubernetesObject, finalizer: str) -> None:
        """Remove a finalizer from an object that has it.

        If it was the last finalizer of an object that is being deleted, delete the object.
        """
        ...

    def record(self, item: KubernetesObject, reason: str, message: str, component: str, *, type_: str = NORMAL) -> None:
        """Record an event about a stored object. Events are never rejected.

        Args:
            item: the object.
            reason, message: the reason and message in the words of kube-controller-manager.
            component: the component that reports it, e.g. ``replicaset-controller``.
            type_: `NORMAL` or `WARNING`.
        """
        ...
