"""The REST operations of kube-scheduler-simulator, with the same paths and documents, so that its clients keep working.

Where the original has a fault, this implementation differs: configurations are applied at once or refused as a whole,
an import accepts every export, and extenders are proxied without counting weights (docs/bayplan-api.md lists all
differences).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from bayplan.apiserver.http.access import Access
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.store.item import ADDED, Item, Write
from bayplan.apiserver.store.store import Compacted, Store
from bayplan.base.errors import BayplanError, InputError
from bayplan.extender.client import ExtenderClient
from bayplan.framework.extender_answers import ExtenderFailure
from bayplan.http_api.bodies import read_body
from bayplan.http_api.configuration_facts import check
from bayplan.http_api.document_loading import load_into
from bayplan.http_api.document_routes import MAX_IMPORT_BYTES
from bayplan.http_api.errors import RequestError
from bayplan.http_api.server_state import ServerState

ROOT = "/api/v1/"
ECHO_JSON = "application/json; charset=UTF-8"
ALLOWED_METHODS = "GET,HEAD,PUT,PATCH,POST,DELETE"
MAX_WAITING = 100_000
"""Maximum number of changes queued for a client before it is disconnected."""

EXPORTED = {
    "pods": ("pods", "v1", "Pod"),
    "nodes": ("nodes", "v1", "Node"),
    "pvs": ("persistentvolumes", "v1", "PersistentVolume"),
    "pvcs": ("persistentvolumeclaims", "v1", "PersistentVolumeClaim"),
    "storageClasses": ("storage.k8s.io/storageclasses", "storage.k8s.io/v1", "StorageClass"),
    "priorityClasses": ("scheduling.k8s.io/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass"),
    "namespaces": ("namespaces", "v1", "Namespace"),
}
"""The fields of an export, each with table, version and kind."""

WATCHED = {
    "pods": ("pods", "podsLastResourceVersion"),
    "nodes": ("nodes", "nodesLastResourceVersion"),
    "persistentvolumes": ("persistentvolumes", "pvsLastResourceVersion"),
    "persistentvolumeclaims": ("persistentvolumeclaims", "pvcsLastResourceVersion"),
    "storageclasses": ("storage.k8s.io/storageclasses", "scsLastResourceVersion"),
    "priorityclasses": ("scheduling.k8s.io/priorityclasses", "pcsLastResourceVersion"),
    "namespaces": ("namespaces", "namespaceLastResourceVersion"),
}
"""By the name of a kind in the response's lines: the watched table, and the query parameter with its resource version."""

VERBS = {
    "filter": "filter_verb",
    "prioritize": "prioritize_verb",
    "preempt": "preempt_verb",
    "bind": "bind_verb",
}

OPERATIONS: dict[str, tuple[str, ...]] = {
    "schedulerconfiguration": ("GET", "POST"),
    "reset": ("PUT",),
    "export": ("GET",),
    "import": ("POST",),
    "listwatchresources": ("GET",),
}

_log = logging.getLogger("bayplan.http_api")


def is_operation(path: str) -> bool:
    """Return whether a path is one of kube-scheduler-simulator's operations."""
    if not path.startswith(ROOT):
        return False
    first, _, rest = path[len(ROOT) :].partition("/")
    return (first in OPERATIONS and not rest) or (first == "extender" and bool(rest))


class KssApi:
    """Handles the operations of kube-scheduler-simulator.

    Args:
        state: the state of the server, as handlers read it.
        access: the access check.
        until_stored: waits until the writes of a request are durable; raises RequestError if storing them failed.
    """

    def __init__(self, state: ServerState, access: Access, until_stored: Callable[[Request], Awaitable[None]]) -> None:
        self._state = state
        self._access = access
        self._until_stored = until_stored
        # The events that end the watches.
        self._streams: dict[asyncio.Event, None] = {}

    async def answer(self, request: Request) -> Response:
        """Handle a request for one of the operations, and add CORS headers."""
        response = await self._answer(request)
        try:
            await self._until_stored(request)
        except RequestError as problem:
            _log.warning("%s %s: %s", request.method, request.scope["path"], problem)
            response = _message(500, "Internal Server Error")
        origin = request.headers.get("origin")
        response.headers["vary"] = "Origin"
        if origin is not None and self._access.allows_origin(origin):
            response.headers["access-control-allow-origin"] = origin
            response.headers["access-control-allow-credentials"] = "true"
        return response

    async def _answer(self, request: Request) -> Response:
        operation: str = request.scope["path"].removeprefix(ROOT)
        try:
            if request.method == "OPTIONS":
                # Browsers send preflight requests without the token, so don't require it here.
                Access("", allowed_origins=self._access.allowed_origins).check(request.headers, method=request.method)
                return Response(status_code=204, headers=_preflight(request))
            self._access.check(request.headers, method=request.method)
            if operation.startswith("extender/"):
                return await self._extender(request, operation.removeprefix("extender/"))
            handler = self._handlers().get((request.method, operation))
            return _message(405, "Method Not Allowed") if handler is None else await handler(request)
        except ApiError as problem:
            return _message(problem.code, problem.message)
        except BayplanError as problem:
            # As in the original, the reason is logged and clients receive only the status.
            _log.warning("%s %s: %s", request.method, request.scope["path"], problem)
        except ClientDisconnect:
            return _message(400, "Bad Request")
        except Exception:
            _log.exception("%s %s", request.method, request.scope["path"])
        return _message(500, "Internal Server Error")

    def _handlers(self) -> Mapping[tuple[str, str], Callable[[Request], Awaitable[Response]]]:
        return {
            ("GET", "schedulerconfiguration"): self._configuration,
            ("POST", "schedulerconfiguration"): self._configure,
            ("PUT", "reset"): self._reset,
            ("GET", "export"): self._export,
            ("POST", "import"): self._import,
            ("GET", "listwatchresources"): self._watch,
        }

    # --- configuration and reset --------------------------------------------------------------------------------------

    async def _configuration(self, request: Request) -> Response:
        return _document(self._state.server.setup.configuration.effective_document())

    async def _configure(self, request: Request) -> Response:
        given = _decode(await read_body(request))
        if given is None:
            return _message(500, "Internal Server Error")
        await self._state.server.configure(await self._merged_configuration(given))
        return Response(status_code=202)

    async def _merged_configuration(self, given: Mapping[str, Any]) -> str:
        """Return a configuration with the given fields, and the current values of all others.

        Raises:
            ConfigurationError: the configuration is invalid.
        """
        setup = self._state.server.setup
        # Extenders and profiles are lists. A list in the request replaces the current one.
        now = setup.configuration.effective_document()
        text = json.dumps({**now, **{name: value for name, value in given.items() if value is not None}})
        await self._state.off_loop(lambda: check(setup, text))
        return text

    async def _reset(self, request: Request) -> Response:
        self._state.server.reset()
        return Response(status_code=202)

    # --- export and import --------------------------------------------------------------------------------------------

    async def _export(self, request: Request) -> Response:
        server = self._state.server
        tables = server.backend.store.snapshot().tables
        configuration = server.setup.configuration.effective_document()
        return await self._state.off_loop(lambda: _exported(tables, configuration))

    async def _import(self, request: Request) -> Response:
        given = _decode(await read_body(request, MAX_IMPORT_BYTES))
        documents = None if given is None else _imported(given)
        if given is None or documents is None:
            return _message(400, "Bad Request")
        server, configuration = self._state.server, given.get("schedulerConfig")
        text = None if configuration is None else await self._merged_configuration(configuration)
        async with self._state.batches.turn:
            await load_into(server.backend, documents, replace=False)
        # Last, because a refused document must change nothing.
        if text is not None:
            await server.configure(text)
        return Response(status_code=200)

    # --- watch --------------------------------------------------------------------------------------------------------

    async def _watch(self, request: Request) -> Response:
        store = self._state.server.backend.store
        versions = {kind: request.query_params.get(parameter, "") for kind, (_, parameter) in WATCHED.items()}
        ending = asyncio.Event()
        return StreamingResponse(self._changes(store, versions, ending), media_type="application/json")

    async def _changes(self, store: Store, versions: Mapping[str, str], ending: asyncio.Event) -> AsyncIterator[bytes]:
        """Yield lines: the existing objects of tables for which no version is given, then the changes."""
        waiting: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING)

        def listener(kind: str) -> Callable[[Write], None]:
            def listen(write: Write) -> None:
                try:
                    waiting.put_nowait(_line(kind, write.type, write.new))
                except asyncio.QueueFull:
                    ending.set()

            return listen

        tokens, beginning = [], list[bytes]()
        self._streams[ending] = None
        try:
            for kind, (table, _) in WATCHED.items():
                first = _begin(store, kind, table, versions[kind])
                if first is not None:
                    beginning += first
                    tokens.append((table, store.listen(table, listener(kind), ending.set)))
            for line in beginning:
                yield line
            while not ending.is_set():
                getting = asyncio.ensure_future(waiting.get())
                ended = asyncio.ensure_future(ending.wait())
                done, _ = await asyncio.wait((getting, ended), return_when=asyncio.FIRST_COMPLETED)
                ended.cancel()
                if getting not in done:
                    getting.cancel()
                    break
                yield getting.result()
        finally:
            self._streams.pop(ending, None)
            for table, token in tokens:
                store.unlisten(table, token)

    def end_streams(self) -> None:
        """End all watches, so that their responses finish."""
        for ending in self._streams:
            ending.set()

    # --- extenders ----------------------------------------------------------------------------------------------------

    async def _extender(self, request: Request, rest: str) -> Response:
        """Forward a request to an extender of the configuration, and return the extender's response."""
        if request.method != "POST":
            return _message(405, "Method Not Allowed")
        verb, _, number = rest.partition("/")
        extenders = self._state.server.setup.configuration.extenders
        known = verb in VERBS and number.isascii() and number.isdigit() and int(number) < len(extenders)
        path = getattr(extenders[int(number)], VERBS[verb]) if known else ""
        if not path:
            return _message(404, "Not Found")
        arguments = _decode(await read_body(request))
        if arguments is None:
            return _message(400, "Bad Request")

        def call_extender() -> object:
            client = ExtenderClient(extenders[int(number)])
            try:
                return client.send(path, arguments)
            finally:
                client.close()

        try:
            return _document(await self._state.off_loop(call_extender))
        except ExtenderFailure as problem:
            raise InputError(extenders[int(number)].url_prefix, got=str(problem)) from None


def _preflight(request: Request) -> dict[str, str]:
    """Return the headers for the response to a CORS preflight request."""
    headers = {"access-control-allow-methods": ALLOWED_METHODS}
    asked = request.headers.get("access-control-request-headers")
    return headers if asked is None else {**headers, "access-control-allow-headers": asked}


def _message(status: int, text: str) -> Response:
    return Response(msgspec.json.encode({"message": text}) + b"\n", status, media_type=ECHO_JSON)


def _document(document: object) -> Response:
    return Response(msgspec.json.encode(document) + b"\n", media_type=ECHO_JSON)


def _decode(body: bytes) -> dict[str, Any] | None:
    """Return the object in a JSON body; None if the body is not a JSON object."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _imported(given: Mapping[str, Any]) -> list[dict[str, object]] | None:
    """Return the documents of an import; None if a field has a wrong type."""
    documents: list[dict[str, object]] = []
    for field, (_, version, kind) in EXPORTED.items():
        items = given.get(field)
        items = [] if items is None else items
        if not isinstance(items, list) or not all(isinstance(item, dict | None) for item in items):
            return None
        documents += [{"apiVersion": version, "kind": kind, **(item or {})} for item in items]
    return documents if isinstance(given.get("schedulerConfig"), dict | None) else None


def _exported(tables: Mapping[str, Any], configuration: object) -> Response:
    """Return the response with all objects, except those that exist in every cluster."""
    fields: list[bytes] = []
    for field, (table, _, _) in EXPORTED.items():
        items, keys = tables.get(table, ({}, []))
        kept = [items[key].raw for key in keys if not _is_of_every_cluster(field, key[1])]
        # Go encodes empty slices as null; kube-scheduler-simulator returns [] only for the kinds that it filters.
        empty = b"[]" if field in ("priorityClasses", "namespaces") else b"null"
        fields.append(b'"%s":%s' % (field.encode(), b"[" + b",".join(kept) + b"]" if kept else empty))
    fields.insert(len(fields) - 1, b'"schedulerConfig":' + msgspec.json.encode(configuration))
    return Response(b"{" + b",".join(fields) + b"}\n", media_type=ECHO_JSON)


def _is_of_every_cluster(field: str, name: str) -> bool:
    if field == "priorityClasses":
        return name.startswith("system-")
    return field == "namespaces" and (name.startswith("kube-") or name == "default")


def _begin(store: Store, kind: str, table: str, version: str) -> list[bytes] | None:
    """Return the lines that a watch starts with; None if its version is invalid or too old."""
    if not version:
        return [_line(kind, ADDED, item) for item in store.between(table)]
    if not (version.isascii() and version.isdigit()):
        return None
    try:
        return [_line(kind, write.type, write.new) for write in store.since(table, int(version))]
    except Compacted:
        return None


def _line(kind: str, event: str, item: Item) -> bytes:
    return b'{"Kind":"%s","EventType":"%s","Obj":%s}\n' % (kind.encode(), event.encode(), item.raw)
