"""Batches: each entry is applied separately, completely and in order; other requests are served in between."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.store import Store
from bayplan.http_api.document_batch import MAX_BATCH_BYTES, SLICE_NS, Batch, BatchWriter
from tests.http_api.server_fixture import Document, ServerFixture, node, pod, run, server_fixture

RUNNING = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Ready", "status": "True"}]}


BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
TOKEN_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t"}}


def lines(*entries: object) -> str:
    return "\n".join(json.dumps(each) for each in entries)


def delete(document: Document, **more: object) -> Document:
    metadata = {name: document["metadata"].get(name, "") for name in ("name", "namespace")}
    return {"delete": {"apiVersion": "v1", "kind": document["kind"], "metadata": {**metadata, **more}}}


def running(name: str, where: str = "n", **more: Any) -> Document:
    return {**pod(name, nodeName=where, **more), "status": RUNNING}


def namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(lines(pod("a"), pod("b")), ["created a", "created b"], id="lines"),
        pytest.param(lines(pod("a")) + "\n\n" + lines(pod("b")) + "\n", ["created a", "created b"], id="empty lines"),
        pytest.param(json.dumps({"kind": "List", "items": [pod("a"), pod("b")]}, indent=1), ["created a", "created b"], id="List"),
        pytest.param(
            json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [{k: v for k, v in pod("a").items() if k != "kind"}]}),
            ["created a"],
            id="a list as the API gives it, whose items don't say their kind",
        ),
        pytest.param(json.dumps(pod("a"), indent=1), ["created a"], id="one object on several lines"),
        pytest.param("", [], id="nothing"),
        pytest.param(lines(pod("a"), pod("a")), ["created a", "exists a"], id="the same twice"),
        pytest.param(lines(pod("a"), delete(pod("a"))), ["created a", "deleted a"], id="made and deleted"),
        pytest.param(lines(delete(pod("a"))), ["absent a"], id="a deletion of a missing object"),
        pytest.param(lines(pod("a"), delete(pod("a"), uid="x")), ["created a", "absent a"], id="a deletion of a different pod"),
        pytest.param(
            lines(pod("a", namespace="new"), namespace("new"), pod("a", namespace="new")),
            ["refused a", "created new", "created a"],
            id="a namespace in the middle",
        ),
        pytest.param(
            lines(pod("a")) + '\n{"kind": \n[1]\n' + lines({"kind": "Pot", "apiVersion": "v1"}, {"delete": 7}, pod("b")),
            ["created a", "refused ", "refused ", "refused ", "refused ", "created b"],
            id="entries that can't be read",
        ),
        pytest.param(
            lines(pod("a")).encode() + b'\n{"kind": "\xff"}\n' + lines(pod("b")).encode(),
            ["created a", "refused ", "created b"],
            id="an entry that is not text",
        ),
        pytest.param('{"x":' * 5000 + "1" + "}" * 5000, ["refused "], id="an entry that is nested too deeply"),
        pytest.param(lines(BINDING, TOKEN_REVIEW, pod("b")), ["refused ", "refused ", "created b"], id="kinds that are not loaded"),
        pytest.param(lines(pod("a", cpu="two"), pod("b")), ["refused a", "created b"], id="an invalid object"),
    ],
)  # fmt: skip
def test_a_batch_reports_one_outcome_per_object(body: str | bytes, want: list[str]) -> None:
    async def test(fixture: ServerFixture) -> None:
        sent = await fixture.client.post("/bayplan/v1/objects", content=body)
        assert sent.status_code == 200, sent.text
        answer = sent.json()
        assert [f"{each['outcome']} {each.get('name', '')}" for each in answer["items"]] == want
        for outcome in ("created", "exists", "deleted", "absent", "refused"):
            assert answer[outcome] == sum(each.startswith(f"{outcome} ") for each in want)

    run(test)


def test_a_batch_refusal_has_the_message_of_a_single_request() -> None:
    async def test(fixture: ServerFixture) -> None:
        bad = pod("a", restartPolicy="Sometimes")
        (item,) = (await fixture.send("POST", "/objects", lines(bad)))["items"]
        (single,) = (await fixture.send("POST", "/apply", {"text": json.dumps(bad)}))["items"]
        assert (item["code"], item["message"]) == (422, single["message"])
        assert item["message"]

    run(test)


def test_a_default_priority_class_that_exists_is_reported_as_existing() -> None:
    default = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "usual"}}

    async def test(fixture: ServerFixture) -> None:
        document = {**default, "value": 7, "globalDefault": True}
        items = (await fixture.send("POST", "/objects", lines(document, document)))["items"]
        assert [each["outcome"] for each in items] == ["created", "exists"]

    run(test)


def test_a_repeated_batch_reports_existing_objects_with_their_uid() -> None:
    async def test(fixture: ServerFixture) -> None:
        first = (await fixture.send("POST", "/objects", lines(running("a"))))["items"][0]
        await fixture.settle()
        again = (await fixture.send("POST", "/objects", lines(running("a"), running("b"))))["items"]
        assert (again[0]["outcome"], again[0]["code"], again[0]["uid"]) == ("exists", 409, first["uid"])
        assert again[1]["outcome"] == "created"

    run(test, node("n"))


def test_a_batch_returns_objects_on_request() -> None:
    async def test(fixture: ServerFixture) -> None:
        answer = await fixture.client.post(
            "/bayplan/v1/objects?objects=1", content=lines(running("a"), delete(pod("x")))
        )
        made, absent = answer.json()["items"]
        assert (made["object"]["kind"], made["object"]["status"]["phase"]) == ("Pod", "Running")
        assert made["object"]["metadata"]["resourceVersion"] == made["resource_version"]
        assert made["object"]["metadata"]["managedFields"][0]["manager"] == "python-httpx"
        assert "object" not in absent

    run(test, node("n"))


def test_an_imported_running_pod_is_not_restarted_and_frees_its_node_when_it_ends() -> None:
    async def test(fixture: ServerFixture) -> None:
        finishing = {**pod("f", nodeName="n"), "status": {"phase": "Succeeded"}}
        await fixture.send(
            "POST", "/objects", lines(running("a", cpu="3"), running("b"), finishing, pod("waits", cpu="3"))
        )
        await asyncio.sleep(0.1)
        await fixture.settle()
        pods = {each["metadata"]["name"]: each for each in (await fixture.api("GET", "/api/v1/pods"))["items"]}
        assert pods["a"]["status"]["startTime"] == RUNNING["startTime"]
        assert pods["f"]["status"]["phase"] == "Succeeded"
        assert "nodeName" not in pods["waits"]["spec"]
        events = (await fixture.api("GET", "/api/v1/events"))["items"]
        assert {each["involvedObject"]["name"] for each in events if each["source"].get("component") == "kubelet"} <= {
            "n"
        }
        assert [each for each in events if each["reason"] in ("Pulled", "Created", "Started", "Scheduled")] == []
        # A pod that finishes, by its status or by its deletion, releases its resources.
        ended = {**pods["a"], "status": {**pods["a"]["status"], "phase": "Succeeded"}}
        await fixture.api("PUT", "/api/v1/namespaces/default/pods/a/status", ended)
        for _ in range(100):
            await fixture.settle()
            if "nodeName" in (await fixture.api("GET", "/api/v1/namespaces/default/pods/waits"))["spec"]:
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("the node of a pod that has ended is not free")
        assert (await fixture.send("POST", "/objects", lines(delete(pod("b")))))["deleted"] == 1
        for _ in range(100):
            if (await fixture.send("POST", "/objects", lines(delete(pod("b")))))["absent"] == 1:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("a pod that was deleted does not go")

    run(test, node("n"))


def test_a_batch_above_the_size_limit_is_refused() -> None:
    async def test(fixture: ServerFixture) -> None:
        answer = await fixture.client.post(
            "/bayplan/v1/objects", content=b"", headers={"content-length": str(MAX_BATCH_BYTES + 1)}
        )
        assert answer.status_code == 413
        assert answer.json()["error"]["wanted"] == f"at most {MAX_BATCH_BYTES:,} bytes"

    run(test)


def test_a_batch_yields_to_other_tasks_between_slices() -> None:
    async def within() -> tuple[Batch, int]:
        backend = Backend(Store())
        bootstrap(backend)
        body = lines(*(pod(f"p-{number}") for number in range(400))).encode()
        turns, writing = 0, asyncio.create_task(BatchWriter(backend).write(body, "test"))
        while not writing.done():
            await asyncio.sleep(0)
            turns += 1
        return writing.result(), turns

    batch, turns = asyncio.run(within())
    assert batch.created == 400
    # Even a fast machine needs at least 30 µs for each pod, so the batch takes at least this many slices.
    assert turns > 400 * 30_000 / SLICE_NS


def test_acknowledged_batches_are_stored_with_one_transaction_per_slice(tmp_path: Path) -> None:
    async def within() -> tuple[int, int]:
        store = Store()
        recorder = DurableRecorder(tmp_path / "store", store, on_failure=lambda problem: None)
        backend = Backend(store)
        bootstrap(backend)
        recorder.flush()
        statements: list[str] = []
        connection = recorder._connection
        connection.set_trace_callback(lambda text: statements.append(text.split()[0]))
        body = lines(*(running(f"p-{number}") for number in range(300))).encode()
        batch = await BatchWriter(backend).write(body, "test")
        waiting = store.until_durable(int(batch.items[-1].resource_version))
        if waiting is not None:
            await waiting
        connection.set_trace_callback(None)
        recorder._writer.shutdown()
        # The store is not closed properly: acknowledged writes must be stored nevertheless.
        connection.close()
        again = Store()
        found = DurableRecorder(tmp_path / "store", again, on_failure=lambda problem: None)
        found.close()
        # A statement outside of a transaction is a separate transaction.
        transactions = re.findall("BEGIN .*?COMMIT|INSERT", " ".join(statements))
        return len(again.table("pods")), len(transactions)

    stored, transactions = asyncio.run(within())
    assert stored == 300
    assert 1 <= transactions < 100


def test_a_batch_waits_for_the_store_before_it_responds() -> None:
    async def within() -> None:
        awaited: list[int] = []
        async with server_fixture() as running_server:
            service = running_server.service
            service._until_durable = lambda revision: awaited.append(revision)
            answer = await running_server.send("POST", "/objects", lines(pod("a")))
            assert awaited[-1:] >= [int(answer["items"][0]["resource_version"])]

    asyncio.run(within())
