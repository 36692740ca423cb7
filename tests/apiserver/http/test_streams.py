"""The end of a watch: once, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bayplan.apiserver.http.application import Application
from bayplan.apiserver.http.watch_output import WatchBody
from bayplan.apiserver.rest.messages import Stream
from bayplan.base.asgi import Message
from tests.apiserver.client import Client


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_a_watch_ends_once(stops: bool, waits: bool) -> None:
    """`stops`: the server is about to stop. `waits`: the watch does not end by itself."""

    async def frames() -> AsyncIterator[bytes]:
        yield b"x"
        if waits:
            await asyncio.Event().wait()

    async def run() -> list[tuple[object, object]]:
        application, sent = Application(Client().api), list[Message]()

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        if stops:
            application.end_streams()
        streaming = application._stream(Stream(frames(), "application/json"), WatchBody(send), {}, receive)
        if waits and not stops:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(streaming, 0.05)
        else:
            await streaming
        return [(each.get("body"), each.get("more_body", False)) for each in sent[1:]]

    end = [] if waits and not stops else [(b"", False)]
    assert asyncio.run(run()) == [(b"", True), (b"x", True), *end]
