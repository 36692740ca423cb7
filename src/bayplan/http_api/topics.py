"""The topics of the stream. Each creates its frames from the current state, once for all subscribers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import numpy as np
from msgspec.structs import asdict, replace

from bayplan.http_api.contract.answer import Answer
from bayplan.http_api.contract.decisions import ClockStatus, DecisionsChanged
from bayplan.http_api.contract.nodes import CellsChanged
from bayplan.http_api.contract.pods import PodChanged, PodsChanged, QueueChanged
from bayplan.http_api.contract.queue import QueueCounts
from bayplan.http_api.errors import RequestError
from bayplan.http_api.live_source import LiveSource
from bayplan.http_api.node_query import metrics_of
from bayplan.http_api.node_table import NodeColumns
from bayplan.http_api.overview import clock_document, pod_counts
from bayplan.http_api.pod_page import PodPage
from bayplan.http_api.queue_view import TIERS, QueueCopy, next_retry_at, sentence_of
from bayplan.http_api.server_state import ServerState

PLAIN_TOPICS = ("overview", "pods", "queue", "clock", "decisions")
NODES, POD = "nodes:", "pod:"
UNKNOWN_POD = PodChanged(version="", exists=False, deleted=False)
MAX_DECISIONS = 20
"""Maximum number of new decisions in a frame; further decisions are only counted."""


class Frame(NamedTuple):
    """A frame of a topic, in two forms.

    Attributes:
        change: the frame for clients that have received all previous ones; None if nothing changed.
        whole: the complete frame, for all other clients.
    """

    change: Answer | None
    whole: Answer


Topic = Callable[[], Awaitable[Frame]]
"""Creates the next frame of a topic. Called on the event loop, at most four times a second."""


def make_topic(state: ServerState, name: str) -> Topic:
    """Return the function that creates the frames of a topic.

    Raises:
        RequestError: there is no such topic.
    """
    if not name.isprintable():
        raise RequestError(400, "topic", got=ascii(name), wanted="printable characters")
    if name.startswith(NODES) and len(name) > len(NODES):
        return _Cells(state, name.removeprefix(NODES)).frame
    if name.startswith(POD) and name.count("/") == 1:
        return _Pod(state, name.removeprefix(POD)).frame
    makers: dict[str, Callable[[], Topic]] = {
        "overview": lambda: _Whole(state.overview).frame,
        "pods": lambda: _Whole(lambda: _pods(state)).frame,
        "queue": lambda: _Whole(lambda: _queue(state)).frame,
        "clock": lambda: _Clock(state).frame,
        "decisions": lambda: _Decisions(state).frame,
    }
    if name not in makers:
        wanted = f"one of {', '.join(PLAIN_TOPICS)}, nodes:METRIC or pod:NAMESPACE/NAME"
        raise RequestError(400, "topic", got=f"'{name}'", wanted=wanted)
    return makers[name]()


class _Whole:
    """A topic that is sent completely whenever its document changes.

    Args:
        make: returns the current document.
    """

    def __init__(self, make: Callable[[], Awaitable[Answer]]) -> None:
        self._make = make
        self._last: Answer | None = None

    async def frame(self) -> Frame:
        now = await self._make()
        changed = self._last is None or _without_clock(now) != _without_clock(self._last)
        self._last = now
        return Frame(now if changed else None, now)


def _without_clock(document: Answer) -> dict[str, object]:
    """Return the fields of a document without those that always change: the clock, which has its own topic, and the history."""
    return {name: value for name, value in asdict(document).items() if name not in ("clock", "utilisation_history")}


async def _pods(state: ServerState) -> PodsChanged:
    pods = await state.view.pod_columns()
    return PodsChanged(version=pods.version, counts=pod_counts(pods))


async def _queue(state: ServerState) -> QueueChanged:
    now_ns = state.server.clock.now_ns()
    queue = await state.off_loop(state.queue_or_none)
    if queue is None:
        published = state.server.engine.status().queue
        counts = QueueCounts(**{tier: int(published.get(tier, 0)) for tier in TIERS})
        return QueueChanged(version=0, busy=True, counts=counts)
    return QueueChanged(
        version=queue.version,
        busy=False,
        counts=queue.counts,
        summary=_stable_sentence(queue, now_ns),
        next_retry_at=next_retry_at(queue),
    )


def _stable_sentence(queue: QueueCopy, now_ns: int) -> str:
    """Return the sentence about the queue with times in whole seconds, so that it does not change four times a second."""
    return sentence_of(queue, now_ns // 1_000_000_000 * 1_000_000_000)


class _Clock:
    """The clock: sent at once if it was paused, set or given another speed, otherwise once a second."""

    def __init__(self, state: ServerState) -> None:
        self._clock = state.server.clock
        self._sent: ClockStatus | None = None
        self._sent_ns = 0

    async def frame(self) -> Frame:
        now_ns, now = self._clock.now_ns(), clock_document(self._clock)
        status = replace(now, now="")
        changed = status != self._sent or abs(now_ns - self._sent_ns) >= 1_000_000_000 * max(self._clock.speed, 1e-3)
        if changed:
            self._sent, self._sent_ns = status, now_ns
        return Frame(now if changed else None, now)


class _Decisions:
    """New decisions, the newest last."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._next = len(state.server.decisions)

    async def frame(self) -> Frame:
        state, decisions = self._state, self._state.server.decisions
        begin, end = self._next, len(decisions)
        first = max(begin, end - MAX_DECISIONS)
        items = await state.off_loop(lambda: state.summaries.of(range(first, end)))
        self._next = end
        changed = DecisionsChanged(version=end, oldest=decisions.oldest_full, items=items, left_out=first - begin)
        return Frame(changed if end > begin else None, changed)


class _Cells:
    """The heat map: the cells of the nodes that changed."""

    def __init__(self, state: ServerState, metric: str) -> None:
        self._state, self._metric = state, metric
        self._last: NodeColumns | None = None

    async def frame(self) -> Frame:
        nodes = await self._state.view.node_columns()
        last, self._last = self._last, nodes
        if last is not None and last.version == nodes.version:
            return Frame(None, self._cells(nodes, np.flatnonzero(nodes.used).tolist(), whole=True))
        return await self._state.off_loop(lambda: self._compare(last, nodes))

    def _compare(self, last: NodeColumns | None, nodes: NodeColumns) -> Frame:
        rows = np.flatnonzero(nodes.used)
        whole = self._cells(nodes, rows.tolist(), whole=True)
        if last is None or last.names_version != nodes.names_version:
            return Frame(whole, whole)
        moved = (nodes.cells(self._metric) != last.cells(self._metric)) | (nodes.flags != last.flags)
        changed = rows[moved[rows]].tolist()
        return Frame(self._cells(nodes, changed, whole=False) if changed else None, whole)

    def _cells(self, nodes: NodeColumns, rows: list[int], *, whole: bool) -> CellsChanged:
        cells = nodes.cells(self._metric)
        return CellsChanged(
            version=nodes.version,
            layout=nodes.names_version,
            metric=self._metric,
            known=self._metric in metrics_of(nodes),
            complete=whole,
            names=[nodes.names[row] for row in rows],
            cells=cells[rows].tolist(),
            flags=nodes.flags[rows].tolist(),
        )


class _Pod:
    """One pod: whether its page must be fetched again, and what to show until then."""

    def __init__(self, state: ServerState, key: str) -> None:
        self._state, self._key = state, key
        self._seen: tuple[object, ...] | None = None
        self._last: PodChanged = UNKNOWN_POD

    async def frame(self) -> Frame:
        state, key = self._state, self._key
        await state.view.catch_up()
        life = state.view.pods.life(key)
        pod = None if life is None else life.pod
        seen = (
            None if pod is None else pod.metadata.resource_version,
            tuple(state.server.decisions.numbers_of(key))[-1:],
        )
        if seen == self._seen:
            return Frame(None, self._last)
        self._seen = seen
        source = await state.source_of(key)
        self._last = await state.off_loop(lambda: self._outline(source, str(seen[0] or "")))
        return Frame(self._last, self._last)

    def _outline(self, source: LiveSource, version: str) -> PodChanged:
        try:
            page = PodPage(source, self._key, self._state.summaries)
        except RequestError:
            return UNKNOWN_POD
        return page.outline(version)
