"""Questions about the present cluster: unblock, capacity, what-if, explain, why pods wait; and hypothetical attempts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bayplan.http_api import question_routes, questions
from tests.http_api.server_fixture import ServerFixture, node, pod, run
from tests.http_api.test_control_routes import MISSPELT, MOST_ALLOCATED

NODES = [
    node("small", labels={"disk": "ssd"}),
    node("cordoned", labels={"disk": "ssd"}, unschedulable=True),
    node("tainted", labels={"disk": "ssd"}, taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
    node("other", zone="b"),
]
PODS = [
    pod("there", cpu="2", nodeName="small"),
    pod("placed", nodeName="other"),
    pod("waits", cpu="3", nodeSelector={"disk": "ssd"}),
]


async def _forked(fixture: ServerFixture, request: dict[str, Any]) -> Any:
    begun = await fixture.send("POST", "/forks", request, want=201)
    for _ in range(500):
        fork = await fixture.get(f"/forks/{begun['id']}")
        if fork["state"] != "running":
            return fork
        await asyncio.sleep(0.01)
    raise AssertionError("the fork does not end")


def test_unblock_suggestions_also_place_the_pod_in_a_fork() -> None:
    async def test(fixture: ServerFixture) -> None:
        found = await fixture.get("/unblock", workload="pod/default/waits")
        assert found["waiting"] == ["default/waits"]
        assert {each["kind"] for each in found["suggestions"]} >= {"uncordon node", "tolerate taint", "add node"}
        assert found["assumptions"][0] == "kube-scheduler's defaults apply, because this server has no configuration"
        for each in found["suggestions"]:
            deleted = [
                {"kind": "Pod", "namespace": key.split("/")[0], "name": key.split("/")[1]} for key in each["deleted"]
            ]
            objects = [{**item, "status": item.get("status", {})} for item in each["objects"]]
            fork = await _forked(fixture, {"objects": objects, "delete": deleted})
            assert fork["facts"]["pods"]["pending"] == 0, (each["text"], fork["message"])

    run(test, *NODES, *PODS)


@pytest.mark.parametrize(
    ("path", "status", "got"),
    [
        pytest.param("/unblock", 400, "nothing", id="no workload"),
        pytest.param("/unblock?workload=nobody", 422, "'nobody'", id="a workload that does not exist"),
        pytest.param("/unblock?workload=placed", 422, "pod/default/placed, which is on other", id="a placed pod"),
        pytest.param("/capacity?workload=nobody", 422, "'nobody'", id="capacity of nothing"),
        pytest.param("/capacity?workload=placed%3D0", 422, "'placed=0'", id="a mix without copies"),
        pytest.param("/capacity?workload=placed&limit=0", 400, "'0'", id="no copies"),
        pytest.param("/explain?workload=placed&node=nowhere", 404, "'nowhere'", id="a node that does not exist"),
    ],
)
def test_invalid_questions_are_refused(path: str, status: int, got: str) -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.get(path, want=status))["error"]["got"] == got

    run(test, *NODES, *PODS)


def test_capacity_reports_copies_and_the_limiting_resource() -> None:
    async def test(fixture: ServerFixture) -> None:
        found = await fixture.get("/capacity", workload="pod/default/there", seeds=3)
        assert found["copies"] == 2
        assert found["summary"] == "2 more copies of pod/default/there fit; cpu runs out first (on 2 nodes)."
        assert set(found["seeds"].values()) == {2}
        assert "copies do not evict other pods" in found["assumptions"]  # Without the option of the command.
        few = await fixture.get("/capacity", workload="pod/default/there", limit=1)
        assert (few["copies"], few["reached_limit"]) == (1, True)
        assert sorted((await fixture.get("/placements"))["pods"]) == [
            "default/placed",
            "default/there",
            "default/waits",
        ]

    run(test, *NODES, *PODS)


def test_what_if_shows_differences_without_changing_the_cluster() -> None:
    async def test(fixture: ServerFixture) -> None:
        before = await fixture.get("/placements")
        found = await fixture.send("POST", "/what-if", {"changes": ["uncordon=cordoned", "remove-nodes=other"]})
        rows = {each["pod"]: (each["kind"], each["after"]) for each in found["differences"]}
        assert rows["default/waits"] == ("placed", "cordoned")
        assert rows["default/placed"][0] == "moved"
        assert found["counts"] | {"moved": 1, "placed": 1} == found["counts"]
        assert (found["id"], found["left_out"]) == ("", 0)
        assert await fixture.get("/placements") == before
        assert (await fixture.get("/what-if"))["items"] == []

    run(test, *NODES, *PODS)


def test_a_stored_what_if_is_listed_until_it_is_deleted() -> None:
    async def test(fixture: ServerFixture) -> None:
        request = {"changes": ["lose-zone=b"], "name": "zone b is lost", "keep": True}
        kept = await fixture.send("POST", "/what-if", request)
        (listed,) = (await fixture.get("/what-if"))["items"]
        assert (listed["id"], listed["name"]) == (kept["id"], "zone b is lost")
        assert await fixture.get(f"/what-if/{kept['id']}") == kept
        (fork,) = (await fixture.get("/forks"))["items"]
        assert (fork["id"], fork["name"]) == (kept["fork"], "zone b is lost")
        assert (await fixture.send("DELETE", f"/what-if/{kept['id']}"))["items"] == []
        gone = await fixture.get(f"/what-if/{kept['id']}", want=404)
        assert gone["error"]["wanted"] == "one of the existing what-ifs: none"
        assert (await fixture.get("/forks"))["items"] == []

    run(test, *NODES, *PODS)


def test_the_fork_of_a_stored_what_if_starts_at_its_result() -> None:
    async def test(fixture: ServerFixture) -> None:
        request = {"changes": ["uncordon=cordoned", "remove-nodes=other"], "keep": True}
        kept = await fixture.send("POST", "/what-if", request)
        while (await fixture.get(f"/forks/{kept['fork']}"))["state"] == "running":
            await asyncio.sleep(0.01)
        after = {each["pod"]: each["after"] for each in kept["differences"]}
        now, forked = [
            {
                f"{row['namespace']}/{row['name']}": row["node"] or ""
                for row in (await fixture.get("/pods", run=run_))["items"]
            }
            for run_ in ("", kept["fork"])
        ]
        assert after
        assert forked == now | after
        assert "other" not in [each["name"] for each in (await fixture.get("/nodes", run=kept["fork"]))["items"]]

    run(test, *NODES, *PODS)


@pytest.mark.parametrize(
    "configured",
    [
        pytest.param({"config": MOST_ALLOCATED}, id="another configuration"),
        pytest.param({"changes": ["disable=NodeResourcesFit"]}, id="a plugin switched off"),
    ],
)
def test_a_changed_configuration_moves_placed_pods_only_on_request(configured: dict[str, Any]) -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.settle()
        none = await fixture.send("POST", "/what-if", configured)
        assert none["counts"]["moved"] == 0
        found = await fixture.send("POST", "/what-if", {**configured, "reschedule": ["*"]})
        assert found["counts"]["moved"] > 0
        assert any(each["plugin"] for each in found["differences"])
        some = await fixture.send("POST", "/what-if", {**configured, "reschedule": ["p0"]})
        assert {each["pod"] for each in some["differences"]} <= {"default/p0"}

    run(test, *(node(f"n{number}") for number in range(4)), *(pod(f"p{number}") for number in range(8)))


@pytest.mark.parametrize(
    ("request_", "got"),
    [
        pytest.param({}, "none", id="nothing to try"),
        pytest.param({"changes": ["explode=n1"]}, "'explode=n1'", id="an unknown change"),
        pytest.param({"changes": ["add-nodes=9999:cpu=1"]}, "9999", id="too many nodes"),
        pytest.param({"changes": [f"scale=web:{'9' * 5000}"]}, "9" * 5000, id="too many digits"),
        pytest.param({"changes": ["apply=/etc/passwd"]}, "apply=/etc/passwd", id="a file of the server"),
        pytest.param({"changes": ["cordon=n1"] * 51}, "51", id="too many changes"),
        pytest.param({"changes": ["weight=Nothing:3"]}, "'Nothing'", id="an unknown plugin"),
        pytest.param({"changes": ["cordon=other"], "reschedule": ["nobody"]}, "'nobody'", id="an unknown workload"),
    ],
)
def test_invalid_what_ifs_are_refused(request_: dict[str, Any], got: str) -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.send("POST", "/what-if", request_, want=422))["error"]["got"] == got
        assert "PodTopologySpreed" in str(await fixture.send("POST", "/what-if", {"config": MISSPELT}, want=422))

    run(test, *NODES, *PODS)


def test_what_if_accepts_objects() -> None:
    async def test(fixture: ServerFixture) -> None:
        found = await fixture.send("POST", "/what-if", {"objects": [node("big", cpu="64", labels={"disk": "ssd"})]})
        assert [(each["pod"], each["after"]) for each in found["differences"]] == [("default/waits", "big")]
        assert found["changes"] == ["1 object"]

    run(test, *NODES, *PODS)


def test_an_imported_pod_has_a_hypothetical_attempt() -> None:
    async def test(fixture: ServerFixture) -> None:
        recorded = await fixture.get("/pods/default/placed/attempts/latest/matrix")
        assert recorded["why"] == "the pod already had a node when it was loaded"
        matrix = await fixture.get("/pods/default/placed/attempts/now/matrix", form="columns", limit=100)
        assert matrix["winner"] in ("small", "other")
        assert len(matrix["rows"]["node"]) == len(NODES)
        explained = await fixture.get("/explain", workload="pod/default/placed")
        assert explained["verdict"].startswith("default/placed is on other")
        assert (await fixture.get("/pods/default/nobody/attempts/now/matrix", want=404))["error"][
            "got"
        ] == "'default/nobody'"

    run(test, *NODES, *PODS)


def test_node_explanation_contains_the_smallest_change_per_rejecting_plugin() -> None:
    async def test(fixture: ServerFixture) -> None:
        found = await fixture.get("/explain", workload="waits", node="cordoned")
        changes = {each["plugin"]: each["change"] for each in found["node_detail"]["verdicts"]}
        assert changes["NodeUnschedulable"].startswith("uncordon")
        assert changes["NodeResourcesFit"] == ""

    run(test, *NODES, *PODS)


def test_reasons_are_sorted_by_pods_with_no_other_obstacle() -> None:
    async def test(fixture: ServerFixture) -> None:
        found = await fixture.get("/waiting")
        assert [(each["plugin"], each["sole_pods"], each["pods"]) for each in found["items"]] == [
            ("NodeResourcesFit", 3, 3)
        ]
        assert (found["evaluated"], found["waiting"]) == (3, 3)
        want = "3 of 3 pods are pending; all for the same reason: it requests 40 cpu, but the only node, n, offers 4"
        assert found["summary"] == want

    run(test, node("n"), *(pod(f"huge-{number}", cpu="40") for number in range(3)))


def test_a_question_over_the_time_limit_returns_503(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(fixture: ServerFixture) -> None:
        monkeypatch.setattr(questions, "ANSWER_SECONDS", 0.0)
        refused = await fixture.get("/capacity", workload="placed", want=503)
        assert refused["error"]["got"] == "the answer takes more than 0 s"
        monkeypatch.undo()
        assert (await fixture.get("/capacity", workload="placed"))["copies"] > 0

    run(test, *NODES, *PODS)


def test_concurrent_questions_are_queued_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(fixture: ServerFixture) -> None:
        found = await asyncio.gather(*(fixture.get("/capacity", workload="placed") for _ in range(4)))
        assert len({each["copies"] for each in found}) == 1
        monkeypatch.setattr(questions, "MAX_PENDING", 0)
        assert (await fixture.get("/capacity", workload="placed", want=503))["error"]["what"] == (
            "there are already 0 pending questions, the maximum"
        )

    run(test, *NODES, *PODS)


def test_answers_reflect_the_current_cluster() -> None:
    async def test(fixture: ServerFixture) -> None:
        before = (await fixture.get("/capacity", workload="placed"))["copies"]
        await fixture.create(node("more"))
        await fixture.settle()
        assert (await fixture.get("/capacity", workload="placed"))["copies"] == before + 4

    run(test, *NODES, *PODS)


def test_a_limited_number_of_pending_pod_groups_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_routes, "MAX_EVALUATED", 1)

    async def test(fixture: ServerFixture) -> None:
        found = await fixture.get("/waiting")
        assert (found["evaluated"], found["waiting"]) == (2, 3)

    run(test, node("n"), pod("a", cpu="50"), pod("b", cpu="40"), pod("c", cpu="40"))
