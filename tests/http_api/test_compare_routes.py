"""Compare: requests to other servers are restricted, and the matrices of a pod in two runs show what made the difference."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bayplan.http_api import compare_routes, remote_server
from bayplan.http_api.comparison import Side, differences
from bayplan.http_api.contract.runs import ComparedRun
from tests.http_api.server_fixture import ServerFixture, node, pod, run
from tests.http_api.test_control_routes import MOST_ALLOCATED
from tests.http_api.test_fork_routes import begin_fork

NODES = [node(f"n{number}") for number in range(3)]


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({"p": "n"}, {"p": "n"}, [], id="the same node"),
        pytest.param({"p": ""}, {"p": ""}, [], id="both wait"),
        pytest.param(
            {"p": "n"}, {"q": "n"}, ["p only_a", "q only_b"], id="a pod that only one side has is a difference"
        ),
        pytest.param({"p": ""}, {"q": ""}, ["p only_a", "q only_b"], id="a waiting pod of one side"),
        pytest.param({"p": "n", "o": "n"}, {"p": "m", "o": "m"}, ["o moved", "p moved"], id="by name"),
        pytest.param({"p": "n", "o": ""}, {"p": "", "o": "m"}, ["o only_b", "p only_a"], id="placed by one of them"),
    ],
)
def test_differences_list_pods_with_different_nodes_by_name(
    a: dict[str, str], b: dict[str, str], want: list[str]
) -> None:
    found, both = differences(
        *(Side(facts=ComparedRun(name=name, kind="now"), nodes=nodes) for name, nodes in (("a", a), ("b", b)))
    )
    assert [f"{each.pod} {each.kind}" for each in found] == want
    assert both == len(a.keys() | b.keys())


def test_pod_comparison_shows_both_matrices_and_the_decisive_plugin() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.send("POST", "/snapshots", {"name": "empty"}, want=201)
        pods = [pod(f"p{number}") for number in range(6)]
        await fixture.create(*pods)
        await fixture.settle()
        fork = await begin_fork(fixture, **{"from": "empty", "config": MOST_ALLOCATED, "objects": pods})
        moved = (await fixture.get("/compare", a="now", b=fork["id"], kind="moved"))["items"]
        for row in moved:
            found = await fixture.get(f"/compare/pods/{row['pod']}", a="now", b=fork["id"])
            assert (found["a_node"], found["b_node"]) == (row["a_node"], row["b_node"])
            assert (found["decisive_plugin"] or {}).get("name") == (row["decisive_plugin"] or {}).get("name")
            for side, query in (("a", {}), ("b", {"run": fork["id"]})):
                matrix = f"/pods/{row['pod']}/attempts/latest/matrix"
                whole = await fixture.get(matrix, form="columns", limit=10_000, **query)
                assert found[side]["matrix"]["rows"] == whole["rows"]
        assert any(row["decisive_plugin"] for row in moved)
        missing = await fixture.get("/compare/pods/default/nobody", want=404, a="now", b=fork["id"])
        assert missing["error"]["what"] == "pod"

    run(test, *NODES)


def test_the_decisive_plugin_is_found_beyond_the_truncated_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_routes, "MAX_ROWS", 1)

    async def test(fixture: ServerFixture) -> None:
        await fixture.send("POST", "/snapshots", {"name": "empty"}, want=201)
        pods = [pod(f"p{number}") for number in range(6)]
        await fixture.create(*pods)
        await fixture.settle()
        fork = await begin_fork(fixture, **{"from": "empty", "config": MOST_ALLOCATED, "objects": pods})
        moved = (await fixture.get("/compare", a="now", b=fork["id"], kind="moved"))["items"]
        assert any(row["decisive_plugin"] for row in moved)
        for row in moved:
            found = await fixture.get(f"/compare/pods/{row['pod']}", a="now", b=fork["id"])
            assert found["decisive_plugin"] == row["decisive_plugin"]
            assert [len(found[side]["matrix"]["rows"]["node"]) for side in "ab"] == [1, 1]

    run(test, *NODES)


async def another_server(told: Mapping[str, bytes]) -> asyncio.Server:
    """Start another server, whose answers are those by path."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + told[asked.partition("?")[0]])
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


def address_of(server: asyncio.Server) -> str:
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


MATRIX = "/bayplan/v1/pods/default/p/attempts/latest/matrix"


def test_a_matrix_from_another_server_is_compared() -> None:
    told: dict[str, bytes] = {}

    async def test(fixture: ServerFixture) -> None:
        # All nodes are ready now, so more than one is scored.
        await fixture.create(pod("p"))
        await fixture.settle()
        ours = await fixture.get("/pods/default/p/attempts/latest/matrix", form="columns")
        theirs = json.loads(json.dumps(ours))
        theirs["winner"] = next(name for name in theirs["rows"]["node"] if name != ours["winner"])
        at = theirs["rows"]["node"].index(theirs["winner"])
        theirs["rows"]["weighted"][at][0] += 100
        told[MATRIX] = json.dumps(theirs).encode()
        told["/bayplan/v1/placements"] = b'{"pods": ["default/p"], "nodes": ["elsewhere"], "instance": "i"}'
        told["/bayplan/v1/sources"] = b'{"items": [{"name": "prod", "state": "following", "lag_seconds": 2}]}'
        async with await another_server(told) as server:
            url = address_of(server)
            found = await fixture.get("/compare/pods/default/p", a="now", b=url)
            assert (found["a_node"], found["b_node"]) == (ours["winner"], theirs["winner"])
            assert found["b"]["matrix"] == theirs
            first = found["decisive_plugin"]
            assert (first["name"], first["a"] - first["b"]) == (ours["scorers"][0]["name"], 100)
            whole = await fixture.get("/compare", a="now", b=url)
            (followed,) = whole["b"]["sources"]
            assert (followed["name"], followed["state"], followed["lag_seconds"]) == ("prod", "following", 2.0)

    run(test, *NODES)


@pytest.mark.parametrize(
    ("spoil", "want"),
    [
        pytest.param(lambda rows: rows.pop("plugin"), "missing required field `plugin`", id="without a column"),
        pytest.param(lambda rows: rows["gap"].pop(), "different lengths", id="a column that is too short"),
        pytest.param(lambda rows: rows["weighted"][0].append(1), "points than scorers", id="points without a scorer"),
        pytest.param(lambda rows: rows.update(node="n0"), "Expected `array`", id="no column at all"),
    ],
)
def test_an_invalid_matrix_from_another_server_is_refused(spoil: Callable[[Any], object], want: str) -> None:
    told: dict[str, bytes] = {}

    async def test(fixture: ServerFixture) -> None:
        theirs = await fixture.get("/pods/default/p/attempts/latest/matrix", form="columns")
        spoil(theirs["rows"])
        told[MATRIX] = json.dumps(theirs).encode()
        async with await another_server(told) as server:
            refused = await fixture.get("/compare/pods/default/p", want=502, a="now", b=address_of(server))
        assert want in refused["error"]["got"]

    run(test, *NODES, pod("p"))


@pytest.mark.parametrize(
    ("told", "want"),
    [
        pytest.param(b"<html>", "DecodeError", id="no JSON"),
        # msgspec 0.23 and later raise their own error.
        pytest.param(b'{"pods": ["\xff"], "nodes": []}', ("UnicodeDecodeError", "DecodeError"), id="no text"),
        # Python 3.14 and later recurse more deeply.
        pytest.param(
            b'{"more": %b%b}' % (b"[" * 100_000, b"]" * 100_000), ("RecursionError", "ValidationError"), id="too deep"
        ),
        pytest.param(
            b'{"pods": ["default/p"], "nodes": [], "instance": "x"}', "1 pods and 0 nodes", id="a pod without a node"
        ),
    ],
)
def test_an_invalid_response_from_another_server_is_refused(told: bytes, want: str | tuple[str, ...]) -> None:
    async def test(fixture: ServerFixture) -> None:
        answers = {"/bayplan/v1/placements": told, "/bayplan/v1/sources": b"{}"}
        async with await another_server(answers) as server:
            refused = await fixture.get("/compare", want=502, a="now", b=address_of(server))
        assert refused["error"]["got"].startswith(want)

    run(test, *NODES)


def test_an_invalid_server_address_is_refused() -> None:
    async def test(fixture: ServerFixture) -> None:
        for address in ("http://", "http://[::1", "http://xn--a", "http://localhost:65536"):
            await fixture.get("/compare", want=502, a="now", b=address)

    run(test, *NODES)


def test_cross_site_requests_do_not_reach_another_server() -> None:
    async def test(fixture: ServerFixture) -> None:
        query = {"a": "now", "b": "http://127.0.0.1:1"}
        for site, want in (("cross-site", 403), ("same-site", 403), ("same-origin", 502), ("none", 502)):
            answer = await fixture.client.get("/bayplan/v1/compare", params=query, headers={"sec-fetch-site": site})
            assert answer.status_code == want, answer.text

    run(test, *NODES)


@pytest.mark.parametrize(
    ("pause", "want"),
    [
        pytest.param(0.0, "a longer response", id="an endless response"),
        pytest.param(0.05, "TimeoutError", id="a response in small pieces"),
    ],
)
def test_responses_of_other_servers_are_limited_in_size_and_time(
    pause: float, want: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For an endless answer, the time limit is high, so that the size limit applies first, also on a busy machine.
    monkeypatch.setattr(remote_server, "REMOTE_SECONDS", 0.5 if pause else 60.0)
    monkeypatch.setattr(remote_server, "MAX_REMOTE_BYTES", 100_000)

    ended = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while not writer.is_closing():
                writer.write(b" " * (1 if pause else 10_000))
                await writer.drain()
                await asyncio.sleep(pause)
        except ConnectionError:
            pass
        finally:
            writer.close()
            ended.set()

    async def test(fixture: ServerFixture) -> None:
        server = await asyncio.start_server(endless, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            refused = await fixture.get("/compare", want=502, a=f"http://127.0.0.1:{port}")
            assert refused["error"]["got"].startswith(want)
            await asyncio.wait_for(ended.wait(), 60)
            await asyncio.sleep(0)

    run(test, *NODES)
