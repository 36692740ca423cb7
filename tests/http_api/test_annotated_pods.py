"""Bayplan's HTTP API for pods of an external scheduler, which writes its results as annotations."""

from __future__ import annotations

from bayplan.formats.result_annotations import PREFIX, SchedulingResults, write
from tests.http_api.server_fixture import ServerFixture, node, pod, run
from tests.http_api.test_fork_routes import begin_fork
from tests.recorded_annotations import cloud_name

PATH = "/api/v1/namespaces/default/pods"
FILTER_RESULT = PREFIX + "filter-result"
MERGE = "application/merge-patch+json"
NAMES = [cloud_name(name) for name in ("a0", "a1", "b0", "b1")]
NODES = [node(name) for name in NAMES]
PASSED = dict.fromkeys(("NodeUnschedulable", "RackQuota", "NodeResourcesFit"), "passed")
OUTSIDE = pod("web", schedulerName="debuggable-scheduler")


def unplaced() -> SchedulingResults:
    """Return an attempt in which the external scheduler's plugin rejects the last node before NodeResourcesFit runs."""
    rows = {name: PASSED | {"NodeResourcesFit": "Insufficient cpu"} for name in NAMES[:3]}
    rows[NAMES[3]] = {"NodeUnschedulable": "passed", "RackQuota": "rack b is reserved"}
    return SchedulingResults(
        pre_filter_status={"NodeResourcesFit": "success", "VolumeZone": ""},
        filter=rows,
        post_filter={name: {} for name in NAMES},
    )


def placed(node_name: str) -> SchedulingResults:
    """Return an attempt in which RackQuota has the weight 5, which the annotations don't contain."""
    rows = dict.fromkeys(NAMES[:2], PASSED) | {
        name: PASSED | {"NodeResourcesFit": "Insufficient cpu"} for name in NAMES[2:]
    }
    points = {name: 90 if name == node_name else 40 for name in NAMES[:2]}
    return SchedulingResults(
        pre_filter_status={"NodeResourcesFit": "success", "VolumeZone": ""},
        filter=rows,
        pre_score={"RackQuota": "success", "TaintToleration": ""},
        score={name: {"RackQuota": points[name], "NodeResourcesFit": 60} for name in points},
        final_score={name: {"RackQuota": 5 * points[name], "NodeResourcesFit": 60} for name in points},
        reserve={"VolumeBinding": "success"},
        bind={"DefaultBinder": "success"},
        selected_node=node_name,
    )


async def schedule_outside(fixture: ServerFixture, name: str, *attempts: SchedulingResults) -> None:
    """Act as an external scheduler: bind the pod or set its condition, and annotate it with the results."""
    present: dict[str, str] = (await fixture.api("GET", f"{PATH}/{name}"))["metadata"].get("annotations", {})
    for attempt in attempts:
        if attempt.selected_node:
            target = {"kind": "Node", "name": attempt.selected_node}
            await fixture.api("POST", f"{PATH}/{name}/binding", {"metadata": {"name": name}, "target": target})
        else:
            message = "0/4 nodes are available: 1 rack b is reserved, 3 Insufficient cpu."
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            await fixture.api("PATCH", f"{PATH}/{name}/status", {"status": {"conditions": [condition]}}, MERGE)
        present = write(attempt, present, by_interest=tuple).annotations
        await fixture.api("PATCH", f"{PATH}/{name}", {"metadata": {"annotations": present}}, MERGE)
        await fixture.settle()
        while not fixture.server.reader.is_idle:
            await fixture.settle()


def test_an_externally_scheduled_pending_pod_is_explained_by_its_annotations() -> None:
    async def test(fixture: ServerFixture) -> None:
        await schedule_outside(fixture, "web", unplaced())
        told = await fixture.get("/pods/default/web")
        assert told["summary"] == (
            "default/web is pending: none of the 3 nodes that it may use has room: Insufficient cpu (3); "
            "the other node is excluded: rack b is reserved"
        )
        assert told["message"] == "0/4 nodes are available: 1 rack b is reserved, 3 Insufficient cpu."
        assert told["rejections"] == [
            {"text": "Insufficient cpu", "plugin": "NodeResourcesFit", "nodes": 3},
            {"text": "rack b is reserved", "plugin": "RackQuota", "nodes": 1},
        ]
        (attempt,) = told["attempts"]
        assert (attempt["annotated"], attempt["attempt"], attempt["outcome"]) == (True, 1, "unschedulable")
        refused = await fixture.get("/unblock", workload="pod/default/web", want=422)
        assert refused["error"]["got"] == "'debuggable-scheduler'"
        (row,) = (await fixture.get("/pods", q="web"))["items"]
        assert told["summary"] == f"default/web is pending: {row['why']}"

    run(test, *NODES, OUTSIDE)


def test_the_matrix_contains_plugins_and_scores_of_the_external_scheduler() -> None:
    async def test(fixture: ServerFixture) -> None:
        await schedule_outside(fixture, "web", unplaced(), placed(NAMES[1]))
        matrix = await fixture.get("/pods/default/web/attempts/latest/matrix")
        assert (matrix["annotated"], matrix["winner"], matrix["margin"]) == (True, NAMES[1], 250)
        assert matrix["filters"] == ["NodeUnschedulable", "RackQuota", "NodeResourcesFit"]
        assert [(each["name"], each["weight"]) for each in matrix["scorers"]] == [
            ("NodeResourcesFit", None),
            ("RackQuota", None),
        ]
        assert [(row["node"], row["total"], row["raw"], row["weighted"]) for row in matrix["rows"][:2]] == [
            (NAMES[1], 510, [60, 90], [60, 450]),
            (NAMES[0], 260, [60, 40], [60, 200]),
        ]
        assert matrix["counts"] == {"fit": 2, "failed": 2, "not_evaluated": 0}
        assert matrix["skipped"] == ["TaintToleration", "VolumeZone"]
        points = matrix["points"]
        assert [each["plugin"] for each in points["reserve"] + points["bind"]] == ["VolumeBinding", "DefaultBinder"]
        first = await fixture.get("/pods/default/web/attempts/1/matrix")
        assert first["filters"] == ["NodeUnschedulable", "RackQuota", "NodeResourcesFit"]
        rejected = next(row for row in first["rows"] if row["node"] == NAMES[3])
        assert (rejected["plugin"], rejected["gap"], rejected["filters"][2]) == (
            "RackQuota",
            "rack b is reserved",
            None,
        )
        told = await fixture.get("/pods/default/web")
        assert told["summary"] == (
            f"default/web is on {NAMES[1]}: 2 of 4 nodes fit, and it is the best of them with a total of 510"
        )

    run(test, *NODES, OUTSIDE)


def test_external_attempts_appear_among_decisions_and_on_the_timeline() -> None:
    async def test(fixture: ServerFixture) -> None:
        await schedule_outside(fixture, "web", unplaced(), placed(NAMES[1]))
        await fixture.create(pod("own"))
        await fixture.settle()
        found = await fixture.get("/decisions")
        told = [(each["name"], each["outcome"], each["annotated"]) for each in found["items"]]
        assert told == [("web", "unschedulable", True), ("web", "scheduled", True), ("own", "scheduled", False)]
        density = await fixture.get("/decisions/density", bins=1)
        assert (density["lanes"]["scheduled"], density["lanes"]["waits"]) == ([2], [1])

    run(test, *NODES, OUTSIDE)


def test_compare_explains_a_fork_against_the_external_scheduler() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.send("POST", "/snapshots", {"name": "before"}, want=201)
        request = {"from": "before", "objects": [pod("web", nodeSelector={"kubernetes.io/hostname": NAMES[0]})]}
        fork = await begin_fork(fixture, **request)
        await fixture.create(OUTSIDE)
        await schedule_outside(fixture, "web", placed(NAMES[1]))
        difference = await fixture.get("/compare", a="now", b=fork["id"])
        (item,) = difference["items"]
        assert (item["pod"], item["a_node"], item["b_node"]) == ("default/web", NAMES[1], NAMES[0])
        both = await fixture.get("/compare/pods/default/web", a="now", b=fork["id"])
        assert both["decisive_plugin"]["name"] == "NodeAffinity"
        assert both["a"]["matrix"]["annotated"]
        assert "RackQuota" in both["a"]["matrix"]["filters"]
        assert "annotated" not in both["b"]["matrix"]
        # The opposite case: a plugin that only the external scheduler has.
        request["objects"] = [pod("web", nodeSelector={"kubernetes.io/hostname": NAMES[3]})]
        other = await begin_fork(fixture, **request)
        both = await fixture.get("/compare/pods/default/web", a="now", b=other["id"])
        assert both["decisive_plugin"] == {
            "name": "NodeAffinity",
            "a": None,
            "b": "node(s) didn't match Pod's node affinity/selector",
        }

    run(test, *NODES)


def test_the_matrix_endpoint_reports_unreadable_annotations() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.api("PATCH", f"{PATH}/web", {"metadata": {"annotations": {FILTER_RESULT: "[1]"}}}, MERGE)
        await fixture.settle()
        while not fixture.server.reader.is_idle:
            await fixture.settle()
        matrix = await fixture.get("/pods/default/web/attempts/latest/matrix")
        assert not matrix["recorded"]
        assert matrix["why"].startswith(f"its result annotations can't be read: annotation {FILTER_RESULT}: expected")

    run(test, *NODES, OUTSIDE)
