"""Recorded runs of kube-scheduler, repeated by `bayplan schedule` on a real kube-apiserver.

Requests, events and conditions are compared. `bayplan conformance` does the same in one process and in virtual time.
Here, real sockets, threads and a clock are involved.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from bayplan.app import scheduler_setup
from bayplan.app.live_scheduler import LiveOptions, LiveScheduler
from bayplan.app.scheduler_setup import SchedulerOptions
from bayplan.client.cluster_access import open_access
from bayplan.client.connection import ApiConnection
from bayplan.client.requests import USER_AGENT, ApiRequest, ApiResponse
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.comparer import differ
from bayplan.conformance.e2e import following, observed
from bayplan.conformance.e2e_runs import comparable_run_parts, objects_with_uids
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.kinds import KINDS
from tests.cluster_programs.programs import program
from tests.cluster_programs.real_cluster import RealCluster

ROOT = Path(__file__).resolve().parents[2]
RUNS = [
    json.loads(line)
    for line in gzip.decompress((ROOT / "conformance" / "e2e" / "runs.jsonl.gz").read_bytes()).splitlines()
]
BY_KIND = {kind.kind: kind for kind in KINDS}
WAIT_SECONDS = 15.0
UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LEFT_BEHIND = (
    "/api/v1/namespaces/default/pods",
    "/api/v1/nodes",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/apis/events.k8s.io/v1/namespaces/kube-system/events",
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
)


class BareCluster(RealCluster):
    """A control plane that does not taint new nodes, as the recorded one."""

    def run(self, name: str, *options: str) -> None:
        super().run(
            name, *("ServiceAccount,TaintNodesByCondition" if each == "ServiceAccount" else each for each in options)
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    for name in ("etcd", "kube-apiserver"):
        program(name)
    found = BareCluster(tmp_path_factory.mktemp("cluster"))
    try:
        found.start()
        yield found
    finally:
        found.kill()


def empty(cluster: RealCluster) -> None:
    """Delete what a run has left behind, with the finalizers, which no other component removes."""
    for path in LEFT_BEHIND:
        for item in cluster.items(path):
            name = item["metadata"]["name"]
            if name.startswith("system-"):
                continue
            if item["metadata"].get("finalizers"):
                patch: dict[str, Any] = {"metadata": {"finalizers": None}}
                cluster.ask("PATCH", f"{path}/{name}", patch, "application/merge-patch+json")
            cluster.ask("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})


class Steps:
    """Runs the steps of a run, while the scheduler runs on the main thread."""

    def __init__(self, case: JsonObject, kubeconfig: Path) -> None:
        self._steps = cast("list[JsonObject]", case["steps"])
        self._uids = dict(objects_with_uids(case["observed"]))
        self._kubeconfig = kubeconfig
        self.reported: list[str] = []
        self.outcome: tuple[list[JsonObject], list[JsonObject]] | None = None
        self.failure: BaseException | None = None
        self.ended = threading.Event()

    def before(self) -> None:
        """Run the steps before the scheduler starts."""
        asyncio.run(self._run(self._steps[: self._start]))

    def after(self) -> None:
        """Run the remaining steps once the scheduler works, and then stop the scheduler."""
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while "scheduling" not in self.reported and not self.ended.is_set():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            asyncio.run(self._run(self._steps[self._start + 1 :], last=True))
        except BaseException as failure:
            self.failure = failure
        finally:
            # If the scheduler has ended already, the signal would end the test process.
            if not self.ended.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    @property
    def _start(self) -> int:
        return [step["op"] for step in self._steps].index("scheduler starts")

    async def _run(self, steps: list[JsonObject], *, last: bool = False) -> None:
        access = await open_access(self._kubeconfig)
        async with ApiConnection(access, user_agent="conformance/1.0", qps=-1) as connection:
            for step in steps:
                await self._do(connection, step)
            if last:
                # Late events must be seen, but retries, which come a second later, were not recorded.
                await asyncio.sleep(0.6)
                events = await self._list(connection, "/apis/events.k8s.io/v1/events")
                self.outcome = events, await self._list(connection, "/api/v1/pods")

    async def _do(self, connection: ApiConnection, step: JsonObject) -> None:
        operation = step["op"]
        if operation == "create":
            document = cast("JsonObject", step["object"])
            kind = BY_KIND[str(document["kind"])]
            path = self._collection(kind.kind)
            await self._send(connection, "POST", path, document)
            if kind.kind == "PersistentVolume":
                patch: JsonObject = {"status": document["status"]}
                name = cast("JsonObject", document["metadata"])["name"]
                await self._send(connection, "PATCH", f"{path}/{name}/status", patch, "application/merge-patch+json")
        elif operation == "patch":
            path = f"{self._collection(str(step['kind']))}/{step['name']}{step['subresource']}"
            await self._send(connection, "PATCH", path, cast("JsonObject", step["patch"]), str(step["type"]))
        elif operation == "delete":
            options: JsonObject = (
                {} if step["gracePeriodSeconds"] is None else {"gracePeriodSeconds": step["gracePeriodSeconds"]}
            )
            await self._send(connection, "DELETE", f"{self._collection(str(step['kind']))}/{step['name']}", options)
        elif operation == "sleep":
            await asyncio.sleep(cast("float", step["seconds"]))
        elif operation == "wait":
            await self._wait(connection, str(step["until"]))

    async def _wait(self, connection: ApiConnection, until: str) -> None:
        """Wait until a condition holds, for at most `WAIT_SECONDS`."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline and not await self._is_so(connection, until):
            await asyncio.sleep(0.05)

    async def _is_so(self, connection: ApiConnection, until: str) -> bool:
        listed = await self._list(connection, "/api/v1/pods")
        pods = {cast("JsonObject", each["metadata"])["name"]: cast("dict[str, Any]", each) for each in listed}
        if until.startswith("bound: "):
            return all("nodeName" in pods.get(name, {"spec": {}})["spec"] for name in until[7:].split(", "))
        name, _, what = until.partition(" ")
        if what == "is terminating":
            return "deletionTimestamp" in pods[name]["metadata"]
        if what == "has a claimRef":
            volumes = cast("list[dict[str, Any]]", await self._list(connection, "/api/v1/persistentvolumes"))
            return any(each["metadata"]["name"] == name and "claimRef" in each["spec"] for each in volumes)
        if what == "has selected-node":
            claims = cast("list[dict[str, Any]]", await self._list(connection, "/api/v1/persistentvolumeclaims"))
            return any(
                "volume.kubernetes.io/selected-node" in (each["metadata"].get("annotations") or {}) for each in claims
            )
        reason = what.rpartition(" ")[2]
        conditions = pods[name]["status"].get("conditions") or []
        return any(each["type"] == "PodScheduled" and each.get("reason") == reason for each in conditions)

    async def _send(
        self, connection: ApiConnection, method: str, path: str, document: JsonObject, kind: str = "application/json"
    ) -> None:
        text = json.dumps(document)
        for uid in UID.findall(text):
            reported, _, key = self._uids.get(uid, "").partition(" ")
            if reported:
                found = await connection.send(
                    ApiRequest("GET", f"{self._collection(reported)}/{key.rpartition('/')[2]}")
                )
                text = text.replace(uid, json.loads(found.body)["metadata"]["uid"])
        response = await connection.send(ApiRequest(method, path, text.encode(), kind))
        assert response.ok, response.message

    async def _list(self, connection: ApiConnection, path: str) -> list[JsonObject]:
        return cast("list[JsonObject]", json.loads((await connection.send(ApiRequest("GET", path))).body)["items"])

    def _collection(self, kind: str) -> str:
        row = BY_KIND[kind]
        prefix = f"/apis/{row.api_version}" if row.group else f"/api/{row.version}"
        return f"{prefix}{'/namespaces/default' if row.namespaced else ''}/{row.plural}"


@pytest.mark.parametrize("case", RUNS, ids=[case["id"] for case in RUNS])
def test_a_recorded_run_is_reproduced_on_a_real_api_server(
    case: JsonObject, cluster: RealCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(cluster)
    calls: list[Json] = []
    send = ApiConnection.send

    async def noted(connection: ApiConnection, request: ApiRequest) -> ApiResponse:
        response = await send(connection, request)
        ours = connection._user_agent == USER_AGENT and request.method != "GET"
        if ours and "/leases" not in request.path and b"LeaderElection" not in request.body:
            body = json.loads(request.body)
            calls.append({"method": request.method, "path": request.path, "body": body, "status": response.status})
        return response

    monkeypatch.setattr(ApiConnection, "send", noted)
    monkeypatch.setattr(socket, "gethostname", lambda: "host")

    def assembled(*arguments: Any, queue_type: type[SchedulingQueue] = SchedulingQueue, **more: Any) -> Scheduler:
        # Among equally good nodes, pick the recorded one.
        pick, reported = following(case, queue_type)
        return assemble_scheduler(*arguments, **more, pick=pick, queue_type=reported)

    monkeypatch.setattr(scheduler_setup, "assemble_scheduler", assembled)
    config = tmp_path / "config.yaml"
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(yaml.safe_dump({**header, **cast("JsonObject", case["config"] or {})}))
    steps = Steps(case, cluster.kubeconfig)
    steps.before()
    options = LiveOptions(kubeconfig=cluster.kubeconfig, scheduler=SchedulerOptions(config=config), port=-1)
    thread = threading.Thread(target=steps.after)
    thread.start()
    try:
        assert LiveScheduler(options, steps.reported.append).run() == 0
    finally:
        steps.ended.set()
        thread.join()
    if steps.failure is not None:
        raise steps.failure
    assert steps.outcome is not None
    answer: JsonObject = {"observed": observed(calls, *steps.outcome)}
    different = {part: differ(part, theirs, ours) for part, theirs, ours in comparable_run_parts(case, answer)}
    assert {part: found for part, found in different.items() if found} == {}
