"""Uvicorn's server with graceful shutdown on SIGTERM and SIGINT.

Requests in progress may finish, and the exit code is 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from bayplan.apiserver.http.limits import DescriptorWatch, descriptor_limit

GRACE_S = 5.0
"""Time that requests in progress get to finish after the signal."""

EXIT_S = 20.0
"""Time from the signal to the end of the process, even if a thread hangs; less than the 30 s that a kubelet waits."""

_POLL_S = 0.02
_ACCEPT_ITERATIONS = 10
"""Iterations of the event loop, several more than an accepted connection needs until its request has started."""

_DESCRIPTOR_TICKS = 50
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_log = logging.getLogger("bayplan.apiserver")


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class GracefulServer(uvicorn.Server):
    """A server with graceful shutdown.

    Args:
        config: the configuration of uvicorn.
        on_ready: called when the server accepts requests.
        on_end: called when the shutdown begins, to end streams.
        on_closed: called when the last request has ended, to close stores.
        grace_s: the time in seconds that requests in progress get to finish.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        on_ready: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
        on_closed: Callable[[], None] | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_end = on_end
        self._on_closed = on_closed
        self._grace_s = grace_s
        self._descriptors = DescriptorWatch(descriptor_limit())
        self._is_closed = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests, then call `on_ready`."""
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        """Run the periodic work, and return whether to stop. Uvicorn calls this ten times a second."""
        if counter % _DESCRIPTOR_TICKS == 0:
            self._descriptors.check(len(self.server_state.connections))
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, end streams, wait up to the grace period for requests, and cancel the rest."""
        if self._on_end is not None:
            self._on_end()
        await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        # The request of a connection that was accepted last starts only some iterations of the event loop later.
        for _ in range(_ACCEPT_ITERATIONS):
            await asyncio.sleep(0)
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._grace_s
        while (state.connections or state.tasks) and not self.force_exit and loop.time() < deadline:
            await asyncio.sleep(_POLL_S)
        await self._give_up()
        if self._on_closed is not None:
            self._on_closed()
        self._is_closed = True
        await self.lifespan.shutdown()

    async def _give_up(self) -> None:
        state = self.server_state
        tasks = list(state.tasks)
        if tasks:
            _log.warning("%d requests were not answered within %g s and are cancelled", len(tasks), self._grace_s)
        for connection in list(state.connections):
            connection.transport.abort()
        # Let the requests see that their clients have disconnected, so that they send nothing when cancelled.
        await asyncio.sleep(_POLL_S)
        if not tasks:
            return
        # Uvicorn would log each cancelled request as an exception of the application.
        errors = logging.getLogger("uvicorn.error")
        errors.addFilter(_is_no_cancellation)
        for task in tasks:
            task.cancel()
        _, pending = await asyncio.wait(tasks, timeout=1.0)
        # The filter stays for requests that end later, such as those that the event loop cancels when it closes.
        if not pending:
            errors.removeFilter(_is_no_cancellation)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Within the context, let SIGINT and SIGTERM stop the server.

        Unlike uvicorn, do not raise them again afterwards.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start the shutdown. On a second Ctrl-C, do not wait for requests."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        if not self.should_exit:
            last_resort = threading.Timer(EXIT_S, self._exit)
            last_resort.daemon = True
            last_resort.start()
        self.should_exit = True

    def _exit(self) -> None:
        """End the process even though a thread hangs."""
        print(f"bayplan: a thread did not end within {EXIT_S:g} s; the process ends without it", file=sys.stderr)
        sys.stderr.flush()
        os._exit(0 if self._is_closed else 1)
