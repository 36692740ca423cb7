"""Load documents into a running server as files are loaded: all of them, or, where one can't be used, none.

Others go on writing meanwhile. So what was loaded is taken back write by write, and what others wrote elsewhere stays; where
everything else was to go first, what was there before comes back around it. Loads of one server go one after another, and batches
with them (`bayplan.http_api.document_batch.BatchWriter.turn`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence

from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.loading import Loaded, Source, load_one_by_one
from bayplan.apiserver.store.item import Item, Write
from bayplan.apiserver.store.store import Snapshot, Store
from bayplan.apiserver.store.table import Key

AT_ONCE = 10
"""So many documents are loaded before others get their turn on the loop."""

EMPTY = Snapshot(0, {})


async def load_into(backend: Backend, documents: Sequence[dict[str, object]], *, replace: bool) -> Loaded:
    """Store documents as files are loaded.

    Args:
        backend: of the API. documents: of any kind. replace: whether everything else goes first.

    Raises:
        InputError: one can't be used. What had been loaded is as it was before: made objects are gone, replaced ones have their
            former content, whoever has written them meanwhile. With `replace`, what had gone is there again.
    """
    store, loaded = backend.store, Loaded()
    before, written = store.snapshot(), list[Write]()
    if replace:
        store.restore(EMPTY)
        emptied = store.revision
        bootstrap(backend)
        written += reversed(store.written_after(emptied))
    sources = (Source(document, f"items[{number}]") for number, document in enumerate(documents))
    try:
        for number, _ in enumerate(_load_noting(backend, sources, loaded, written)):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
    except BaseException:
        # Whatever it was, half of what was sent is of no use to anybody.
        if replace:
            store.restore(_as_before(store, before, written))
        else:
            _take_back(backend, written)
        raise
    return loaded


def _load_noting(
    backend: Backend, sources: Iterable[Source], loaded: Loaded, written: list[Write]
) -> Generator[None, None, None]:
    """Load one by one, and note the writes of each: nobody else writes from its begin to its end."""
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
    """Undo writes, the last one first, by other writes: who watches can follow, and who wrote elsewhere loses nothing."""
    resources = backend.registry.by_table()
    for write in reversed(written):
        found = backend.store.get(write.table, write.new.key)
        if found is None or found.uid != write.new.uid:
            continue  # Somebody has deleted it, which holds.
        item = write.old if write.old is not None else found
        resource = resources[write.table]
        document = backend.document(resource, item)
        if write.old is None:
            backend.remove(resource, document)
        else:
            backend.put(resource, document)


def _as_before(store: Store, before: Snapshot, written: Sequence[Write]) -> Snapshot:
    """Return what there was, but for what others have made, changed or deleted since everything was taken away.

    Args:
        store: as it is now. before: what there was. written: by the load, after everything had been taken away.
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
                items.pop(key, None)  # Somebody has deleted it, which holds.
        items.update((item.key, item) for item in store.between(name) if loaded.get(item.key) != item.uid)
        tables[name] = (items, sorted(items))
    return Snapshot(before.revision, tables)
