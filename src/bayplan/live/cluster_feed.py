"""What a scheduler has to know of a cluster, followed through its API: a reflector for each kind that the cluster serves.

Belongs to an event loop. Changes are handed on when all kinds are known, the first time all that there is, in an order in which
nothing stands before what it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from bayplan.client.connection import ApiConnection
from bayplan.client.discovery import served_paths
from bayplan.client.reflector import Change, Reflector
from bayplan.cluster.watched_kinds import WATCHED_KINDS
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.objects.kinds import KINDS
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

UNFINISHED = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
"""Which pods count: the server does not even tell of those that have ended, and says that one is gone when it ends."""

T = TypeVar("T", bound=KubernetesObject)
ObjectChange = Change[KubernetesObject]


class ClusterFeed:
    """Follows a cluster.

    Args:
        connection: to its API.
        on_changes: is called with changes in the order in which each kind's came.
    """

    def __init__(self, connection: ApiConnection, on_changes: Callable[[Sequence[ObjectChange]], None]) -> None:
        self._connection = connection
        self._on_changes = on_changes
        self._decoder = ObjectDecoder()
        self._reflectors: dict[type[KubernetesObject], Reflector[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_flowing = False

    async def open(self) -> None:
        """Find out what the cluster serves, and begin to follow it.

        Raises:
            InputError: the API can't be reached.
        """
        # Pods last: what they need stands before them.
        kinds = [kind.struct for kind in KINDS if kind.struct in WATCHED_KINDS and kind.struct is not Pod]
        for struct, path in (await served_paths(self._connection, [*kinds, Pod])).items():
            decode = partial(self._decode, struct)
            selector = UNFINISHED if struct is Pod else ""
            self._reflectors[struct] = Reflector(self._connection, path, decode, self._take, selector=selector)
        self._tasks = [asyncio.create_task(reflector.run()) for reflector in self._reflectors.values()]

    def _decode(self, struct: type[KubernetesObject], raw: bytes) -> KubernetesObject:
        return self._decoder.decode(raw, struct)

    async def close(self) -> None:
        """Follow no longer."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    @property
    def is_synced(self) -> bool:
        """Return whether all that there was at the beginning is known."""
        return bool(self._reflectors) and all(reflector.synced.is_set() for reflector in self._reflectors.values())

    async def wait_until_synced(self) -> None:
        """Wait until all that there was at the beginning is known; it goes on as long as the server does not let us read."""
        await asyncio.gather(*(reflector.synced.wait() for reflector in self._reflectors.values()))

    def problems(self) -> list[str]:
        """Return why kinds can't be followed just now."""
        return [reflector.problem for reflector in self._reflectors.values() if reflector.problem]

    def begin(self) -> None:
        """Hand on all that is known, as additions, and from now on every change."""
        self._is_flowing = True
        known = [Change(None, item) for reflector in self._reflectors.values() for item in reflector.items.values()]
        self._on_changes(known)

    def _take(self, changes: Sequence[ObjectChange]) -> None:
        if self._is_flowing:
            self._on_changes(changes)

    def find(self, kind: type[T], key: str) -> T | None:
        """Return an object as the API has it, as far as that is known, or None."""
        reflector = self._reflectors.get(kind)
        return None if reflector is None else cast("T | None", reflector.items.get(key))
