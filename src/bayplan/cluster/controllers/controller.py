"""What a controller is, and what it has to work with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import msgspec

from bayplan.cluster.deletion import Deletion
from bayplan.cluster.pod_maker import PodMaker
from bayplan.cluster.store import ChangeEvent, Kind, ObjectStore

UNLIMITED = 2**31


class ControllerTools(msgspec.Struct, frozen=True):
    """What controllers work with.

    Attributes:
        store: to read, and to write what is no pod.
        deletion: the one way to delete anything.
        pods: makes pods from templates.
        burst: how many pods one turn of a controller may create or delete; it goes on in its next one, at the same time.
    """

    store: ObjectStore
    deletion: Deletion
    pods: PodMaker
    burst: int = UNLIMITED


class Controller(ABC):
    """One control loop.

    Attributes:
        kind: the objects that it reconciles. It is called for a key of them when one changes, and when an object that
            one of them controls changes.
        watches: further kinds but pods whose events it wants to see, see `keys_for`.
        watches_pods: whether it wants to see the events of all pods. Asked again after every event of another kind.
        follows_pods: whether it wants to see every event of a pod that one of its objects controls, see `pod_changed`.
    """

    kind: ClassVar[Kind]
    watches: ClassVar[tuple[Kind, ...]] = ()
    follows_pods: ClassVar[bool] = False

    def __init__(self, tools: ControllerTools) -> None:
        self.store = tools.store
        self.deletion = tools.deletion
        self.pods = tools.pods
        self.burst = tools.burst

    @property
    def watches_pods(self) -> bool:
        """Whether it wants to see the events of all pods."""
        return False

    @abstractmethod
    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Bring one object a step nearer to what it asks for.

        Args:
            key: of the object, which may be gone.
            now_ns: the time.

        Returns:
            When to be called again although nothing changed, or None.

        Raises:
            InputError: what the object asks for can't be had (a priority class that does not exist). It is called
                again when a priority class or the object changes.
        """

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the keys to reconcile after an event of a kind in `watches`, or of a pod."""
        raise AssertionError(f"{type(self).__name__} watches {event.kind.__name__} and does not say why")

    def pod_changed(self, key: str, event: ChangeEvent) -> None:
        """Note an event of a pod that the object of this key controls; the object is reconciled after it anyway."""
        raise AssertionError(f"{type(self).__name__} follows pods and does nothing about it")
