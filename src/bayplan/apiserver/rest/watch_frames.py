"""The frames of a watch: events of objects, bookmarks and errors in the client's format.

Each write is encoded once per format and shared by all watches with this format.
"""

from __future__ import annotations

import msgspec

from bayplan.apiserver.kinds.default_functions import TEMPLATE_GENERATION
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.requests import RequestInfo
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.negotiation import Form
from bayplan.apiserver.rest.rendering import encode_document, event_frame, render_error, render_item, watch_form
from bayplan.apiserver.rest.writing import zero_document
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.apiserver.tables.table import INCLUDE
from bayplan.base.plain_data import part

_ZERO_REPLICAS = ("apps/deployments", "apps/replicasets", "apps/statefulsets")
"""Tables whose bookmarks show 0 replicas: a bookmark is an empty object of Go's internal type, which has a number of replicas."""
_ZERO_ANNOTATIONS = {"apps/daemonsets": {TEMPLATE_GENERATION: "0"}}
"""Annotations of bookmarks that represent fields of Go's internal type, by table."""
_FAREWELL = "k8s.io/initial-events-end"


class WatchFrames:
    """Encodes the frames of one watch.

    Args:
        backend: the backend of the API.
        info: the request.
        form: the format of the objects in events.
        include: the part of each object that a table's rows include.
    """

    def __init__(self, backend: Backend, info: RequestInfo, form: Form, include: str) -> None:
        self._backend = backend
        self._info = info
        self._resource = info.resource
        self._form = form
        self._include = include
        self._encode, self._key = watch_form(backend, info, form, include)
        self._first_table = form.kind == "Table"

    @property
    def is_for_lists(self) -> bool:
        """Whether the client requested a list kind, in which events can't be encoded."""
        return self._form.wanted.endswith("List")

    def of_item(self, kind: str, item: Item, include: str = "") -> bytes:
        """Return the frame of an event. `include`: what the rows of a table include, if not what the client requested."""
        if self._first_table:
            # Only the first table of a watch has columns.
            self._first_table = False
            whole = render_item(self._backend, self._resource, item, self._form, include or self._include)
            return event_frame(kind, whole, self._form)
        encode = watch_form(self._backend, self._info, self._form, include)[0] if include else self._encode
        return event_frame(kind, encode(item), self._form)

    def of_write(self, kind: str, write: Write) -> bytes:
        """Return the frame of a write, which for this watch is an event of the given kind.

        Raises:
            CallsNeededError: the object has to be converted by a webhook.
            ApiError: the object can't be converted.
        """
        shared = not self._first_table
        frame = write.frames.get((kind, self._key)) if shared else None
        if frame is None:
            item = write.new
            if kind == DELETED and write.old is not None and write.type != DELETED:
                # For the client, an object that leaves the selection is deleted: send its previous state with the
                # write's revision.
                item = _with_revision(write.old, write.revision)
            frame = self.of_item(kind, item)
            if shared:
                write.frames[kind, self._key] = frame
        return frame

    def bookmark(self, revision: int, *, farewell: bool) -> bytes:
        """Return a bookmark; with `farewell`, the bookmark at the end of the initial events."""
        resource = self._resource
        annotations = dict(_ZERO_ANNOTATIONS.get(resource.table, {}))
        if farewell:
            annotations[_FAREWELL] = "true"
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        document: dict[str, object] = {"kind": resource.kind, "apiVersion": resource.api_version}
        document |= {**zero_document(resource), "metadata": metadata}
        if resource.table in _ZERO_REPLICAS:
            document["spec"] = {"replicas": 0, **part(document, "spec")}
        if self._form.kind:
            item = Item(msgspec.json.encode(document), revision, "", "", "", {}, {})
            # Upstream always includes the metadata that ends the initial events.
            include = INCLUDE if farewell and self._include == "None" else self._include
            return self.of_item("BOOKMARK", item, include)
        return event_frame("BOOKMARK", encode_document(document, self._form), self._form)

    def error(self, problem: ApiError) -> bytes:
        """Return the frame of an error."""
        return event_frame("ERROR", render_error(problem, self._form), self._form)


def _with_revision(item: Item, revision: int) -> Item:
    """Return a copy of an item with a different revision.

    The first occurrence of the old revision in the JSON is in the metadata.
    """
    old, new = b'"resourceVersion":"%d"' % item.revision, b'"resourceVersion":"%d"' % revision
    return msgspec.structs.replace(item, raw=item.raw.replace(old, new, 1), revision=revision)
