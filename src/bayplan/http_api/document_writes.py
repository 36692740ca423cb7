"""Write documents of any kind through the in-process Kubernetes API, one by one or from a text with several documents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.base.errors import InputError
from bayplan.formats.documents import Document, read_documents
from bayplan.http_api.contract.documents import Applied, AppliedItem, AppliedProblem
from bayplan.http_api.errors import RequestError

MAX_COPIES = 10_000
"""Maximum number of documents per request that writes a text more than once: copies times documents."""

MIN_OFF_LOOP_BYTES = 50_000
"""Parse texts of at least this many characters on a thread: parsing megabytes of YAML takes seconds."""

AT_ONCE = 20
"""Number of documents to write before other tasks on the event loop run."""


class ApplyRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Documents to write.

    Attributes:
        text: YAML or JSON, one document or several.
        count: the number of copies to write, with ``{n}`` in the text replaced by 1, 2, ...
        dry_run: whether to report the outcome without writing.
        replace: whether to replace objects that exist.
    """

    text: str
    count: int | None = None
    dry_run: bool = False
    replace: bool = False


async def apply_text(api: Api, wanted: ApplyRequest) -> Applied:
    """Write the documents in a text. If the API refuses a document, continue with the next one.

    Raises:
        RequestError: the text can't be parsed, or the count is too large.
    """
    count = wanted.count
    if count is not None and not 1 <= count <= MAX_COPIES:
        raise RequestError(422, "count", got=str(count), wanted=f"1 to {MAX_COPIES:,}")
    items: list[AppliedItem] = []
    for number in range(1, (count or 1) + 1):
        text = wanted.text if count is None else wanted.text.replace("{n}", str(number))
        try:
            documents = _read(text) if len(text) < MIN_OFF_LOOP_BYTES else await asyncio.to_thread(_read, text)
        except InputError as problem:
            raise RequestError(
                422, problem.what, where=problem.where, got=problem.got, wanted=problem.wanted
            ) from problem
        if not documents:
            raise RequestError(422, "text", got="no document", wanted="YAML or JSON")
        if (count or 1) * len(documents) > MAX_COPIES and count not in (None, 1):
            got = f"{count:,} copies of {len(documents):,} documents"
            raise RequestError(422, "count", got=got, wanted=f"at most {MAX_COPIES:,} documents in all")
        for document in documents:
            items.append(await _apply(api, document, wanted, len(items)))
            if len(items) % AT_ONCE == 0:
                await asyncio.sleep(0)
    refused = sum(item.action == "refused" for item in items)
    return Applied(items=items, created=len(items) - refused, refused=refused)


def _read(text: str) -> list[Document]:
    return list(read_documents(text.encode(), "text"))


async def _apply(api: Api, document: Document, wanted: ApplyRequest, index: int) -> AppliedItem:
    applied = AppliedItem(
        index=index,
        line=document.source.line,
        kind="",
        namespace="",
        name="",
        path="",
        problems=[],
        action="refused",
        message="",
    )
    if not isinstance(document.value, dict):
        return replace(applied, message=f"a document is an object, not {type(document.value).__name__}")
    value = document.value_with_kind()
    resource = api.backend.registry.by_kind(str(value.get("apiVersion") or ""), str(value.get("kind") or ""))
    if resource is None:
        got = f"{value.get('apiVersion') or 'no apiVersion'} {value.get('kind') or 'no kind'}"
        return replace(applied, message=f"{got} is not a served kind")
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    name = str(metadata.get("name") or "")
    applied = replace(applied, kind=resource.kind, namespace=namespace, name=name)
    answer = await write(api, resource, namespace, value, dry_run=wanted.dry_run, replace=wanted.replace)
    body = msgspec.json.decode(answer.body)
    if answer.status >= 300:
        return replace(applied, message=body.get("message", ""), problems=_problems(document, body))
    name = str(body.get("metadata", {}).get("name") or name)
    path = f"{collection_path(resource, namespace)}/{segment(name)}"
    return replace(applied, name=name, path=path, action="created" if answer.status == 201 else "replaced")


def _problems(document: Document, status: Mapping[str, object]) -> list[AppliedProblem]:
    """Return the causes in an error status, each with the line that it refers to."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    found: list[AppliedProblem] = []
    for cause in causes if isinstance(causes, list) else []:
        path = str(cause.get("field") or "")
        line = document.line_of(f"$.{path}") if path and path != "<nil>" else document.source.line
        found.append(AppliedProblem(line=line, path=path, message=str(cause.get("message") or "")))
    return found


def segment(text: str) -> str:
    """Escape a name for use as one path segment, including slashes. Colons stay, as in ``system:node``."""
    return quote(text, safe=":")


def collection_path(resource: Resource, namespace: str) -> str:
    """Return the path at which objects of a resource are created."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    inside = f"/namespaces/{segment(namespace)}" if resource.namespaced else ""
    return f"{root}{inside}/{resource.name}"


async def write(
    api: Api,
    resource: Resource,
    namespace: str,
    document: Mapping[str, object],
    *,
    dry_run: bool = False,
    replace: bool = False,
) -> Response:
    """Create an object through the API or, with `replace`, replace an existing object of the same name."""
    query = {"dryRun": "All"} if dry_run else {}
    path = collection_path(resource, namespace)
    answer = await send_request(api, "POST", path, document, query)
    if not replace or answer.status != 409:
        return answer
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    unconditional = {**document}
    if isinstance(metadata, dict):
        unconditional["metadata"] = {
            key: value for key, value in metadata.items() if key not in ("resourceVersion", "uid")
        }
    return await send_request(api, "PUT", f"{path}/{segment(str(name))}", unconditional, query)


async def send_request(
    api: Api, method: str, path: str, document: object = None, query: Mapping[str, str] | None = None
) -> Response:
    """Send a request to the in-process Kubernetes API, and return its whole response."""
    body = b"" if document is None else msgspec.json.encode(document)
    answer = await api.handle(Request(method, path, dict(query or {}), {"content-type": "application/json"}, body))
    assert isinstance(answer, Response)
    return answer


def message_of(answer: Response) -> str:
    """Return the message of an API error."""
    return str(msgspec.json.decode(answer.body).get("message", ""))
