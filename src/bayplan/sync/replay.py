"""Replay of a recording in its recorded timing: as a feed to sync, or by applying the recorded workloads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part, text
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.sync.feed import Changed, Listed, OnChange
from bayplan.sync.followed_kinds import ObjectRef
from bayplan.sync.known_objects import ref_of
from bayplan.sync.playback_clock import PlaybackClock
from bayplan.sync.timed_change import Applied, Recording

APPLY = "application/apply-patch+yaml"
_NOT_FOUND = 404
_TURN = 200
_encode = msgspec.json.encode


class ReplayFeed:
    """A recording of a cluster as a feed; see `bayplan.sync.feed.Feed`.

    Seeking forward emits all changes in between immediately. Seeking back emits each kind's objects at the new position
    as a list, so objects that were created later disappear.

    Args:
        recording: a recording of a cluster, not of applied workloads.
        playback: the playback position.
    """

    def __init__(self, recording: Recording, playback: PlaybackClock) -> None:
        self.kinds = recording.header.kinds
        self.left_out: dict[str, str] = {}
        self._recording = recording
        self._playback = playback

    @property
    def problems(self) -> dict[str, str]:
        """No problems; see `Feed`."""
        return {}

    async def open(self) -> None:
        """Do nothing: the kinds are in the header."""

    async def run(self, on_change: OnChange) -> None:
        """Emit each change at its time, again after seeking back; return at the end of the recording."""
        again = False
        while not await self._run_once(on_change, again=again):
            again = True

    async def _run_once(self, on_change: OnChange, *, again: bool) -> bool:
        """Emit the recording from its start; return False after seeking back, which requires another run.

        Args:
            on_change: the receiver of the changes.
            again: whether this is a repeated run, which first emits the state at the current position as lists.
        """
        state: dict[str, dict[ObjectRef, Document]] = {kind: {} for kind in self.kinds}
        catching_up, since_turn, seen_ns = again, 0, 0
        for offset_ns, change in self._recording.changes():
            if isinstance(change, Applied):
                continue
            if catching_up and offset_ns > self._playback.position_ns:
                catching_up = False
                _emit_lists(state, on_change)
            if catching_up:
                _note(state, change)
                continue
            if not await self._playback.wait_until(offset_ns, seen_ns):
                return False
            seen_ns = offset_ns
            on_change(change)
            since_turn += 1
            if since_turn >= _TURN:
                since_turn = 0
                await asyncio.sleep(0)
        if catching_up:
            _emit_lists(state, on_change)
        return True


def _note(state: dict[str, dict[ObjectRef, Document]], change: Listed | Changed) -> None:
    objects = state.setdefault(change.plural, {})
    if isinstance(change, Listed):
        objects.clear()
        objects.update((ref_of(change.plural, document), document) for document in change.documents)
    elif change.deleted:
        objects.pop(ref_of(change.plural, change.document), None)
    else:
        objects[ref_of(change.plural, change.document)] = change.document


def _emit_lists(state: dict[str, dict[ObjectRef, Document]], on_change: OnChange) -> None:
    for plural, objects in state.items():
        on_change(Listed(plural, list(objects.values())))


class ApplyReplay:
    """Applies and deletes the workloads of a trace; the target's controllers create the pods.

    Args:
        recording: the recording of workloads.
        playback: the playback position; it must not be moved back.
        send: the function that sends requests to the target.
        path_of: the function that returns the path of a collection, by apiVersion, kind and namespace; None for a kind
            that is not served.

    Attributes:
        applied, deleted: the numbers of objects so far.
        problems: messages about the objects that could not be applied or deleted.
    """

    def __init__(
        self,
        recording: Recording,
        playback: PlaybackClock,
        send: Callable[[ApiRequest], Awaitable[ApiResponse]],
        path_of: Callable[[str, str, str], str | None],
    ) -> None:
        self.applied = 0
        self.deleted = 0
        self.problems: list[str] = []
        self._recording = recording
        self._playback = playback
        self._send = send
        self._path_of = path_of

    async def run(self) -> None:
        """Apply and delete each workload at its time.

        Raises:
            InputError: the playback position was moved back.
        """
        seen_ns = 0
        for offset_ns, change in self._recording.changes():
            if not await self._playback.wait_until(offset_ns, seen_ns):
                raise InputError(
                    "seek",
                    got="an earlier position",
                    wanted="a later position, because applied changes can't be undone",
                )
            seen_ns = offset_ns
            if isinstance(change, Applied):
                await self._do(change)

    async def _do(self, change: Applied) -> None:
        document = change.document
        metadata = part(document, "metadata")
        version, kind = text(document, "apiVersion"), text(document, "kind")
        namespace, name = text(metadata, "namespace") or "default", text(metadata, "name")
        collection = self._path_of(version, kind, namespace)
        if collection is None:
            self.problems.append(f"{version} {kind} {namespace}/{name}: no such kind in the target")
            return
        path = f"{collection}/{quote(name)}"
        if change.deleted:
            response = await self._send(ApiRequest("DELETE", path, _encode({"propagationPolicy": "Background"})))
            self.deleted += response.ok
            if response.status == _NOT_FOUND:
                return
        else:
            request = ApiRequest("PATCH", path, _encode(document), APPLY, "fieldManager=bayplan-replay&force=true")
            response = await self._send(request)
            if response.status == _NOT_FOUND and await self._made_namespace(namespace):
                response = await self._send(request)
            self.applied += response.ok
        if not response.ok:
            self.problems.append(f"{kind} {namespace}/{name}: {response.message}")

    async def _made_namespace(self, namespace: str) -> bool:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        return (await self._send(ApiRequest("POST", "/api/v1/namespaces", _encode(body)))).ok
