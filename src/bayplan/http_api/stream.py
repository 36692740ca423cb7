"""The stream: one ticker creates a frame for each topic and sends the same bytes to all subscribers of the topic.

A client has one slot per topic: a slow client misses frames and then gets a complete one, and no buffer grows. Clients
do not receive single changes, so 500 changes a second cost as much as four.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable
from itertools import count

import msgspec

from bayplan.base.go_text.times import format_instant
from bayplan.http_api.errors import RequestError
from bayplan.http_api.server_state import ServerState
from bayplan.http_api.topics import Frame, Topic, make_topic

TICK_SECONDS = 0.25
IDLE_SECONDS = 1.0
PING_SECONDS = 15.0
MAX_TOPICS = 50
MAX_CLIENTS = 500

_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("bayplan.http_api")

EncodedFrame = tuple[str, int, bytes]
"""Topic, sequence number and bytes of a frame."""


class Client:
    """A subscriber to topics. Use on the event loop."""

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self._behind: set[str] = set()
        self._slots: dict[str, EncodedFrame] = {}
        self._filled = asyncio.Event()
        self._is_over = False

    def follow(self, topics: Iterable[str]) -> None:
        """Subscribe to exactly these topics. The first frame of a new topic is complete."""
        now = frozenset(topics)
        self._behind |= now - self.topics
        self._behind &= now
        self._slots = {topic: frame for topic, frame in self._slots.items() if topic in now}
        self.topics = now

    def wants_whole(self, topic: str) -> bool:
        """Return whether the client needs a complete frame of a topic: it missed one, or has not received any."""
        return topic in self._behind

    def put(self, topic: str, frame: EncodedFrame, *, whole: bool) -> None:
        """Put a frame into the client's slot.

        If the slot has an unread frame, a frame with only changes is dropped, and the client needs a complete one next.
        """
        if topic in self._slots and not whole:
            self.miss(topic)
            return
        self._slots[topic] = frame
        if whole:
            self._behind.discard(topic)
        self._filled.set()

    def miss(self, topic: str) -> None:
        """Record that the client missed a frame of a topic, so that it needs a complete one."""
        if topic in self.topics:
            self._behind.add(topic)

    def end(self) -> None:
        """End the client's stream."""
        self._is_over = True
        self._filled.set()

    async def frames(self) -> AsyncIterator[list[EncodedFrame]]:
        """Yield the frames of each tick together. Yield an empty list if there were none for a while."""
        while not self._is_over:
            # Not `wait_for`: before Python 3.12 it swallows a cancellation if the awaited event is set at the same
            # time.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING_SECONDS):
                    await self._filled.wait()
            self._filled.clear()
            found, self._slots = sorted(self._slots.values(), key=lambda frame: frame[1]), {}
            yield found


class Stream:
    """The ticker and its clients. Use on the event loop.

    Args:
        state: the state of the server, from which frames are created.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._clients: dict[Client, None] = {}
        self._topics: dict[str, Topic] = {}
        self._sequence = count(1)
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    def start(self) -> None:
        """Start the ticker."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """End all clients' streams, and stop the ticker."""
        for client in self._clients:
            client.end()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    # --- clients ------------------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> Client:
        """Add a client that subscribes to these topics, and return it.

        Raises:
            RequestError: a topic does not exist, or there are too many topics or clients.
        """
        if len(self._clients) >= MAX_CLIENTS:
            raise RequestError(503, f"the stream already has {MAX_CLIENTS} clients, the maximum", hint="again later")
        client = Client()
        self.follow(client, topics)
        self._clients[client] = None
        return client

    def follow(self, client: Client, topics: Iterable[str]) -> None:
        """Change the topics that a client subscribes to.

        Raises:
            RequestError: a topic does not exist, or there are too many.
        """
        wanted = list(dict.fromkeys(topics))
        if len(wanted) > MAX_TOPICS:
            raise RequestError(400, "topics", got=str(len(wanted)), wanted=f"at most {MAX_TOPICS}")
        for topic in wanted:
            if topic not in self._topics:
                self._topics[topic] = make_topic(self._state, topic)
        client.follow(wanted)
        self._wake.set()

    def unsubscribe(self, client: Client) -> None:
        """Remove a client."""
        self._clients.pop(client, None)

    # --- the ticker ---------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS if self._clients else IDLE_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            await self.tick()
            await asyncio.sleep(TICK_SECONDS / 2)

    async def tick(self) -> None:
        """Process all changes since the last tick, and send frames to the subscribers.

        A frame that can't be created is logged. It affects no other topics, and may succeed in the next tick.
        """
        state = self._state
        try:
            nodes = await state.view.node_columns()
            state.history.note(nodes, state.server.clock.now_ns())
        except Exception:
            _log.exception("the utilisation of the nodes could not be read")
        followed = frozenset[str]().union(*(client.topics for client in self._clients))
        for name in [name for name in self._topics if name not in followed]:
            del self._topics[name]
        for name in sorted(followed):
            try:
                await self._send_next(name)
            except Exception:
                _log.exception("a frame of the topic %s could not be created", name)
                # The topic may have noted changes that clients don't know.
                for client in self._clients:
                    client.miss(name)

    async def _send_next(self, name: str) -> None:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = make_topic(self._state, name)
        frame = await topic()
        if self._topics.get(name) is topic:
            self._send(name, frame)

    def _send(self, name: str, frame: Frame) -> None:
        change: EncodedFrame | None = None
        whole: EncodedFrame | None = None
        for client in self._clients:
            if name not in client.topics:
                continue
            if client.wants_whole(name):
                whole = whole or self._encoded(name, frame.whole)
                client.put(name, whole, whole=True)
            elif frame.change is not None:
                change = change or (
                    whole if frame.change is frame.whole and whole else self._encoded(name, frame.change)
                )
                client.put(name, change, whole=frame.change is frame.whole)

    def _encoded(self, name: str, data: object) -> EncodedFrame:
        sequence, server = next(self._sequence), self._state.server
        document = {
            "seq": sequence,
            "instance": server.instance,
            "at": format_instant(server.clock.now_ns()),
            "topic": name,
            "data": data,
        }
        return name, sequence, _encode(document)
