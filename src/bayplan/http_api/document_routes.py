"""Handlers for documents: apply a text with several documents, write batches, export and import the cluster, drain a node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import cast
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.store import Snapshot
from bayplan.http_api.answers import JSON, json_answer
from bayplan.http_api.bodies import read_body, read_struct
from bayplan.http_api.configuration_facts import check
from bayplan.http_api.contract.documents import Imported
from bayplan.http_api.contract.nodes import Drained, EvictionRefused
from bayplan.http_api.document_batch import MAX_BATCH_BYTES
from bayplan.http_api.document_loading import load_into
from bayplan.http_api.document_writes import ApplyRequest, apply_text, message_of, send_request
from bayplan.http_api.errors import RequestError
from bayplan.http_api.query import Query
from bayplan.http_api.server_state import ServerState
from bayplan.objects.pod import Pod

MAX_IMPORT_BYTES = 256 << 20
ITEMS_A_PIECE = 500
NOT_EXPORTED = frozenset(("events",))
"""Tables that record events and are not part of the cluster's state."""


async def apply(state: ServerState, request: Request, query: Query) -> Response:
    """Write the documents in a text."""
    wanted = await read_struct(request, ApplyRequest)
    return json_answer(request, await apply_text(state.server.api, wanted))


async def objects(state: ServerState, request: Request, query: Query) -> Response:
    """Create or delete many objects independently, including their status. The body has one JSON object per line, or is a List."""
    body = await read_body(request, MAX_BATCH_BYTES)
    manager = request.headers.get("user-agent", "").partition("/")[0] or "bayplan-objects"
    batch = await state.batches.write(body, manager, objects=query.switch("objects"))
    return json_answer(request, batch)


# --- the whole cluster ------------------------------------------------------------------------------------------------


async def export(state: ServerState, request: Request, query: Query) -> Response:
    """Return all objects as a List, with the scheduler's configuration."""
    server = state.server
    pieces = _exported(server.backend, server.backend.store.snapshot(), server.setup.configuration_text)
    headers = {"content-disposition": 'attachment; filename="bayplan-export.json"'}
    return StreamingResponse(pieces, media_type=JSON, headers=headers)


async def _exported(backend: Backend, contents: Snapshot, configuration: str) -> AsyncIterator[bytes]:
    """Yield the documents of a snapshot, in chunks."""
    resources = backend.registry.by_table()
    yield b'{"apiVersion":"v1","kind":"List","configuration":' + msgspec.json.encode(configuration) + b',"items":['
    comma = b""
    for table, (items, keys) in contents.tables.items():
        found = resources.get(table)
        if found is None or table in NOT_EXPORTED:
            continue
        for start in range(0, len(keys), ITEMS_A_PIECE):
            part = [backend.encode(found, items[key]) for key in keys[start : start + ITEMS_A_PIECE]]
            yield comma + b",".join(part)
            comma = b","
            await asyncio.sleep(0)
    yield b"]}"


class ImportRequest(msgspec.Struct):
    """A List in the format of `export`.

    Attributes:
        items: documents of any kind.
        configuration: the configuration of the scheduler; "" to leave it unchanged.
    """

    items: list[dict[str, object]] = []
    configuration: str = ""


async def import_documents(state: ServerState, request: Request, query: Query) -> Response:
    """Import the result of `export` or any other List; ``replace=1`` deletes all existing objects first."""
    body = await read_body(request, MAX_IMPORT_BYTES)
    wanted = await state.off_loop(lambda: _decode(body))
    if wanted.configuration:
        setup = state.server.setup
        await state.off_loop(lambda: check(setup, wanted.configuration))
    async with state.batches.turn:
        loaded = await load_into(state.server.backend, wanted.items, replace=query.switch("replace"))
    if wanted.configuration and wanted.configuration != state.server.setup.configuration_text:
        await state.server.configure(wanted.configuration)
    document = Imported(
        loaded=loaded.counts,
        replaced=loaded.replaced,
        unknown_fields=loaded.unknown,
        total=sum(loaded.counts.values()),
    )
    return json_answer(request, document)


def _decode(body: bytes) -> ImportRequest:
    try:
        return msgspec.json.decode(body, type=ImportRequest)
    except msgspec.ValidationError as problem:
        raise RequestError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "body", got=str(problem), wanted="a List of documents"
        ) from None
    except msgspec.DecodeError as problem:
        raise RequestError(HTTPStatus.BAD_REQUEST, "body", got=str(problem), wanted="JSON") from None


# --- one node ---------------------------------------------------------------------------------------------------------


async def drain(state: ServerState, request: Request, query: Query) -> Response:
    """Cordon a node and evict its pods, except those of DaemonSets, as far as disruption budgets allow."""
    name: str = request.path_params["name"]
    api, store = state.server.api, state.server.bridge.store
    cordoned = await send_request(api, "GET", f"/api/v1/nodes/{quote(name)}")
    if cordoned.status != 200:
        raise RequestError(HTTPStatus.NOT_FOUND, "node", got=f"'{name}'", wanted="a node of the cluster")
    document = cast("dict[str, dict[str, object]]", msgspec.json.decode(cordoned.body))
    document["spec"] = {**document.get("spec", {}), "unschedulable": True}
    answer = await send_request(api, "PUT", f"/api/v1/nodes/{quote(name)}", document)
    if answer.status != 200:
        raise RequestError(answer.status, f"the node can't be cordoned: {message_of(answer)}")
    evicted, refused = 0, []
    for pod in [pod for pod in store.pods_on(name) if not _stays(pod)]:
        metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace}
        path = f"/api/v1/namespaces/{quote(pod.metadata.namespace)}/pods/{quote(pod.metadata.name)}/eviction"
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        answer = await send_request(api, "POST", path, eviction)
        if answer.status < 300:
            evicted += 1
        else:
            refused.append(EvictionRefused(pod=pod.key, message=message_of(answer)))
        await asyncio.sleep(0)
    return json_answer(request, Drained(evicted=evicted, refused=refused))


def _stays(pod: Pod) -> bool:
    """Return whether a pod stays on a node that is drained: DaemonSet pods, mirror pods, and pods that are being deleted anyway."""
    controller = pod.metadata.controller()
    mirrored = "kubernetes.io/config.mirror" in pod.metadata.annotations
    leaving = pod.metadata.deletion_timestamp is not None
    return mirrored or leaving or (controller is not None and controller.kind == "DaemonSet")
