"""Connections over real sockets: answers, refusals, credentials, limits, streams, and unreachable servers."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bayplan.base.errors import InputError
from bayplan.client import cluster_access
from bayplan.client.cluster_access import open_access
from bayplan.client.connection import (
    MAX_CONNECTIONS,
    PATIENCE,
    ApiConnection,
    ConnectionLost,
    Patience,
    StreamRejected,
    StreamSilent,
)
from bayplan.client.discovery import served_paths
from bayplan.client.reflector import Change, Reflector
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.objects.namespace import Namespace
from bayplan.objects.policy import PodGroup
from bayplan.objects.resource import ResourceClaim
from tests.apiserver.serving import serving

T = TypeVar("T")
NAMESPACES = "/api/v1/namespaces"


def kubeconfig(folder: Path, url: str, token: str = "") -> Path:
    path = folder / "kubeconfig"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(yaml.safe_dump(document))
    return path


def connected(path: Path, use: Callable[[ApiConnection], Awaitable[T]], *, qps: float = -1, burst: int = 1) -> T:
    """Return the result of `use` for a connection to the cluster of a kubeconfig."""

    async def run() -> T:
        access = await open_access(path)
        async with ApiConnection(access, user_agent="tests/1.0", qps=qps, burst=burst) as connection:
            return await use(connection)

    return asyncio.run(run())


def served(
    path: Callable[[str], Path],
    routes: Sequence[Route],
    use: Callable[[ApiConnection], Awaitable[T]],
    patience: Patience = PATIENCE,
    /,
    **certificate: str,
) -> T:
    """Run a server with these routes, and return the result of `use` for a connection to it."""

    async def run() -> T:
        server = uvicorn.Server(
            uvicorn.Config(Starlette(routes=list(routes)), port=0, log_level="error", lifespan="off", **certificate)  # type: ignore[arg-type]
        )
        serve = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        access = await open_access(path(f"http://127.0.0.1:{port}"))
        try:
            async with ApiConnection(access, user_agent="tests/1.0", qps=-1, patience=patience) as connection:
                return await use(connection)
        finally:
            server.should_exit = True
            await serve

    return asyncio.run(run())


def test_requests_return_responses_including_error_statuses(tmp_path: Path) -> None:
    made = msgspec.json.encode({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "t"}})

    async def use(connection: ApiConnection) -> list[ApiResponse]:
        create = ApiRequest("POST", NAMESPACES, made)
        return [await connection.send(each) for each in (create, create, ApiRequest("GET", f"{NAMESPACES}/absent"))]

    with serving(token="secret") as server:
        first, again, absent = connected(kubeconfig(tmp_path, server.url, "secret"), use)
        assert (first.status, first.ok) == (201, True)
        assert (again.status, again.message) == (409, 'namespaces "t" already exists')
        assert (absent.status, absent.message) == (404, 'namespaces "absent" not found')
        [stranger] = connected(
            kubeconfig(tmp_path, server.url, "wrong"), lambda c: asyncio.gather(c.send(ApiRequest("GET", NAMESPACES)))
        )
        assert stranger.status == 401


def test_an_unreachable_server_returns_a_no_answer_response_or_raises(tmp_path: Path) -> None:
    with serving() as server:
        path = kubeconfig(tmp_path, server.url)

    async def use(connection: ApiConnection) -> tuple[ApiResponse, str, str]:
        response = await connection.send(ApiRequest("POST", NAMESPACES, b"{}"))
        with pytest.raises(ConnectionLost) as lost:
            async for _ in connection.stream(NAMESPACES, "watch=1"):
                pass
        with pytest.raises(InputError) as refused:
            await served_paths(connection, [Namespace])
        return response, str(lost.value), str(refused.value)

    response, lost, refused = connected(path, use)
    assert response.status == NO_ANSWER
    assert response.message.startswith(f'Post "{server.url}{NAMESPACES}": ')
    assert "refused" in response.message
    assert "refused" in lost
    assert "kubectl cluster-info" in refused


def test_a_reflector_receives_changes_from_a_real_server(tmp_path: Path) -> None:
    async def use(connection: ApiConnection) -> list[tuple[str, str]]:
        reported: list[tuple[str, str]] = []
        enough = asyncio.Event()

        def take(changes: Sequence[Change[Namespace]]) -> None:
            for old, new in changes:
                name = (new or old or Namespace()).key
                reported.append(("+" if old is None else "-" if new is None else "=", name))
                if reported[-1] == ("+", "last"):
                    enough.set()

        decoder = ObjectDecoder()
        reflector = Reflector(connection, NAMESPACES, lambda raw: decoder.decode(raw, Namespace), take)
        task = asyncio.ensure_future(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 20)
        assert "default" in reflector.items
        reported.clear()
        for name in ("first", "last"):
            body = msgspec.json.encode({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
            assert (await connection.send(ApiRequest("POST", NAMESPACES, body))).ok
        await asyncio.wait_for(enough.wait(), 20)
        task.cancel()
        return [each for each in reported if each[0] == "+"]

    with serving() as server:
        assert connected(kubeconfig(tmp_path, server.url), use) == [("+", "first"), ("+", "last")]


def test_a_refused_stream_raises_stream_refused(tmp_path: Path) -> None:
    async def use(connection: ApiConnection) -> ApiResponse:
        with pytest.raises(StreamRejected) as refused:
            async for _ in connection.stream(f"{NAMESPACES}x", "watch=1"):
                pass
        return refused.value.response

    with serving() as server:
        assert connected(kubeconfig(tmp_path, server.url), use).status == 404


def test_requests_obey_the_rate_limit(tmp_path: Path) -> None:
    async def use(connection: ApiConnection) -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(connection.send(ApiRequest("GET", "/version")) for _ in range(6)))
        return asyncio.get_running_loop().time() - began

    with serving() as server:
        assert connected(kubeconfig(tmp_path, server.url), use, qps=10, burst=2) >= 0.39


def test_a_web_page_is_no_response_of_an_api(tmp_path: Path) -> None:
    async def login(request: Request) -> Response:
        return HTMLResponse("<html>Log in</html>")

    async def use(connection: ApiConnection) -> tuple[ApiResponse, str]:
        with pytest.raises(ConnectionLost) as lost:
            await anext(connection.stream("/api/v1/nodes", "watch=1"))
        return await connection.send(ApiRequest("GET", "/api/v1/nodes")), str(lost.value)

    response, lost = served(lambda url: kubeconfig(tmp_path, url), [Route("/api/v1/nodes", login)], use)
    assert response.status == NO_ANSWER
    want = "the response is a web page; a login proxy may have answered instead of the API server"
    assert response.message.endswith(f'/api/v1/nodes": {want}')
    assert re.fullmatch(rf"http://127\.0\.0\.1:\d+: {want}", lost)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_response_with_retry_after_is_retried(tmp_path: Path, status: int) -> None:
    asked: list[str] = []

    async def busy(request: Request) -> Response:
        asked.append(request.headers["user-agent"])
        late = {"message": "later"}
        return JSONResponse(late, status, {"Retry-After": "0"}) if len(asked) < 4 else JSONResponse({})

    async def use(connection: ApiConnection) -> ApiResponse:
        return await connection.send(ApiRequest("POST", "/busy", b"{}"))

    response = served(lambda url: kubeconfig(tmp_path, url), [Route("/busy", busy, methods=["POST"])], use)
    assert (response.status, asked) == (200, ["tests/1.0"] * 4)


def test_rotated_certificate_authorities_are_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_access, "REFRESH_SECONDS", 0.0)
    for name in ("old", "new"):
        options = ("-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.crt"))
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        command += ["-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([*command, *options], check=True, capture_output=True)
    authorities = tmp_path / "ca.crt"
    shutil.copy(tmp_path / "old.crt", authorities)

    def trusting(url: str) -> Path:
        path = kubeconfig(tmp_path, url.replace("http://", "https://"))
        document = yaml.safe_load(path.read_text())
        document["clusters"][0]["cluster"]["certificate-authority"] = str(authorities)
        path.write_text(yaml.safe_dump(document))
        return path

    async def version(request: Request) -> Response:
        return JSONResponse({})

    async def use(connection: ApiConnection) -> list[int]:
        request = ApiRequest("POST", "/version", b"{}")
        found = [(await connection.send(request)).status]
        shutil.copy(tmp_path / "new.crt", authorities)
        return [*found, *[(await connection.send(request)).status for _ in range(2)]]

    certificate = {"ssl_certfile": str(tmp_path / "new.crt"), "ssl_keyfile": str(tmp_path / "new.key")}
    routes = [Route("/version", version, methods=["POST"])]
    assert served(trusting, routes, use, **certificate) == [NO_ANSWER, NO_ANSWER, 200]


def test_a_failed_tls_connection_is_described_as_by_go(tmp_path: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=a"]
    command += ["-keyout", str(tmp_path / "a.key"), "-out", str(tmp_path / "a.crt")]
    subprocess.run(command, check=True, capture_output=True)

    def secure(url: str) -> Path:
        return kubeconfig(tmp_path, url.replace("http://", "https://"))

    async def use(connection: ApiConnection) -> str:
        return (await connection.send(ApiRequest("POST", "/version", b"{}"))).message

    certificate = {"ssl_certfile": str(tmp_path / "a.crt"), "ssl_keyfile": str(tmp_path / "a.key")}
    unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert served(secure, [], use, **certificate).endswith(f'/version": {unknown}')
    assert served(secure, [], use).endswith("http: server gave HTTP response to HTTPS client")


def test_slow_requests_do_not_delay_others(tmp_path: Path) -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(1)
        return JSONResponse({})

    async def quick(request: Request) -> Response:
        return JSONResponse({})

    async def use(connection: ApiConnection) -> float:
        began = asyncio.get_running_loop().time()
        waiting = [asyncio.ensure_future(connection.send(ApiRequest("GET", "/slow"))) for _ in range(MAX_CONNECTIONS)]
        await asyncio.sleep(0)
        await connection.send(ApiRequest("GET", "/quick"))
        seconds = asyncio.get_running_loop().time() - began
        await asyncio.gather(*waiting)
        return seconds

    routes = [Route("/slow", slow), Route("/quick", quick)]
    assert served(lambda url: kubeconfig(tmp_path, url), routes, use) < 0.9


def test_streamed_lines_are_reassembled_and_truncated_ones_raise_connection_lost(tmp_path: Path) -> None:
    async def lines(request: Request) -> Response:
        async def pieces() -> object:
            for piece in (b'{"a":', b'1}\n{"b":2}\n{"c"', b":3}\n"):
                yield piece
                await asyncio.sleep(0.01)

        return StreamingResponse(pieces())  # type: ignore[arg-type]

    async def cut(request: Request) -> Response:
        return Response(b'{"a": 1}\n{"b"')

    async def aborted(request: Request) -> Response:
        async def pieces() -> object:
            yield b'{"a": 1}\n'
            raise asyncio.CancelledError

        return StreamingResponse(pieces())  # type: ignore[arg-type]

    async def use(connection: ApiConnection) -> tuple[list[bytes], list[str]]:
        found = [line async for some in connection.stream("/lines", "") for line in some]
        problems = []
        for path in ("/cut", "/aborted"):
            with pytest.raises(ConnectionLost) as lost:
                async for _ in connection.stream(path, ""):
                    pass
            problems.append(str(lost.value))
        return found, problems

    routes = [Route("/lines", lines), Route("/cut", cut), Route("/aborted", aborted)]
    found, problems = served(lambda url: kubeconfig(tmp_path, url), routes, use)
    assert found == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
    # Each text is the same for equal causes, so that a reflector logs it once.
    assert problems[0] == "the stream ended in the middle of a line"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+: unexpected EOF", problems[1])


@pytest.mark.parametrize(
    ("patience", "want", "problem"),
    [
        pytest.param(
            Patience(silence_seconds=0.2), StreamSilent, "no data for 0.2 s", id="of which another part responds"
        ),
        pytest.param(
            Patience(ping_after_seconds=0.2, ping_seconds=0.2), ConnectionLost, " does not respond",
            id="that does not respond to pings",
        ),
    ],
)  # fmt: skip
def test_the_stream_of_a_silent_server_is_closed(
    patience: Patience, want: type[ConnectionLost], problem: str, tmp_path: Path
) -> None:
    async def hang(request: Request) -> Response:
        await asyncio.sleep(2)
        return JSONResponse({})

    async def begin(request: Request) -> Response:
        async def pieces() -> object:
            yield b'{"a":1}\n'
            await asyncio.sleep(2)

        return StreamingResponse(pieces())  # type: ignore[arg-type]

    async def use(connection: ApiConnection) -> tuple[ApiResponse, Exception]:
        with pytest.raises(ConnectionLost) as lost:
            async for _ in connection.stream("/begin", ""):
                pass
        return await connection.send(ApiRequest("POST", "/version", b"{}"), seconds=0.2), lost.value

    routes = [Route("/version", hang, methods=["GET", "POST"]), Route("/begin", begin)]
    response, lost = served(lambda url: kubeconfig(tmp_path, url), routes, use, patience)
    assert (response.status, response.message.partition(": ")[2]) == (NO_ANSWER, "context deadline exceeded")
    assert type(lost) is want
    assert str(lost).endswith(problem)


def test_data_during_a_failed_ping_keeps_streams_open(tmp_path: Path) -> None:
    pinged = asyncio.Event()

    async def hang(request: Request) -> Response:
        pinged.set()
        await asyncio.sleep(1)
        return JSONResponse({})

    async def resume(request: Request) -> Response:
        async def pieces() -> object:
            await pinged.wait()
            yield b'{"a":1}\n'
            await asyncio.sleep(1)
            yield b'{"b":1}\n'

        return StreamingResponse(pieces())  # type: ignore[arg-type]

    async def use(connection: ApiConnection) -> list[bytes]:
        return [line async for lines in connection.stream("/resume", "") for line in lines]

    routes = [Route("/version", hang), Route("/resume", resume)]
    patience = Patience(ping_after_seconds=0.7, ping_seconds=0.5)
    assert served(lambda url: kubeconfig(tmp_path, url), routes, use, patience) == [b'{"a":1}', b'{"b":1}']


def test_a_stream_starts_pings_again_that_have_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(request: Request) -> Response:
        await asyncio.sleep(3)
        return JSONResponse({})

    async def begin(request: Request) -> Response:
        async def pieces() -> object:
            yield b'{"a":1}\n'
            await asyncio.sleep(3)

        return StreamingResponse(pieces())  # type: ignore[arg-type]

    send = ApiConnection._send_once
    broken = [True]

    async def fail_once(self: ApiConnection, request: ApiRequest, seconds: float) -> object:
        if broken:
            broken.pop()
            raise RuntimeError("a bug in a ping")
        return await send(self, request, seconds)

    async def use(connection: ApiConnection) -> str:
        monkeypatch.setattr(ApiConnection, "_send_once", fail_once)
        async with asyncio.timeout(20):
            async for _ in connection.stream("/begin", ""):
                while broken:
                    await asyncio.sleep(0.1)
                break
            with pytest.raises(ConnectionLost) as lost:
                async for _ in connection.stream("/begin", ""):
                    pass
        return str(lost.value)

    routes = [Route("/version", hang), Route("/begin", begin)]
    patience = Patience(ping_after_seconds=0.2, ping_seconds=0.2)
    assert served(lambda url: kubeconfig(tmp_path, url), routes, use, patience).endswith(" does not respond")


def test_a_stream_waits_for_headers_only_as_long_as_for_a_connection(tmp_path: Path) -> None:
    async def hang(request: Request) -> Response:
        await asyncio.sleep(1)
        return JSONResponse({})

    async def slow(request: Request) -> Response:
        async def pieces() -> object:
            yield b'{"a":1}\n'
            await asyncio.sleep(0.5)
            yield b'{"b":1}\n'

        return StreamingResponse(pieces())  # type: ignore[arg-type]

    async def use(connection: ApiConnection) -> list[bytes]:
        with pytest.raises(ConnectionLost, match=r"context deadline exceeded$"):
            async for _ in connection.stream("/hang", ""):
                pass
        return [line async for lines in connection.stream("/slow", "") for line in lines]

    routes = [Route("/hang", hang), Route("/slow", slow)]
    found = served(lambda url: kubeconfig(tmp_path, url), routes, use, Patience(connect_seconds=0.3))
    assert found == [b'{"a":1}', b'{"b":1}']


def test_discovery_returns_the_newest_served_version_of_each_kind(tmp_path: Path) -> None:
    async def groups(request: Request) -> Response:
        known = {
            "/api/v1": ["namespaces", "pods"],
            "/apis/resource.k8s.io/v1": ["deviceclasses"],
            "/apis/resource.k8s.io/v1beta2": ["deviceclasses", "resourceclaims"],
        }
        found = known.get(request.url.path)
        if found is None:
            return JSONResponse({"message": "not found"}, 404)
        return JSONResponse({"resources": [{"name": name} for name in found]})

    async def use(connection: ApiConnection) -> dict[type, str]:
        return dict(await served_paths(connection, [Namespace, ResourceClaim, PodGroup]))

    routes = [Route("/{path:path}", groups)]
    assert served(lambda url: kubeconfig(tmp_path, url), routes, use) == {
        Namespace: NAMESPACES,
        ResourceClaim: "/apis/resource.k8s.io/v1beta2/resourceclaims",
    }
