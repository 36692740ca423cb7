"""The bridge: typed objects in step with the API's documents, told to listeners, worked on by controllers and kubelet.

One thread uses it, that of the event loop. Every committed write reaches the typed store at once; listeners are told in
batches, at the latest when the loop comes round. Work that follows from writes is done by `Bridge.advance` in slices, so
that requests go between; whoever drives it (`bayplan.apiserver.bridge.driver` in real time, a test by hand) calls it when
`Bridge.next_wakeup` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.apiserver.bridge.typed_store import TypedStore
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.item import Write
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.store import ChangeEvent

Listener = Callable[[Sequence[ChangeEvent]], None]


class Bridge:
    """Keep a typed store in step with the API's, and tell what changes.

    Args:
        backend: of the API.
        seed: of the names that controllers make up.

    Attributes:
        store: the typed objects; for reading, on the thread of the loop.
        on_work: is called when there is something for `flush` or `advance` to do that was not there before.
    """

    def __init__(self, backend: Backend, *, seed: int) -> None:
        self.backend = backend
        streams = RandomStreams(seed)
        self.store = TypedStore(backend.store, streams.stream("bridge.uids"))
        self.on_work: Callable[[], None] | None = None
        self._listeners: list[Listener] = []
        # Whoever listens begins with what there is.
        self.store.take_journal()
        backend.store.follow(self._follow, self._read_again)

    def listen(self, listener: Listener) -> None:
        """Call a function with every typed change, in the order of revisions; at once with all objects as added ones."""
        self.flush()
        self._listeners.append(listener)
        events = self.store.initial_events()
        if events:
            listener(events)

    def flush(self) -> None:
        """Tell the listeners what has changed since they were told last."""
        events = self.store.take_journal()
        if events:
            for listener in self._listeners:
                listener(events)

    def check(self) -> None:
        """Compare the typed objects with the documents, and the indexes of both with fresh ones.

        Raises:
            InvariantError: they differ.
        """
        self.backend.store.check_invariants()
        self.store.check()

    def _follow(self, write: Write) -> None:
        self.store.follow(write)
        self._work_has_come()

    def _read_again(self) -> None:
        self.store.read_all()
        self._work_has_come()

    def _work_has_come(self) -> None:
        if self.on_work is not None:
            self.on_work()
