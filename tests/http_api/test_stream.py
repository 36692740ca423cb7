"""The stream: frames, changes, slow readers, access."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect, Request

from bayplan.base.asgi import Message, Scope
from bayplan.base.errors import InputError
from bayplan.http_api.application import OPENAPI, STREAM, Service
from bayplan.http_api.contract.cluster import Overview
from bayplan.http_api.errors import RequestError
from bayplan.http_api.query import Query
from bayplan.http_api.stream import MAX_TOPICS, Client, Stream
from bayplan.http_api.stream_routes import as_events
from tests.http_api.server_fixture import ServerFixture, node, pod, run


def _bodies(client: Client) -> list[dict[str, Any]]:
    """Remove and return the frames that wait for a client."""
    found = sorted(client._slots.values(), key=lambda told: told[1])
    client._slots = {}
    return [json.loads(body) for _, _, body in found]


def test_a_new_subscriber_gets_a_full_frame_then_changes() -> None:
    async def test(fixture: ServerFixture) -> None:
        stream = Stream(fixture.service.state)
        client = stream.subscribe(["nodes:cpu", "pods", "clock"])
        await stream.tick()
        first = {frame["topic"]: frame["data"] for frame in _bodies(client)}
        assert set(first) == {"nodes:cpu", "pods", "clock"}
        assert (first["nodes:cpu"]["complete"], first["nodes:cpu"]["names"]) == (True, ["n1", "n2"])
        assert first["pods"]["counts"]["placed"] == 0
        await stream.tick()
        assert [frame["topic"] for frame in _bodies(client)] == []
        await fixture.create(pod("a", cpu="2", nodeName="n2"))
        await fixture.settle()
        await stream.tick()
        changed = {frame["topic"]: frame["data"] for frame in _bodies(client)}
        assert (changed["nodes:cpu"]["complete"], changed["nodes:cpu"]["names"]) == (False, ["n2"])
        assert changed["nodes:cpu"]["cells"] == [50]
        # The counts in a frame equal those of the overview, because the page's heading uses both.
        counts = (await fixture.get("/overview"))["counts"]
        assert changed["pods"]["counts"] == {"placed": 1, **{key: counts[key] for key in first["pods"]["counts"]}}
        assert changed["pods"]["counts"]["pods"] == 1

    run(test, node("n1"), node("n2"))


def test_subscribers_share_bytes_and_a_slow_one_gets_a_full_frame() -> None:
    async def test(fixture: ServerFixture) -> None:
        stream = Stream(fixture.service.state)
        quick, slow = stream.subscribe(["nodes:cpu"]), stream.subscribe(["nodes:cpu"])
        await stream.tick()
        assert quick._slots["nodes:cpu"][2] is slow._slots["nodes:cpu"][2]
        _bodies(quick)
        for number in range(3):
            await fixture.create(pod(f"p{number}", cpu="1", nodeName=f"n{number % 2 + 1}"))
            await fixture.settle()
            await stream.tick()
            assert [frame["data"]["complete"] for frame in _bodies(quick)] == [False]
        # The slow reader still has its first frame; later ones are dropped, since they could not be understood alone.
        assert [frame["data"]["complete"] for frame in _bodies(slow)] == [True]
        await stream.tick()
        whole = _bodies(slow)
        assert [frame["data"]["complete"] for frame in whole] == [True]
        assert whole[0]["data"]["cells"] == [50, 25]

    run(test, node("n1"), node("n2"))


def test_subscribers_get_decision_pod_queue_and_overview_changes() -> None:
    async def test(fixture: ServerFixture) -> None:
        stream = Stream(fixture.service.state)
        client = stream.subscribe(["decisions", "pod:default/a", "queue", "overview"])
        await stream.tick()
        assert {frame["topic"]: frame for frame in _bodies(client)}["pod:default/a"]["data"]["exists"] is False
        await fixture.create(pod("a"), pod("huge", cpu="90"))
        await fixture.settle()
        fixture.service.state.queue.forget()
        await stream.tick()
        frames = {frame["topic"]: frame["data"] for frame in _bodies(client)}
        assert [item["name"] for item in frames["decisions"]["items"]] == ["a", "huge"]
        page = await fixture.get("/pods/default/a")
        assert (frames["pod:default/a"]["summary"], frames["pod:default/a"]["status"]) == (page["summary"], "placed")
        assert frames["queue"]["counts"] == (await fixture.get("/queue"))["counts"]
        assert frames["overview"]["summary"] == (await fixture.get("/overview"))["summary"]
        await stream.tick()
        assert "decisions" not in {frame["topic"] for frame in _bodies(client)}

    run(test, node("n1"))


def test_unknown_or_too_many_topics_are_refused() -> None:
    async def test(fixture: ServerFixture) -> None:
        stream = Stream(fixture.service.state)
        for topic in ("nothing", "nodes:", "pod:a", "pod:a/b/c", "pod:a/b\nevent: x"):
            with pytest.raises(RequestError, match="topic"):
                stream.subscribe([topic])
        with pytest.raises(RequestError, match="at most"):
            stream.subscribe([f"pod:a/{number}" for number in range(MAX_TOPICS + 1)])

    run(test)


def test_frames_are_sent_as_server_sent_events() -> None:
    async def test(fixture: ServerFixture) -> None:
        events: list[str] = []
        gone = asyncio.Event()
        query = b"topics=clock,pods"
        scope = {
            "type": "http",
            "method": "GET",
            "path": STREAM,
            "raw_path": STREAM.encode(),
            "query_string": query,
            "headers": [(b"host", b"localhost")],
        }

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body" and message.get("body"):
                events.append(message["body"].decode())
                if len(events) == 2:
                    gone.set()

        await asyncio.wait_for(fixture.service(scope, receive, send), 10)
        heads = [event.splitlines()[0] for event in events]
        assert sorted(heads) == ["event: clock", "event: pods"]
        data = json.loads(events[0].splitlines()[2].removeprefix("data: "))
        assert data["instance"] == fixture.server.instance
        refused = await fixture.client.get(STREAM)
        assert (refused.status_code, refused.json()["error"]["hint"]) == (400, "?topics=overview,clock")

    run(test, node("n1"))


@pytest.mark.parametrize("version", ["2.3", "2.4"])
def test_a_client_that_leaves_before_its_first_event_is_unsubscribed(version: str) -> None:
    async def test(fixture: ServerFixture) -> None:
        stream = Stream(fixture.service.state)
        scope: Scope = {"type": "http", "method": "GET", "path": STREAM, "query_string": b"topics=clock", "headers": []}
        scope["asgi"] = {"version": "3.0", "spec_version": version}

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            raise OSError("the client is gone")

        request = Request(scope)
        response = as_events(stream, request, Query(request.query_params, ("topics",)))
        assert len(stream._clients) == 1
        # Starlette reports the disconnect in its own way for each version of ASGI.
        with contextlib.suppress(ClientDisconnect, OSError):
            await response(scope, receive, send)
        assert len(stream._clients) == 0

    run(test)


def test_a_topic_that_fails_affects_no_other_topic(caplog: pytest.LogCaptureFixture) -> None:
    async def test(fixture: ServerFixture) -> None:
        stream, state = Stream(fixture.service.state), fixture.service.state
        create, failing = state.overview, False

        async def overview() -> Overview:
            if failing:
                raise RuntimeError("no overview")
            return await create()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state, "overview", overview)
            client = stream.subscribe(["overview", "pods"])
            steps = ((False, ["overview", "pods"]), (True, ["pods"]), (False, ["overview", "pods"]))
            for number, (fails, want) in enumerate(steps):
                failing = fails
                await fixture.create(pod(f"p{number}"))
                await fixture.settle()
                await stream.tick()
                assert [frame["topic"] for frame in _bodies(client)] == want
                assert client.wants_whole("overview") == fails

    run(test, node("n1"))
    assert "a frame of the topic overview could not be created" in caplog.text


class _Websocket:
    """A client of a WebSocket, without a socket.

    Attributes:
        accepted: the subprotocol that the server chose; None until it accepts the connection.
        closed: the code with which the server closed the connection; None until then.
    """

    def __init__(self, service: Service, headers: dict[str, str], protocols: list[str]) -> None:
        self.accepted: str | None = None
        self.closed: int | None = None
        self._in: asyncio.Queue[Message] = asyncio.Queue()
        self._out: asyncio.Queue[Message] = asyncio.Queue()
        named = {"host": "localhost"} | headers
        scope = {
            "type": "websocket",
            "path": STREAM,
            "raw_path": STREAM.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
            "subprotocols": protocols,
        }
        self._in.put_nowait({"type": "websocket.connect"})
        self._task = asyncio.ensure_future(service(scope, self._in.get, self._out.put))

    async def open(self) -> bool:
        """Wait for the answer; return whether it was accepted."""
        message = await asyncio.wait_for(self._out.get(), 10)
        if message["type"] == "websocket.accept":
            self.accepted = message["subprotocol"]
            return True
        self.closed = message["code"]
        return False

    def send(self, content: str | bytes) -> None:
        """Send a text or binary message."""
        self._in.put_nowait({"type": "websocket.receive", "text" if isinstance(content, str) else "bytes": content})

    async def receive(self) -> Any:
        """Wait for a frame and return it."""
        message = await asyncio.wait_for(self._out.get(), 10)
        assert message["type"] == "websocket.send"
        return json.loads(message["text"])

    async def leave(self) -> None:
        """Disconnect, and wait until the server has noticed."""
        self._in.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await asyncio.wait_for(self._task, 10)


def test_a_websocket_client_selects_topics_by_message() -> None:
    async def test(fixture: ServerFixture) -> None:
        socket = _Websocket(fixture.service, {}, ["bayplan.v1"])
        assert await socket.open()
        assert socket.accepted == "bayplan.v1"
        socket.send('{"topics": ["nothing"]}')
        assert (await socket.receive())["topic"] == "error"
        socket.send("[")
        assert (await socket.receive())["data"]["what"] == "message"
        socket.send(b'{"topics": ["clock"]}')
        assert (await socket.receive())["data"]["got"] == "a binary one"
        socket.send('{"topics": ["clock"]}')
        first = await socket.receive()
        assert (first["topic"], first["data"]["mode"]) == ("clock", "real")
        socket.send('{"topics": ["pods"]}')
        frame = await socket.receive()
        while frame["topic"] == "clock":
            frame = await socket.receive()
        assert frame["topic"] == "pods"
        await socket.leave()

    run(test, node("n1"))


@pytest.mark.parametrize(
    ("token", "headers", "protocols", "want"),
    [
        pytest.param("", {}, [], True, id="from this machine"),
        pytest.param("", {"origin": "https://evil.example"}, [], False, id="from a page of another origin"),
        pytest.param("", {"host": "evil.example"}, [], False, id="for another host name"),
        pytest.param("secret", {}, [], False, id="without the token"),
        pytest.param("secret", {"authorization": "Bearer secret"}, [], True, id="with the token"),
        pytest.param("secret", {"authorization": "Bearer wrong"}, [], False, id="with a wrong token"),
        pytest.param("secret", {}, ["bayplan.v1", "secret"], True, id="with the token as a subprotocol"),
        pytest.param("secret", {}, ["bayplan.v1", "wrong"], False, id="with a wrong token as a subprotocol"),
        pytest.param("secret", {}, ["bayplan.token.%%%"], False, id="with a subprotocol that is not a token"),
    ],
)
def test_a_websocket_is_authenticated_before_it_is_accepted(
    token: str, headers: dict[str, str], protocols: list[str], want: bool
) -> None:
    async def test(fixture: ServerFixture) -> None:
        service = Service(fixture.server, token=token)
        service.start()
        socket = _Websocket(service, headers, [_protocol(name) for name in protocols])
        assert await socket.open() == want
        await socket.leave()
        service.end_streams()
        service.close()

    run(test)


def _protocol(name: str) -> str:
    """Return a token as browsers show it, and any other name unchanged."""
    if name.startswith("bayplan."):
        return name
    return f"bayplan.token.{base64.urlsafe_b64encode(name.encode()).decode().rstrip('=')}"


def test_stopping_the_server_ends_its_streams() -> None:
    async def test(fixture: ServerFixture) -> None:
        socket = _Websocket(fixture.service, {}, [])
        assert await socket.open()
        socket.send('{"topics": ["clock"]}')
        await socket.receive()
        fixture.service.end_streams()
        await asyncio.wait_for(socket._task, 10)

    run(test)


def test_requests_require_the_configured_token() -> None:
    async def test(fixture: ServerFixture) -> None:
        service = Service(fixture.server, token="secret")
        transport = httpx.ASGITransport(app=service)
        async with httpx.AsyncClient(transport=transport, base_url="http://anywhere.example") as client:
            for path in ("/bayplan/v1/overview", "/api/v1/export"):
                assert (await client.get(path)).status_code == 401
                shown = await client.get(path, headers={"authorization": "Bearer secret"})
                assert shown.status_code == 200
                odd = {"authorization": "Bearer secret", "host": "["}
                assert (await client.get(path, headers=odd)).status_code == 200
        service.close()

    run(test)


def test_stream_and_contract_accept_the_methods_of_other_operations() -> None:
    async def test(fixture: ServerFixture) -> None:
        for path in (f"{STREAM}?topics=clock", OPENAPI):
            head = await fixture.client.head(path)
            assert (head.status_code, head.headers["x-request-id"][:4]) == (200, fixture.server.instance[:4])
            refused = await fixture.client.post(path)
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
        assert (await fixture.client.get(OPENAPI)).json()["openapi"] == "3.1.0"
        stream = fixture.service._stream
        assert stream is not None
        assert len(stream._clients) == 0

    run(test)


def test_a_write_that_is_not_stored_is_an_error_in_the_form_of_each_api() -> None:
    async def test(fixture: ServerFixture) -> None:
        async def fail() -> None:
            raise InputError("the store", got="a full disk")

        service = Service(fixture.server, allowed_origins=["http://page.example"], until_durable=lambda _: fail())
        transport = httpx.ASGITransport(app=service)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            ours = await client.put("/bayplan/v1/clock", json={"speed": 1})
            assert (ours.status_code, ours.json()["error"]["what"]) == (500, "the write was not stored")
            headers = {"origin": "http://page.example"}
            theirs = await client.post("/api/v1/import", json={}, headers=headers)
            assert (theirs.status_code, theirs.json()) == (500, {"message": "Internal Server Error"})
            assert theirs.headers["access-control-allow-origin"] == "http://page.example"
        service.close()

    run(test)


def test_a_write_is_answered_once_it_is_durable() -> None:
    async def test(fixture: ServerFixture) -> None:
        asked: list[int] = []
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def until_durable(revision: int) -> asyncio.Future[None]:
            asked.append(revision)
            return durable

        service = Service(fixture.server, until_durable=until_durable)
        transport = httpx.ASGITransport(app=service)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.get("/bayplan/v1/clock")).status_code == 200
            assert asked == []
            before = fixture.server.backend.store.revision
            text = {"text": '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}'}
            writing = asyncio.ensure_future(client.post("/bayplan/v1/apply", json=text))
            await asyncio.wait((writing,), timeout=0.2)
            assert not writing.done()
            assert before < asked[0] <= fixture.server.backend.store.revision
            durable.set_result(None)
            assert (await writing).json()["created"] == 1
        service.close()

    run(test)
