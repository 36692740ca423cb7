"""Forks and comparisons."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.http_api.server_fixture import ServerFixture, node, pod, run
from tests.http_api.test_control_routes import MISSPELT, MOST_ALLOCATED

NODES = [node(f"n{number}", zone="ab"[number % 2]) for number in range(4)]


async def begin_fork(fixture: ServerFixture, **request: Any) -> Any:
    """Begin a fork, and return it when it has ended."""
    begun = await fixture.send("POST", "/forks", request, want=201)
    for _ in range(1000):
        found = await fixture.get(f"/forks/{begun['id']}")
        if found["state"] != "running":
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("the fork does not end")


def test_a_fork_applies_changes_without_affecting_the_cluster() -> None:
    async def test(fixture: ServerFixture) -> None:
        before = await fixture.get("/placements")
        more = await begin_fork(fixture, objects=[node("big", cpu="64"), pod("new", cpu="2")], name="one more node")
        assert more["state"] == "done"
        assert more["facts"]["pods"]["pending"] == 0
        assert await fixture.get("/placements") == before
        difference = await fixture.get("/compare", a="now", b=more["id"])
        assert difference["counts"] == {"pods": 4, "moved": 0, "only_a": 0, "only_b": 2}
        assert [(each["pod"], each["a_node"], each["missing_in"]) for each in difference["items"]] == [
            ("default/huge", "", ""),
            ("default/new", "", "a"),
        ]
        assert difference["summary"].startswith('2 of 4 pods differ: 2 placed only by "one more node"')
        less = await begin_fork(
            fixture, delete=[{"kind": "Node", "name": "n0"}, {"kind": "Pod", "namespace": "default", "name": "a"}]
        )
        assert less["facts"]["nodes"]["total"] == 3
        assert [each["id"] for each in (await fixture.get("/forks"))["items"]] == [more["id"], less["id"]]
        assert [each["id"] for each in (await fixture.send("DELETE", f"/forks/{more['id']}"))["items"]] == [less["id"]]
        await fixture.get(f"/forks/{more['id']}", want=404)

    run(test, *NODES, pod("a"), pod("b"), pod("huge", cpu="40"))


def test_comparison_with_a_reconfigured_fork_names_the_decisive_plugins() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.send("POST", "/snapshots", {"name": "empty"}, want=201)
        await fixture.create(*(pod(f"p{number}") for number in range(6)))
        await fixture.settle()
        pods = [pod(f"p{number}") for number in range(6)]
        packed = await begin_fork(
            fixture, **{"from": "empty", "config": MOST_ALLOCATED, "objects": pods, "name": "packed"}
        )
        assert packed["state"] == "done", packed["message"]
        found = await fixture.get("/compare", a="now", b=packed["id"], kind="moved")
        assert found["counts"]["moved"] == found["total"] > 0
        metrics = {each["name"]: (each["a"], each["b"]) for each in found["metrics"]}
        assert metrics["pods placed"] == (6, 6)
        assert metrics["nodes with pods"][1] < metrics["nodes with pods"][0]
        assert any(each["decisive_plugin"] for each in found["items"])
        assert all(
            each["decisive_plugin"]["a"] != each["decisive_plugin"]["b"]
            for each in found["items"]
            if each["decisive_plugin"]
        )
        same = await fixture.get("/compare", a=packed["id"], b=packed["id"])
        assert same["summary"] == "packed and packed place all 6 pods on the same nodes"

    run(test, *NODES)


def test_pods_of_a_lost_zone_are_rescheduled_or_pending() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.settle()
        lost = [{"kind": "Node", "name": name} for name in ("n1", "n3")]
        fork = await begin_fork(fixture, delete=lost, name="zone b is lost")
        found = await fixture.get("/compare", a="now", b=fork["id"])
        before = (await fixture.get("/placements"))["nodes"]
        there = sum(name in ("n1", "n3") for name in before)
        assert there > 0
        assert found["counts"]["pods"] == len(before)
        assert found["counts"]["moved"] + found["counts"]["only_a"] == there
        assert {each["b_node"] for each in found["items"]} <= {"n0", "n2", ""}
        assert fork["facts"]["pods"]["total"] == len(before)

    run(test, *NODES, *(pod(f"p{number}", cpu="1") for number in range(8)))


@pytest.mark.parametrize(
    ("reschedule", "want"),
    [
        pytest.param([], 0, id="pods that have a node stay there"),
        pytest.param(["p0", "default/p1"], 2, id="some are decided again"),
        pytest.param(["*"], 6, id="all are decided again"),
    ],
)
def test_a_fork_reschedules_placed_pods_only_on_request(reschedule: list[str], want: int) -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.settle()
        fork = await begin_fork(fixture, config=MOST_ALLOCATED, reschedule=reschedule)
        assert fork["facts"]["decisions"]["total"] == want
        await fixture.send("POST", "/forks", {"reschedule": ["deployment/nobody"]}, want=422)

    run(test, *NODES, *(pod(f"p{number}") for number in range(6)))


def test_invalid_forks_and_comparisons_are_refused() -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.send("POST", "/forks", {"from": "x"}, want=404))["error"]["wanted"] == "one of now"
        assert (
            "PodTopologySpreed"
            in (await fixture.send("POST", "/forks", {"config": MISSPELT}, want=422))["error"]["got"]
        )
        gone = await fixture.send("POST", "/forks", {"delete": [{"kind": "Node", "name": "x"}]}, want=422)
        assert gone["error"]["got"] == "Node x"
        odd = await fixture.send("POST", "/forks", {"objects": [{"kind": "Pot", "apiVersion": "v1"}]}, want=422)
        assert odd["error"]["where"] == "objects[0]"
        assert (await fixture.get("/compare", want=404, a="x"))["error"]["what"] == "fork"
        assert (await fixture.get("/compare", want=502, a="http://127.0.0.1:1"))["error"][
            "what"
        ] == "http://127.0.0.1:1"
        assert (await fixture.send("POST", "/forks", {"until": -1}, want=422))["error"]["what"] == "until"

    run(test, *NODES)


def test_a_fork_can_be_queried_like_the_server() -> None:
    async def test(fixture: ServerFixture) -> None:
        fork = await begin_fork(fixture, objects=[node("big", cpu="64")], name="one more node")
        run_id = fork["id"]
        listed = await fixture.get("/pods", run=run_id, facets=1)
        assert listed["total"] == 3
        nodes = {item["name"]: item["node"] for item in listed["items"]}
        assert nodes["huge"] == "big"
        items = {item["name"]: item for item in (await fixture.get("/nodes", run=run_id))["items"]}
        assert items["big"]["requested"]["cpu"] == 40_000
        assert sum(item["pods"] for item in items.values()) == 3
        cells = await fixture.get("/nodes/cells", run=run_id, by="none")
        assert len(cells["groups"][0]["nodes"]) == 5
        page = await fixture.get("/pods/default/huge", run=run_id)
        assert page["summary"].startswith("default/huge is on big")
        assert page["manifest"]["spec"]["nodeName"] == "big"
        matrix = await fixture.get("/pods/default/huge/attempts/latest/matrix", run=run_id)
        assert matrix["winner"] == "big"
        explained = await fixture.get("/pods/default/huge/explanation", run=run_id)
        assert explained["verdict"] == page["summary"]
        assert [item["name"] for item in (await fixture.get("/decisions", run=run_id))["items"]] == ["huge"]
        assert (await fixture.get("/pods", want=404, run="nobody"))["error"]["what"] == "fork"
        assert (await fixture.get("/pods/default/a", run=run_id))["summary"].endswith(
            "; it had this node when it was loaded"
        )

    run(test, *NODES, pod("a"), pod("b"), pod("huge", cpu="40"))


UNRELIABLE_PLUGIN = """\
import time
from pathlib import Path

from bayplan import PerNodePlugin


class Unreliable(PerNodePlugin):
    def filter_node(self, pod, node):
        while pod.metadata.name == "endless" or (Path(__file__).parent / "loop").exists():
            pass
        if pod.metadata.name.startswith("slow"):
            time.sleep(0.01)
        if pod.metadata.name == "broken":
            raise KeyError("zone")
"""


@pytest.fixture
def unreliable(tmp_path: Path) -> str:
    """Return a plugin that loops, sleeps or raises an error, depending on the name of the pod."""
    file = tmp_path / "unreliable.py"
    file.write_text(UNRELIABLE_PLUGIN)
    return f"{file}:Unreliable"


def _shorten_deadline(fixture: ServerFixture) -> None:
    fixture.server.runner.deadline_seconds = 0.3


def test_a_hanging_plugin_fails_only_its_own_fork(unreliable: str) -> None:
    async def test(fixture: ServerFixture) -> None:
        _shorten_deadline(fixture)
        looping = await begin_fork(fixture, objects=[pod("endless")])
        assert looping["state"] == "failed"
        assert 'plugin "Unreliable": cut off after 0.3s at filter_node()' in looping["message"]
        raising = await begin_fork(fixture, objects=[pod("broken")])
        assert (raising["state"], "KeyError" in raising["message"]) == ("failed", True)
        assert (await begin_fork(fixture, objects=[pod("good")]))["state"] == "done"
        assert fixture.server.runner.failures == {}, (
            "failures in forks do not count as failures of the running scheduler"
        )
        assert [each.daemon for each in threading.enumerate() if each.name == "bayplan-fork"] == [True]

    run(test, *NODES, plugins=[unreliable])


def test_deleting_a_running_fork_stops_it(unreliable: str) -> None:
    async def test(fixture: ServerFixture) -> None:
        begun = await fixture.send("POST", "/forks", {"objects": [pod(f"slow{n}") for n in range(400)]}, want=201)
        fork = fixture.service.state.forks.get(begun["id"])
        assert fork.state == "running"
        await fixture.send("DELETE", f"/forks/{begun['id']}")
        for _ in range(200):
            if fork.state != "running":
                break
            await asyncio.sleep(0.01)
        assert (fork.state, fork.message) == ("failed", "stopped before it was done")

    run(test, *NODES, plugins=[unreliable])


def test_a_hanging_plugin_fails_only_its_own_question(unreliable: str, tmp_path: Path) -> None:
    async def test(fixture: ServerFixture) -> None:
        _shorten_deadline(fixture)
        assert (await fixture.get("/unblock", workload="waits"))["suggestions"]
        (tmp_path / "loop").touch()
        ended = await fixture.get("/unblock", workload="waits", want=503)
        assert 'plugin "Unreliable": cut off after 0.3s' in ended["error"]["got"]
        (tmp_path / "loop").unlink()
        assert (await fixture.get("/unblock", workload="waits"))["suggestions"]
        assert fixture.server.runner.failures == {}, (
            "failures in trials do not count as failures of the running scheduler"
        )

    run(test, node("off", unschedulable=True), pod("waits"), plugins=[unreliable])
