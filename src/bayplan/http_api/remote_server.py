"""A client for another Bayplan server, to compare its cluster with this one."""

from __future__ import annotations

import asyncio
import zlib
from http import HTTPStatus
from typing import TypeVar, cast
from urllib.parse import quote

import httpx
import msgspec
from msgspec.structs import asdict

from bayplan.base.bounded_body import BodyTooLarge, BoundedBody
from bayplan.http_api.comparison import MatrixOutput
from bayplan.http_api.contract.cluster import SourceFacts
from bayplan.http_api.contract.matrix import AnyMatrix, NoMatrix
from bayplan.http_api.contract.runs import Placements
from bayplan.http_api.errors import RequestError

REMOTE_SECONDS = 10.0
"""Time limit for the whole response of another server."""

MAX_REMOTE_BYTES = 64 << 20
"""Maximum size of another server's response. With 100,000 pods it has some megabytes."""

_MAX_PORT = 65_535
_NO_ANSWER = (
    httpx.HTTPError,
    httpx.InvalidURL,
    msgspec.DecodeError,
    UnicodeError,  # Raised for the response, or for an invalid host name.
    RecursionError,
    TimeoutError,
    zlib.error,
)

T = TypeVar("T")


class FollowedSource(msgspec.Struct):
    """A source cluster of another server, with the fields of `/sources` that comparisons show."""

    name: str = ""
    kind: str = ""
    state: str = ""
    lag_seconds: float = 0.0
    summary: str = ""


class FollowedSources(msgspec.Struct):
    """The source clusters of another server."""

    items: list[FollowedSource] = []


class RemoteServer:
    """Another Bayplan server. Every request raises RequestError if it times out, or if the response is too large or unexpected.

    Args:
        url: the URL of the server.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    async def placements(self) -> Placements:
        """Return the node of each of the server's pods."""
        placements = await self._get("/placements", Placements)
        if len(placements.pods) != len(placements.nodes):
            raise self._bad_gateway(
                f"{len(placements.pods)} pods and {len(placements.nodes)} nodes", "a node for each pod"
            )
        return placements

    async def sources(self) -> list[SourceFacts]:
        """Return the server's source clusters."""
        return [SourceFacts(**asdict(each)) for each in (await self._get("/sources", FollowedSources)).items]

    async def matrix(self, namespace: str, name: str, query: str) -> AnyMatrix:
        """Return the matrix of the last attempt of one of the server's pods.

        Args:
            namespace, name: the namespace and name of the pod.
            query: the query string to send.
        """
        path = f"/pods/{quote(namespace, safe='')}/{quote(name, safe='')}/attempts/latest/matrix?{query}"
        matrix = await self._get(path, cast("type[AnyMatrix]", AnyMatrix))
        if not isinstance(matrix, NoMatrix):
            try:
                MatrixOutput(matrix)
            except ValueError as problem:
                raise self._bad_gateway(str(problem), "a matrix in columns") from problem
        return matrix

    async def _get(self, path: str, kind: type[T]) -> T:
        try:
            async with asyncio.timeout(REMOTE_SECONDS), httpx.AsyncClient(timeout=REMOTE_SECONDS) as client:
                return msgspec.json.decode(await self._read(client, path), type=kind)
        except _NO_ANSWER as problem:
            got = f"{type(problem).__name__}: {problem}"
            raise self._bad_gateway(got, "a response from a Bayplan server") from problem

    async def _read(self, client: httpx.AsyncClient, path: str) -> bytes:
        address = httpx.URL(f"{self.url}/bayplan/v1{path}")
        if (address.port or 0) > _MAX_PORT:
            # The operating system's error for it is no error of HTTPX.
            raise httpx.InvalidURL(f"Invalid port: {address.port}")
        async with client.stream("GET", address, headers={"Accept-Encoding": "gzip"}) as answer:
            answer.raise_for_status()
            found = BoundedBody(MAX_REMOTE_BYTES, answer.headers.get("content-encoding", ""))
            async for piece in answer.aiter_raw():
                try:
                    found.add(piece)
                except BodyTooLarge:
                    raise self._bad_gateway("a longer response", f"at most {MAX_REMOTE_BYTES:,} bytes") from None
        return found.joined()

    def _bad_gateway(self, got: str, wanted: str) -> RequestError:
        return RequestError(HTTPStatus.BAD_GATEWAY, self.url, got=got, wanted=wanted)
