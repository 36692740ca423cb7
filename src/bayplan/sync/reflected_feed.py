"""A live cluster as a feed: one reflector per kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document
from bayplan.client.connection import ApiConnection
from bayplan.client.list_errors import list_error
from bayplan.client.reflector import RETRY_TIMES, Change, Reflector, RetryTimes
from bayplan.client.requests import ApiRequest
from bayplan.objects.meta import ObjectMeta
from bayplan.sync.feed import Bookmark, Changed, Listed, OnChange, PartListed, RawDocuments
from bayplan.sync.followed_kinds import BY_PLURAL, FOLLOWED_KINDS, FollowedKind, ObjectRef
from bayplan.sync.policy import SyncPolicy

_UNKNOWN, _FORBIDDEN = 404, 403
_document = msgspec.json.Decoder(dict[str, object]).decode


class _Names(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct, gc=False):
    metadata: _Names


class _Followed(msgspec.Struct, gc=False):
    """A watched object of which only the names are decoded.

    Attributes:
        metadata: name, namespace, uid and resource version only.
        raw: the whole object as JSON; emptied after it was emitted, to save memory.
    """

    metadata: ObjectMeta
    raw: bytes = b""

    @property
    def key(self) -> str:
        """``namespace/name``, or the name."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


_named = msgspec.json.Decoder(_Named).decode


def _decode(raw: bytes) -> _Followed:
    found = _named(raw).metadata
    names = ObjectMeta(
        name=found.name, namespace=found.namespace, uid=found.uid, resource_version=found.resource_version
    )
    return _Followed(names, raw)


class ReflectedFeed:
    """A live cluster as a feed; see `bayplan.sync.feed.Feed`.

    Args:
        connection: the connection to the cluster.
        policy: the policy with the namespaces and pods to read.
        kinds: the plural names of the kinds; all synced kinds by default.
        name: the name of the cluster, for messages.
        once: whether to end when everything is listed.
        read: decodes the required fields of an object.
        parts: whether to emit parts of lists while they arrive.
        retry_times: when to retry after a failure.
    """

    def __init__(
        self,
        connection: ApiConnection,
        policy: SyncPolicy,
        *,
        kinds: Sequence[str] | None = None,
        name: str = "source",
        once: bool = False,
        read: Callable[[bytes], Document] = _document,
        parts: bool = False,
        retry_times: RetryTimes = RETRY_TIMES,
    ) -> None:
        self.kinds: tuple[str, ...] = ()
        self.left_out: dict[str, str] = {}
        self._wanted = tuple(kinds) if kinds is not None else tuple(kind.plural for kind in FOLLOWED_KINDS)
        self._connection = connection
        self._policy = policy
        self._name = name
        self._once = once
        self._read = read
        self._parts = parts
        self._retry_times = retry_times
        self._reflectors: dict[str, Reflector[_Followed]] = {}

    @property
    def problems(self) -> dict[str, str]:
        """The current problems of the reflectors, by plural name."""
        return {plural: each.problem for plural, each in self._reflectors.items() if each.problem}

    async def open(self) -> None:
        """Discover the kinds that the cluster serves and allows reading.

        Raises:
            InputError: a kind can't be listed for another reason, or pods can't be listed.
        """
        found: list[str] = []
        for plural in self._wanted:
            response = await self._connection.send(ApiRequest("GET", BY_PLURAL[plural].path(), query="limit=1"))
            if response.ok:
                found.append(plural)
            elif response.status in (_UNKNOWN, _FORBIDDEN) and plural != "pods":
                self.left_out[plural] = response.message
            else:
                raise list_error(self._name, plural, response)
        self.kinds = tuple(found)

    async def run(self, on_change: OnChange) -> None:
        """Watch until cancelled, or until everything is listed once.

        Raises:
            ExceptionGroup: of an InputError if the feed ends after the lists, and one of them can't be decoded.
        """
        async with asyncio.TaskGroup() as group:
            running = []
            for plural in self.kinds:
                followed = _FollowedCollection(plural, on_change, self._policy, self._read)
                reflector = Reflector(
                    self._connection,
                    BY_PLURAL[plural].path(),
                    _decode,
                    followed.changed,
                    selector=_selector(BY_PLURAL[plural], self._policy),
                    on_listed=followed.listed,
                    on_part=followed.part if self._parts else None,
                    retry_times=self._retry_times,
                    once=self._once,
                )
                self._reflectors[plural] = reflector
                running.append(group.create_task(self._reflect(plural, reflector)))
            if self._once:
                await asyncio.gather(*(each.synced.wait() for each in self._reflectors.values()))
                for task in running:
                    task.cancel()

    async def _reflect(self, plural: str, reflector: Reflector[_Followed]) -> None:
        try:
            await reflector.run()
        except (msgspec.MsgspecError, UnicodeDecodeError) as odd:
            what = f"{plural} of {self._name} can't be listed: the response can't be decoded: {odd}"
            raise InputError(what, hint=f"kubectl get --raw {BY_PLURAL[plural].path()}") from None


class _FollowedCollection:
    """Converts the output of one reflector to a list and later changes."""

    def __init__(self, plural: str, on_change: OnChange, policy: SyncPolicy, read: Callable[[bytes], Document]) -> None:
        self._plural = plural
        self._read = read
        self._on_change = on_change
        self._namespaces = frozenset(policy.namespaces) if BY_PLURAL[plural].namespaced else frozenset[str]()
        self._initial: list[bytes] | None = []
        self._emitted: list[ObjectRef] = []

    def part(self, items: Sequence[_Followed]) -> None:
        """Emit a part of the first list."""
        raws: list[bytes] = []
        for item in items:
            if not self._namespaces or item.metadata.namespace in self._namespaces:
                raws.append(item.raw)
                item.raw = b""
        self._on_change(PartListed(self._plural, RawDocuments(raws, self._read)))

    def changed(self, changes: Sequence[Change[_Followed]]) -> None:
        """Emit the changes that the reflector reports, or collect them until the first list is complete."""
        for old, new in changes:
            item = new if new is not None else old
            assert item is not None
            if self._namespaces and item.metadata.namespace not in self._namespaces:
                continue
            if new is None:
                metadata = item.metadata
                names = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
                self._on_change(Changed(self._plural, {"metadata": names}, deleted=True))
                continue
            raw, new.raw = new.raw, b""
            if self._initial is not None and not raw:
                self._emitted.append(ObjectRef(self._plural, new.metadata.namespace, new.metadata.name))
            elif self._initial is not None:
                self._initial.append(raw)
            else:
                self._on_change(Changed(self._plural, self._read(raw)))

    def listed(self, version: str) -> None:
        """Emit the complete first list. After a later list, whose differences were emitted as changes, emit a bookmark."""
        revision = int(version) if version.isdecimal() else 0
        if self._initial is None:
            self._on_change(Bookmark(self._plural, revision))
            return
        raws, emitted = self._initial, self._emitted
        self._initial, self._emitted = None, []
        self._on_change(Listed(self._plural, RawDocuments(raws, self._read), revision, emitted))


def _selector(kind: FollowedKind, policy: SyncPolicy) -> str:
    return urlencode({"labelSelector": policy.selector}) if policy.selector and kind.plural == "pods" else ""
