"""Overview, nodes, decisions, queue: the HTTP API agrees with the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayplan.base.errors import PluginFailure
from bayplan.engine.decision import Decision
from bayplan.framework.status import Status
from bayplan.http_api.query import MAX_ROWS
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT
from tests.http_api.server_fixture import ServerFixture, node, pod, run

NODES = [
    node("n1", zone="a"),
    node("n2", zone="a", labels={"cloud.google.com/gke-nodepool": "blue"}),
    node("n3", zone="b", cpu="32", memory="32Gi", resources={"example.com/gpu": "2"}),
    node("off", zone="b", unschedulable=True),
]
PODS = [
    *(pod(f"web-{number}", namespace="shop", labels={"app": "web"}) for number in range(9)),
    pod("big", cpu="12"),
    pod("bigger", cpu="40"),
    pod("picky", nodeSelector={"disk": "ssd"}),
    pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
    pod("fixed", nodeName="n1"),
]


async def _filled(fixture: ServerFixture) -> None:
    await fixture.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, *PODS)
    await fixture.settle()


async def _state(fixture: ServerFixture) -> ClusterState:
    """Return the engine's columns; nothing happens while a test looks at them."""
    return await asyncio.wrap_future(fixture.server.engine.submit(lambda scheduler: scheduler.state))


def test_nodes_report_the_usage_and_allocatable_of_the_engine() -> None:
    async def test(fixture: ServerFixture) -> None:
        await _filled(fixture)
        state = await _state(fixture)
        answer = await fixture.get("/nodes")
        assert [item["name"] for item in answer["items"]] == sorted(["n1", "n2", "n3", "off"])
        resources = list(state.nodes.resources)
        for item in answer["items"]:
            row = state.nodes.row_of[item["name"]]
            requested = {name: int(state.usage[FIRST_RESOURCE + place, row]) for place, name in enumerate(resources)}
            allocatable = {name: int(state.nodes.allocatable[place, row]) for place, name in enumerate(resources)}
            for name in ("cpu", "memory", "example.com/gpu"):
                if name in requested:
                    assert item["requested"].get(name, 0) == requested[name], (item["name"], name)
                    assert item["allocatable"].get(name, 0) == allocatable[name]
            assert item["pods"] == int(state.usage[POD_COUNT, row])

    run(test, *NODES)


def test_the_overview_counts_pods_nodes_reasons_and_decisions() -> None:
    async def test(fixture: ServerFixture) -> None:
        await _filled(fixture)
        answer = await fixture.get("/overview")
        assert answer["counts"] == {
            "pods": len(PODS),
            "placed": 11,
            "waiting": 2,
            "gated": 1,
            "terminating": 0,
            "finished": 0,
            "nodes": 4,
            "nodes_not_ready": 0,
            "nodes_cordoned": 1,
            "nodes_full": 0,
            "nodes_empty": 1,
        }
        assert answer["summary"].startswith("2 of 14 pods are pending; the first reason: ")
        assert answer["summary"].endswith("; 1 more is held back by gates")
        status = fixture.server.engine.status()
        assert answer["decisions"]["total"] == status.decisions == len(fixture.server.decisions)
        reasons = {each["text"]: each["pods"] for each in answer["reasons"]}
        assert reasons["node(s) didn't match Pod's node affinity/selector"] == 1
        assert reasons["Insufficient cpu"] == 1
        queue = dict(answer["queue"])
        assert (queue.pop("next_retry_at") is None) == (queue["backoff"] == 0)
        assert queue["gated"] == 1
        assert queue["backoff"] + queue["unschedulable"] + queue["active"] == 2
        state = await _state(fixture)
        cpu = next(each for each in answer["utilisation"] if (each["resource"], each["zone"]) == ("cpu", ""))
        assert cpu["requested"] == int(state.usage[FIRST_RESOURCE + state.nodes.resources["cpu"]].sum())
        assert answer["latest"][0]["number"] == len(fixture.server.decisions) - 1
        assert answer["scheduler"]["profiles"] == ["default-scheduler"]

    run(test, *NODES)


def test_cells_show_percentages_by_group_and_mark_full_nodes_and_missing_resources() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("half", cpu="2", nodeName="n1"), pod("full", cpu="4", nodeName="n2"))
        await fixture.settle()
        answer = await fixture.get("/nodes/cells", metric="cpu", by="zone")
        cells = {
            name: (cell, flag)
            for group in answer["groups"]
            for name, cell, flag in zip(group["nodes"], group["cells"], group["flags"], strict=True)
        }
        assert [group["name"] for group in answer["groups"]] == ["a", "b"]
        assert cells == {"n1": (50, 0), "n2": (101, 0), "n3": (0, 0), "off": (0, 1)}
        assert answer["metrics"] == ["cpu", "memory", "pods", "example.com/gpu"]
        gpu = await fixture.get("/nodes/cells", metric="example.com/gpu", by="pool")
        assert [group["name"] for group in gpu["groups"]] == ["", "blue"]
        assert gpu["groups"][0]["cells"] == [255, 0, 255]
        labelled = await fixture.get("/nodes/cells", by="label:kubernetes.io/hostname")
        assert len(labelled["groups"]) == 4

    run(test, *NODES)


def test_nodes_are_filtered_sorted_and_paged() -> None:
    async def names(fixture: ServerFixture, **query: Any) -> list[str]:
        return [item["name"] for item in (await fixture.get("/nodes", **query))["items"]]

    async def test(fixture: ServerFixture) -> None:
        assert await names(fixture, zone="b") == ["n3", "off"]
        assert await names(fixture, pool="blue") == ["n2"]
        assert await names(fixture, pool="") == ["n1", "n3", "off"]
        assert await names(fixture, label="topology.kubernetes.io/zone in (a),kubernetes.io/hostname!=n1") == ["n2"]
        assert await names(fixture, q="N") == ["n1", "n2", "n3"]
        assert await names(fixture, state="cordoned") == ["off"]
        assert await names(fixture, sort="-name", offset=1, limit=2) == ["n3", "n2"]
        await fixture.create(pod("p", nodeName="n2"))
        await fixture.settle()
        assert (await names(fixture, sort="-cpu"))[0] == "n2"
        facets = (await fixture.get("/nodes", facets=1))["facets"]
        assert facets["zone"] == [{"value": "a", "count": 2}, {"value": "b", "count": 2}]
        blocks = await fixture.get("/nodes", blocks=1, q="n2")
        assert [block["name"] for block in blocks["items"][0]["blocks"]] == ["p"]
        refused = await fixture.get("/nodes", want=400, label="a=b=c")
        assert refused["error"]["what"] == "label"

    run(test, *NODES)


def test_a_node_lists_its_pods_and_rejections() -> None:
    async def test(fixture: ServerFixture) -> None:
        await _filled(fixture)
        found = await fixture.get("/nodes/n1")
        store = fixture.server.bridge.store
        assert sorted(f"{each['namespace']}/{each['name']}" for each in found["pods"]) == sorted(
            each.key for each in store.pods_on("n1")
        )
        rejected = {each["text"]: each["pods"] for each in found["rejected"]}
        want: dict[str, int] = {}
        for name in ("bigger", "picky"):
            decision = fixture.server.decisions.decision(fixture.server.decisions.numbers_of(f"default/{name}")[-1])
            status = decision.first_failure(decision.names.index("n1"))
            assert status is not None
            want[status.message] = want.get(status.message, 0) + 1
        assert rejected == want
        assert {each["example"] for each in found["rejected"]} <= {"default/bigger", "default/picky"}
        assert found["summary"].startswith("n1 ")
        assert (await fixture.get("/nodes/nowhere", want=404))["error"]["got"] == "'nowhere'"

    run(test, *NODES)


def test_decisions_are_listed_by_number_and_filtered() -> None:
    async def test(fixture: ServerFixture) -> None:
        await _filled(fixture)
        records = fixture.server.decisions
        answer = await fixture.get("/decisions", limit=MAX_ROWS)
        assert [item["number"] for item in answer["items"]] == list(range(len(records)))
        for item in answer["items"]:
            record = records[item["number"]]
            assert f"{item['namespace']}/{item['name']}" == record.pod
            assert (item["node"], item["feasible_nodes"], item["message"]) == (
                record.node,
                record.feasible_nodes,
                record.message,
            )
            if item["margin"] is not None:
                total = records.decision(item["number"]).total
                best = np.sort(total[total >= 0])[::-1]
                assert item["margin"] == int(best[0] - best[best < best[0]][0])
        newest = await fixture.get("/decisions", limit=2)
        assert [item["number"] for item in newest["items"]] == [len(records) - 2, len(records) - 1]
        first = await fixture.get("/decisions", after=0, limit=2)
        assert [item["number"] for item in first["items"]] == [1, 2]
        failed = await fixture.get("/decisions", outcome="unschedulable")
        assert {item["name"] for item in failed["items"]} == {"bigger", "picky"}
        of_pod = await fixture.get("/decisions", pod="default/picky")
        assert {item["name"] for item in of_pod["items"]} == {"picky"}

    run(test, *NODES)


def test_node_lanes_count_running_placed_and_deleted_pods() -> None:
    async def test(fixture: ServerFixture) -> None:
        await _filled(fixture)
        await fixture.api("DELETE", "/api/v1/namespaces/default/pods/fixed", {"gracePeriodSeconds": 0})
        await fixture.settle()
        placed = [each for each in (await fixture.get("/placements"))["nodes"] if each]
        found = await fixture.get("/nodes/lanes", bins=10, to_at="2200-01-01T00:00:00Z")
        lanes = {each["node"]: each for each in found["items"]}
        assert {name: lane["running"][-1] for name, lane in lanes.items() if lane["running"][-1]} == {
            name: placed.count(name) for name in sorted(set(placed))
        }
        assert sum(sum(lane["placed"]) for lane in lanes.values()) >= len(placed)
        assert sum(lanes["n1"]["left"]) == 1
        assert [each["node"] for each in (await fixture.get("/nodes/lanes", q="N3"))["items"]] == ["n3"]
        await fixture.get("/nodes/lanes", want=400, from_at="2200-01-01T00:00:00Z", to_at="2100-01-01T00:00:00Z")
        # A time beyond int64 means the first or last one that fits.
        for times in ("from_at=0001-01-01T00:00:00Z", "to_at=9999-12-31T23:59:59Z"):
            everything = await fixture.get(f"/nodes/lanes?{times}")
            assert sum(sum(lane["placed"]) for lane in everything["items"]) >= len(placed)
        nothing = await fixture.get("/nodes/lanes", bins=1, from_at="9999-12-31T23:59:59Z")
        assert {name for lane in nothing["items"] for name in ("placed", "left") if any(lane[name])} == set()

    run(test, *NODES)


def test_a_node_whose_requests_exceed_int64_has_a_page() -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.get("/nodes/n"))["requested"]["memory"] < 0

    run(test, node("n"), *(pod(f"p{number}", memory="7Ei", nodeName="n") for number in range(2)))


def test_the_time_axis_starts_at_the_first_decision() -> None:
    async def test(fixture: ServerFixture) -> None:
        await _filled(fixture)
        found = await fixture.get("/decisions/density", axis="time", bins=7)
        assert sum(map(sum, (found["lanes"][name] for name in ("scheduled", "waits")))) == len(fixture.server.decisions)
        assert found["from_at"] == (await fixture.get("/decisions", before=1))["items"][0]["at"]

    run(test, *NODES)


def test_density_counts_each_decision_once() -> None:
    async def test(fixture: ServerFixture) -> None:
        await _filled(fixture)
        count = len(fixture.server.decisions)
        for bins in (1, 3, 50):
            by_number = await fixture.get("/decisions/density", bins=bins)
            assert sum(map(sum, _outcomes(by_number))) == count
            by_time = await fixture.get(
                "/decisions/density", bins=bins, from_at="2020-01-01T00:00:00Z", to_at="2200-01-01T00:00:00Z"
            )
            assert sum(map(sum, _outcomes(by_time))) == count
        for times, want in (("from_at=0001-01-01T00:00:00Z", count), ("to_at=9999-12-31T23:59:59Z", count),
                            ("from_at=9999-12-31T23:59:59Z", 0)):  # fmt: skip
            found = await fixture.get(f"/decisions/density?{times}")
            assert sum(map(sum, _outcomes(found))) == want
        part = await fixture.get("/decisions/density?from=2&to=4&bins=2")
        assert (part["from"], part["to"], sum(map(sum, _outcomes(part)))) == (2, 4, 3)

    run(test, *NODES)


def _outcomes(answer: Any) -> list[list[int]]:
    return [answer["lanes"][name] for name in ("scheduled", "waits", "error")]


def test_the_queue_endpoint_matches_the_engine() -> None:
    async def test(fixture: ServerFixture) -> None:
        await _filled(fixture)
        answer = await fixture.get("/queue")
        queue = await asyncio.wrap_future(fixture.server.engine.submit(lambda scheduler: scheduler.queue))
        assert answer["counts"] == queue.pending_counts()
        by_name = {item["name"]: item for item in answer["items"]}
        waiting = queue.get("default/picky")
        assert waiting is not None
        assert by_name["picky"]["rejected_by"] == sorted(waiting.unschedulable_plugins)
        assert by_name["gated"]["tier"] == "gated"
        assert by_name["gated"]["rejected_by"] == ["SchedulingGates"]
        assert by_name["gated"]["message"] == "waiting for scheduling gates: [example.com/wait]"
        assert any("Node" in event for event in by_name["picky"]["wakes_on"])
        assert sum(answer["histogram"]["pods"]) == answer["total"] == 3
        only = await fixture.get("/queue", tier="gated")
        assert [item["name"] for item in only["items"]] == ["gated"]

    run(test, *NODES)


def test_a_matching_etag_returns_304() -> None:
    async def test(fixture: ServerFixture) -> None:
        first = await fixture.client.get("/bayplan/v1/nodes")
        again = await fixture.client.get("/bayplan/v1/nodes", headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        await fixture.create(node("n9"))
        await fixture.settle()
        now = await fixture.client.get("/bayplan/v1/nodes", headers={"if-none-match": first.headers["etag"]})
        assert now.status_code == 200

    run(test, *NODES)


def test_foreign_hosts_and_origins_are_refused() -> None:
    async def test(fixture: ServerFixture) -> None:
        for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            answer = await fixture.client.get("/bayplan/v1/clock", headers=headers)
            assert answer.status_code == 403
            assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]
        assert (
            await fixture.client.get("/bayplan/v1/clock", headers={"origin": "http://127.0.0.1:1"})
        ).status_code == 200

    run(test)


def test_unknown_paths_methods_and_parameters_are_refused() -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.get("/nothing", want=404))["error"]["what"] == "path"
        assert (await fixture.send("DELETE", "/overview", want=405))["error"]["got"] == "DELETE"
        assert (await fixture.client.delete("/bayplan/v1/clock")).headers["allow"] == "GET, HEAD, PUT"
        assert (await fixture.get("/nodes", want=400, soort="x"))["error"]["hint"] == "sort"
        assert (await fixture.get("/nodes", want=400, sort="nam"))["error"]["hint"] == "name"
        assert (await fixture.get("/waiting", want=400, limit="1"))["error"]["wanted"] == "no parameters"
        assert (await fixture.get("/nodes", want=400, limit=0))["error"]["wanted"] == "a whole number from 1 to 200"
        assert (await fixture.get("/nodes", want=400, offset="-1"))["error"]["what"] == "offset"
        assert (await fixture.get("/queue", want=400, tier="x"))["error"]["what"] == "tier"
        assert (await fixture.get("/decisions/density", want=400, from_at="soon"))["error"]["wanted"] == "a time"

    run(test)


def test_an_empty_cluster_has_valid_responses() -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.get("/overview"))["summary"] == "The cluster is empty: there are no nodes and no pods"
        assert (await fixture.get("/nodes", facets=1))["total"] == 0
        assert (await fixture.get("/nodes/cells"))["groups"] == []
        assert (await fixture.get("/pods", facets=1))["total"] == 0
        assert (await fixture.get("/decisions"))["items"] == []
        assert (await fixture.get("/decisions/density"))["lanes"]["scheduled"] == [0] * 200
        assert (await fixture.get("/queue"))["summary"] == "No pod is pending"
        assert (await fixture.get("/"))["instance"] == fixture.server.instance

    run(test)


def test_reads_are_answered_while_the_engine_is_busy(tmp_path: Path) -> None:
    file = tmp_path / "sleepy.py"
    asleep, awake = tmp_path / "asleep", tmp_path / "awake"
    file.write_text(
        "import pathlib\nimport time\n\nfrom bayplan import PerNodePlugin\n\n\nclass Sleepy(PerNodePlugin):\n"
        "    def filter_node(self, pod, node):\n"
        f"        while pod.metadata.name == 'slow' and not pathlib.Path({str(awake)!r}).exists():\n"
        f"            pathlib.Path({str(asleep)!r}).touch()\n"
        "            time.sleep(0.01)\n"
    )

    async def test(fixture: ServerFixture) -> None:
        await fixture.get("/queue")
        await fixture.create(pod("slow"))
        fixture.server.bridge.flush()
        while not asleep.exists():
            await asyncio.sleep(0.01)
        for path in ("/overview", "/pods", "/nodes", "/queue", "/pods/default/quick", "/clock"):
            await fixture.get(path)
        busy = await fixture.send("POST", "/queue/flush", want=503)
        assert busy["error"]["hint"] == "again in a moment"
        awake.touch()
        await fixture.settle()
        assert (await fixture.get("/pods/default/slow"))["status"] == "placed"

    run(test, node("n1"), pod("quick"), plugins=[f"{file}:Sleepy"])


def test_a_plugin_failure_omits_only_the_rejections_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(decision: Decision, row: int) -> Status | None:
        raise PluginFailure("Picky", "Filter", "KeyError: 'zone'")

    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.get("/nodes/n1"))["rejected_missing"] == ""
        monkeypatch.setattr(Decision, "first_failure", fail)
        found = await fixture.get("/nodes/n1")
        assert (found["name"], found["rejected"], found["rejected_is_exact"]) == ("n1", [], False)
        assert found["rejected_missing"] == "running Filter plugin \"Picky\": KeyError: 'zone'"

    run(test, node("n1"), pod("huge", cpu="40"))
