"""Applying documents, exporting and importing clusters, draining nodes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bayplan.http_api.document_writes import segment
from tests.http_api.server_fixture import ServerFixture, node, pod, run

THREE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: c
    image: app:v1
    resources: {requests: {cpu: two}}
---
kind: Pot
apiVersion: v1
"""
TWO_CAUSES = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  restartPolicy: Sometimes
  containers:
  - name: C
    image: a
"""
COPIES = "apiVersion: v1\nkind: Pod\nmetadata: {name: 'web-{n}'}\nspec: {containers: [{name: c, image: 'app:v{n}'}]}\n"


def test_apply_writes_valid_objects_and_reports_lines_of_invalid_ones() -> None:
    async def test(fixture: ServerFixture) -> None:
        dry = await fixture.send("POST", "/apply", {"text": THREE, "dry_run": True})
        assert (dry["created"], dry["refused"]) == (1, 2)
        assert fixture.server.backend.store.get("configmaps", ("default", "settings")) is None
        answer = await fixture.send("POST", "/apply", {"text": THREE})
        made, bad, unknown = answer["items"]
        assert (made["action"], made["path"]) == ("created", "/api/v1/namespaces/default/configmaps/settings")
        assert (bad["action"], bad["kind"], bad["line"]) == ("refused", "Pod", 6)
        assert bad["message"].startswith('Pod in version "v1" cannot be handled as a Pod: quantities must match ')
        assert (unknown["action"], unknown["message"]) == ("refused", "v1 Pot is not a served kind")
        again = await fixture.send("POST", "/apply", {"text": THREE.split("---")[0]})
        assert again["items"][0]["message"] == 'configmaps "settings" already exists'
        replaced = await fixture.send("POST", "/apply", {"text": THREE.split("---")[0], "replace": True})
        assert replaced["items"][0]["action"] == "replaced"

    run(test)


def test_causes_of_a_refusal_have_line_numbers() -> None:
    async def test(fixture: ServerFixture) -> None:
        item = (await fixture.send("POST", "/apply", {"text": TWO_CAUSES}))["items"][0]
        lines = {each["path"]: each["line"] for each in item["problems"]}
        assert lines["spec.restartPolicy"] == 6
        assert lines["spec.containers[0].name"] == 8

    run(test)


def test_apply_creates_many_copies_up_to_a_limit() -> None:
    async def test(fixture: ServerFixture) -> None:
        answer = await fixture.send("POST", "/apply", {"text": COPIES, "count": 50})
        assert (answer["created"], answer["refused"]) == (50, 0)
        await fixture.settle()
        assert (await fixture.get("/pods", status="placed"))["total"] == 50
        assert (await fixture.send("POST", "/apply", {"text": COPIES, "count": 0}, want=422))["error"][
            "what"
        ] == "count"
        two = {"text": f"{COPIES}\n---\n{COPIES}", "count": 5001}
        many = (await fixture.send("POST", "/apply", two, want=422))["error"]
        assert (many["got"], many["wanted"]) == ("5,001 copies of 2 documents", "at most 10,000 documents in all")
        assert (await fixture.get("/pods"))["total"] == 50
        assert (await fixture.send("POST", "/apply", {"text": "a: [", "count": 1}, want=422))["error"][
            "where"
        ] == "text:1"
        assert (await fixture.send("POST", "/apply", {"text": "\n"}, want=422))["error"]["got"] == "no document"

    run(test, node("n1"))


def test_an_export_restores_the_same_cluster() -> None:
    async def test(fixture: ServerFixture) -> None:
        exported = (await fixture.client.get("/bayplan/v1/export")).json()
        kinds = {item["kind"] for item in exported["items"]}
        assert {"Node", "Pod", "Namespace", "PriorityClass"} <= kinds
        assert "Event" not in kinds
        before = _cluster(fixture)
        await fixture.create(pod("more"), node("n3"))
        await fixture.settle()
        assert _cluster(fixture) != before
        answer = await fixture.send("POST", "/import?replace=1", exported)
        assert answer["total"] == len(exported["items"])
        await fixture.settle()
        assert _cluster(fixture) == before
        assert (await fixture.get("/nodes"))["total"] == 2

    run(test, node("n1"), node("n2"), pod("a"), pod("b"), pod("huge", cpu="90"))


def _cluster(fixture: ServerFixture) -> dict[tuple[str, ...], Any]:
    """Return uid and node of each object, except events and leases, which a running server writes by itself."""
    store = fixture.server.backend.store
    found: dict[tuple[str, ...], Any] = {}
    for table in store.table_names():
        if table in ("events", "coordination.k8s.io/leases"):
            continue
        for item in store.between(table):
            spec = json.loads(item.raw).get("spec", {})
            found[table, item.namespace, item.name] = (item.uid, spec.get("nodeName"))
    return found


def test_an_imported_node_may_be_created_at_any_time() -> None:
    async def test(fixture: ServerFixture) -> None:
        future = node("far", cpu="8")
        future["metadata"]["creationTimestamp"] = "9999-01-01T00:00:00Z"
        await fixture.send("POST", "/import", {"items": [future, pod("innocent", cpu="6")]})
        await fixture.settle()
        assert [row["node"] for row in (await fixture.get("/pods"))["items"]] == ["far"]
        assert (await fixture.get("/nodes/far"))["created_at"] == "2262-01-01T00:00:00.000Z"

    run(test, node("n1"))


def test_a_refused_import_changes_nothing() -> None:
    async def test(fixture: ServerFixture) -> None:
        before = _cluster(fixture)
        items = [node("n9"), {"apiVersion": "v1", "kind": "Pot", "metadata": {"name": "x"}}]
        refused = await fixture.send("POST", "/import?replace=1", {"items": items}, want=422)
        assert refused["error"]["where"] == "items[1]"
        await fixture.settle()
        assert _cluster(fixture) == before
        bad = await fixture.send("POST", "/import", {"items": [], "configuration": "a: b"}, want=422)
        assert bad["error"]["what"].startswith("configuration refused")
        assert (await fixture.send("POST", "/import", "{", want=400))["error"]["wanted"] == "JSON"

    run(test, node("n1"), pod("a"))


def test_concurrent_imports_run_one_at_a_time() -> None:
    async def test(fixture: ServerFixture) -> None:
        refused = [
            *(node(f"bad{number}") for number in range(30)),
            {"apiVersion": "v1", "kind": "Node", "metadata": {}},
        ]
        good = [node(f"good{number}") for number in range(30)]
        await asyncio.gather(
            fixture.send("POST", "/import?replace=1", {"items": refused}, want=422),
            fixture.send("POST", "/import?replace=1", {"items": good}),
        )
        names = {item.name for item in fixture.server.backend.store.between("nodes")}
        assert names == {each["metadata"]["name"] for each in good}

    run(test, node("n1"))


def test_drain_cordons_the_node_and_respects_budgets() -> None:
    async def test(fixture: ServerFixture) -> None:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
        }
        await fixture.api("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
        await fixture.settle()
        answer = await fixture.send("POST", "/nodes/n1/drain")
        assert answer["evicted"] == 2
        assert [each["pod"] for each in answer["refused"]] == ["default/kept"]
        await fixture.settle()
        assert (await fixture.get("/nodes/n1"))["cordoned"]
        assert (await fixture.send("POST", "/nodes/nowhere/drain", want=404))["error"]["what"] == "node"

    run(
        test,
        node("n1"),
        pod("a", nodeName="n1"),
        pod("b", nodeName="n1"),
        pod("kept", nodeName="n1", labels={"app": "kept"}),
    )


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("web-1", "web-1", id="a plain name"),
        pytest.param("a/b", "a%2Fb", id="a slash begins no other part of a path"),
        pytest.param("../nodes", "..%2Fnodes", id="dots do not leave the folder"),
        pytest.param("system:node", "system:node", id="colons are part of names"),
    ],
)
def test_path_segments_are_escaped(text: str, want: str) -> None:
    assert segment(text) == want
