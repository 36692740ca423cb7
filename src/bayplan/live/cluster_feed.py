"""Watch all objects that a scheduler needs through a cluster's API, with one reflector for each served kind.

Use it on one event loop. When all kinds are listed, it passes on all existing objects, ordered so that each object
follows those that it depends on, and then every change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
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
"""Selector of unfinished pods.

The server does not send finished ones, and reports a pod as deleted when it finishes.
"""

T = TypeVar("T", bound=KubernetesObject)
ObjectChange = Change[KubernetesObject]


class ClusterFeed:
    """Watches the objects of a cluster.

    Args:
        connection: the connection to the cluster's API.
        on_changes: the function to call with changes, in order within each kind.
    """

    def __init__(self, connection: ApiConnection, on_changes: Callable[[Sequence[ObjectChange]], None]) -> None:
        self._connection = connection
        self._on_changes = on_changes
        self._decoder = ObjectDecoder()
        self._reflectors: dict[type[KubernetesObject], Reflector[Any]] = {}
        self._is_flowing = False

    async def open(self) -> None:
        """Discover the kinds that the cluster serves.

        Raises:
            ServerUnavailable: the API does not respond, or is not ready; call this again later.
            InputError: the API denies access.
        """
        # Pods last, after the objects that they depend on.
        kinds = [kind.struct for kind in KINDS if kind.struct in WATCHED_KINDS and kind.struct is not Pod]
        for struct, path in (await served_paths(self._connection, [*kinds, Pod])).items():
            decode = partial(self._decode, struct)
            selector = UNFINISHED if struct is Pod else ""
            self._reflectors[struct] = Reflector(self._connection, path, decode, self._take, selector=selector)

    async def watch_during(self, work: Coroutine[object, object, None]) -> None:
        """Watch the kinds until a coroutine ends, including its cleanup.

        An exception while a change is decoded or passed on is a bug; it cancels the coroutine and is raised, because
        the caller must not continue with an old state.
        """
        try:
            async with asyncio.TaskGroup() as group:
                watching = [group.create_task(reflector.run()) for reflector in self._reflectors.values()]
                await work
                for task in watching:
                    task.cancel()
        except BaseExceptionGroup as problems:
            # The first exception has canceled everything else.
            raise problems.exceptions[0] from None

    def _decode(self, struct: type[KubernetesObject], raw: bytes) -> KubernetesObject:
        return self._decoder.decode(raw, struct)

    @property
    def is_synced(self) -> bool:
        """Whether all initial objects are known."""
        return bool(self._reflectors) and all(reflector.synced.is_set() for reflector in self._reflectors.values())

    async def wait_until_synced(self) -> None:
        """Wait until all initial objects are known; this does not end while the server refuses to list them."""
        await asyncio.gather(*(reflector.synced.wait() for reflector in self._reflectors.values()))

    def begin(self) -> None:
        """Pass on all known objects as additions, and every later change."""
        self._is_flowing = True
        known = [Change(None, item) for reflector in self._reflectors.values() for item in reflector.items.values()]
        self._on_changes(known)

    def _take(self, changes: Sequence[ObjectChange]) -> None:
        if self._is_flowing:
            self._on_changes(changes)

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object from the cache, or None."""
        reflector = self._reflectors.get(kind)
        return None if reflector is None else cast("T | None", reflector.items.get(key))
