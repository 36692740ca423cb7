"""Forks and comparisons."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bayplan.service.comparison import Side, differences
from tests.service.lab import Lab, node, pod, run
from tests.service.test_control_routes import MISSPELT, MOST_ALLOCATED

NODES = [node(f"n{number}", zone="ab"[number % 2]) for number in range(4)]


async def _fork(lab: Lab, **request: Any) -> Any:
    """Begin a fork, and return it when it has ended."""
    begun = await lab.send("POST", "/forks", request, want=201)
    for _ in range(1000):
        found = await lab.get(f"/forks/{begun['id']}")
        if found["state"] != "running":
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("the fork does not end")


def test_a_fork_tries_something_and_leaves_the_cluster_alone() -> None:
    async def test(lab: Lab) -> None:
        before = await lab.get("/placements")
        more = await _fork(lab, objects=[node("big", cpu="64"), pod("new", cpu="2")], name="one more node")
        assert more["state"] == "done"
        assert more["facts"]["pods"]["pending"] == 0
        assert await lab.get("/placements") == before
        difference = await lab.get("/compare", a="now", b=more["id"])
        assert difference["counts"] == {"pods": 3, "moved": 0, "only_a": 0, "only_b": 1}
        assert [(each["pod"], each["a_node"], each["b_node"]) for each in difference["items"]] == [
            ("default/huge", "", "big")
        ]
        assert difference["sentence"].startswith(
            "1 of 3 pods differs: 0 on another node, 1 placed only by one more node"
        )
        less = await _fork(
            lab, delete=[{"kind": "Node", "name": "n0"}, {"kind": "Pod", "namespace": "default", "name": "a"}]
        )
        assert less["facts"]["nodes"]["total"] == 3
        assert [each["id"] for each in (await lab.get("/forks"))["items"]] == [more["id"], less["id"]]
        assert [each["id"] for each in (await lab.send("DELETE", f"/forks/{more['id']}"))["items"]] == [less["id"]]
        await lab.get(f"/forks/{more['id']}", want=404)

    run(test, *NODES, pod("a"), pod("b"), pod("huge", cpu="40"))


def test_a_fork_of_a_snapshot_with_another_configuration_says_which_plugin_decided_otherwise() -> None:
    async def test(lab: Lab) -> None:
        await lab.send("POST", "/snapshots", {"name": "empty"}, want=201)
        await lab.create(*(pod(f"p{number}") for number in range(6)))
        await lab.settle()
        pods = [pod(f"p{number}") for number in range(6)]
        packed = await _fork(lab, **{"from": "empty", "config": MOST_ALLOCATED, "objects": pods, "name": "packed"})
        assert packed["state"] == "done", packed["message"]
        found = await lab.get("/compare", a="now", b=packed["id"], kind="moved")
        assert found["counts"]["moved"] == found["total"] > 0
        metrics = {each["name"]: (each["a"], each["b"]) for each in found["metrics"]}
        assert metrics["placed"] == (6, 6)
        assert metrics["nodes_used"][1] < metrics["nodes_used"][0]
        assert any(each["first_plugin"] for each in found["items"])
        assert all(
            each["first_plugin"]["a"] != each["first_plugin"]["b"] for each in found["items"] if each["first_plugin"]
        )
        same = await lab.get("/compare", a=packed["id"], b=packed["id"])
        assert same["sentence"] == "packed and packed place all 6 pods alike"

    run(test, *NODES)


def test_forks_that_can_not_be_are_refused() -> None:
    async def test(lab: Lab) -> None:
        assert (await lab.send("POST", "/forks", {"from": "x"}, want=404))["error"]["wanted"] == "one of now"
        assert "PodTopologySpreed" in (await lab.send("POST", "/forks", {"config": MISSPELT}, want=422))["error"]["got"]
        gone = await lab.send("POST", "/forks", {"delete": [{"kind": "Node", "name": "x"}]}, want=422)
        assert gone["error"]["got"] == "Node x"
        odd = await lab.send("POST", "/forks", {"objects": [{"kind": "Pot", "apiVersion": "v1"}]}, want=422)
        assert odd["error"]["where"] == "objects[0]"
        assert (await lab.get("/compare", want=404, a="x"))["error"]["what"] == "fork"
        assert (await lab.get("/compare", want=502, a="http://127.0.0.1:1"))["error"]["what"] == "http://127.0.0.1:1"
        assert (await lab.send("POST", "/forks", {"until": -1}, want=422))["error"]["what"] == "until"

    run(test, *NODES)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({"p": "n"}, {"p": "n"}, [], id="the same node"),
        pytest.param({"p": ""}, {"p": ""}, [], id="both wait"),
        pytest.param({"p": "n"}, {"q": "n"}, [], id="pods of one side are left out"),
        pytest.param({"p": "n", "o": "n"}, {"p": "m", "o": "m"}, ["o moved", "p moved"], id="by name"),
        pytest.param({"p": "n", "o": ""}, {"p": "", "o": "m"}, ["o only_b", "p only_a"], id="placed by one of them"),
    ],
)
def test_differences(a: dict[str, str], b: dict[str, str], want: list[str]) -> None:
    found, both = differences(Side(name="a", nodes=a), Side(name="b", nodes=b))
    assert [f"{each.pod} {each.kind}" for each in found] == want
    assert both == len(a.keys() & b.keys())


def test_a_fork_is_read_like_the_server() -> None:
    async def test(lab: Lab) -> None:
        fork = await _fork(lab, objects=[node("big", cpu="64")], name="one more node")
        run_id = fork["id"]
        listed = await lab.get("/pods", run=run_id, facets=1)
        assert listed["total"] == 3
        nodes = {item["name"]: item["node"] for item in listed["items"]}
        assert nodes["huge"] == "big"
        items = {item["name"]: item for item in (await lab.get("/nodes", run=run_id))["items"]}
        assert items["big"]["requested"]["cpu"] == 40_000
        assert sum(item["pods"] for item in items.values()) == 3
        cells = await lab.get("/nodes/cells", run=run_id, by="none")
        assert len(cells["groups"][0]["nodes"]) == 5
        page = await lab.get("/pods/default/huge", run=run_id)
        assert page["sentence"].startswith("default/huge is on big")
        assert page["manifest"]["spec"]["nodeName"] == "big"
        matrix = await lab.get("/pods/default/huge/attempts/latest/matrix", run=run_id)
        assert matrix["winner"] == "big"
        explained = await lab.get("/pods/default/huge/explanation", run=run_id)
        assert explained["verdict"] == page["sentence"]
        assert [item["name"] for item in (await lab.get("/decisions", run=run_id))["items"]] == ["huge"]
        assert (await lab.get("/pods", want=404, run="nobody"))["error"]["what"] == "fork"
        assert (await lab.get("/pods/default/a", run=run_id))["sentence"].endswith("no decision was taken about it")

    run(test, *NODES, pod("a"), pod("b"), pod("huge", cpu="40"))
