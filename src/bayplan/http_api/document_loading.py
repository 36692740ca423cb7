"""Load documents into a running server as manifest files are loaded: all of them, or none if one is invalid.

Other clients keep writing during a load. A failed load is therefore undone write by write, which preserves what other
clients wrote to other objects. If the load had deleted everything first, the deleted objects are restored in the same
way. Loads into one server run one after another, and never together with batches
(`bayplan.http_api.document_batch.BatchWriter.turn`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence

from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.loading import Loaded, load_one_by_one
from bayplan.apiserver.store.item import Item, Write
from bayplan.apiserver.store.store import Snapshot, Store
from bayplan.apiserver.store.table import Key
from bayplan.formats.manifest import PlainObject

AT_ONCE = 10
"""Number of documents to load before other tasks on the event loop run."""

EMPTY = Snapshot(0, {})


async def load_into(backend: Backend, documents: Sequence[dict[str, object]], *, replace: bool) -> Loaded:
    """Load documents into the store as manifest files are loaded.

    Args:
        backend: the backend of the API.
        documents: documents of any kind.
        replace: whether to delete all existing objects first.

    Raises:
        InputError: a document is invalid. The load is undone: created objects are deleted, and replaced objects get
            their previous content, even if another client wrote them in the meantime. With `replace`, deleted objects
            are restored.
    """
    store, loaded = backend.store, Loaded()
    before, written = store.snapshot(), list[Write]()
    if replace:
        store.restore(EMPTY)
        emptied = store.revision
        bootstrap(backend)
        written += reversed(store.written_after(emptied))
    sources = (PlainObject(document, f"items[{number}]") for number, document in enumerate(documents))
    try:
        for number, _ in enumerate(_load_noting(backend, sources, loaded, written)):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
    except BaseException:
        # Undo after any exception, because a partial load is useless.
        if replace:
            store.restore(_as_before(store, before, written))
        else:
            _take_back(backend, written)
        raise
    return loaded


def _load_noting(
    backend: Backend, sources: Iterable[PlainObject], loaded: Loaded, written: list[Write]
) -> Generator[None, None, None]:
    """Load documents one by one, and record the writes of each step. No other task can write during a step."""
    loading = load_one_by_one(backend, sources, loaded)
    while True:
        revision = backend.store.revision
        try:
            next(loading)
        except StopIteration:
            return
        finally:
            written += reversed(backend.store.written_after(revision))
        yield


def _take_back(backend: Backend, written: Sequence[Write]) -> None:
    """Undo writes, the last one first, by further writes, which watchers see; other clients' objects stay unchanged."""
    resources = backend.registry.by_table()
    for write in reversed(written):
        found = backend.store.get(write.table, write.new.key)
        if found is None or found.uid != write.new.uid:
            continue  # Another client has deleted it, and it stays deleted.
        item = write.old if write.old is not None else found
        resource = resources[write.table]
        document = backend.document(resource, item)
        if write.old is None:
            backend.remove(resource, document)
        else:
            backend.put(resource, document)


def _as_before(store: Store, before: Snapshot, written: Sequence[Write]) -> Snapshot:
    """Return the previous objects, except those that other clients created, changed or deleted since everything was deleted.

    Args:
        store: the current store.
        before: the contents of the store before the load.
        written: the writes of the load, after everything was deleted.
    """
    tables: dict[str, tuple[Mapping[Key, Item], list[Key]]] = {}
    own: dict[str, dict[Key, str]] = {}
    for write in written:
        own.setdefault(write.table, {})[write.new.key] = write.new.uid
    for name in dict.fromkeys((*before.tables, *store.table_names())):
        items = dict(before.tables[name][0]) if name in before.tables else {}
        loaded = own.get(name, {})
        for key in loaded:
            if store.get(name, key) is None:
                items.pop(key, None)  # Another client has deleted it, and it stays deleted.
        items.update((item.key, item) for item in store.between(name) if loaded.get(item.key) != item.uid)
        tables[name] = (items, sorted(items))
    return Snapshot(before.revision, tables)
