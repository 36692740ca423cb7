"""The built-in scheduler and webhooks: its writes wait for their answers, and a denied binding is tried again."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bayplan.apiserver.http.server import ServerOptions
from bayplan.app.api_service import make_service
from bayplan.app.scheduler_setup import SchedulerOptions
from bayplan.app.simulator_server import SimulatorOptions
from bayplan.base.plain_data import Document
from tests.apiserver.admission.hook_server import HookServer, make_certificate

PATIENCE_S = 60
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookServer]:
    server = HookServer(*make_certificate(tmp_path))
    yield server
    server.close()


@contextmanager
def running(folder: Path, documents: list[Document]) -> Iterator[str]:
    """Run a cluster with a scheduler, and yield its address."""
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    options = SimulatorOptions(scheduler=SchedulerOptions(seed=1))
    service = make_service(ServerOptions(port=0, webhooks=("loopback",)), options, [str(path)])
    ready = threading.Event()
    thread = threading.Thread(target=service.run, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(PATIENCE_S)
        yield service.server.url
    finally:
        service.server.stop()
        thread.join(PATIENCE_S)


def read(url: str) -> Document:
    with urllib.request.urlopen(url) as answer:
        return dict(json.load(answer))


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def cluster(hooks: HookServer, path: str) -> list[Document]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    hook: Document = {
        "name": "a.hooks.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods/binding"]}],
        "clientConfig": {"url": f"https://127.0.0.1:{hooks.port}{path}", "caBundle": hooks.bundle},
    }
    group = "admissionregistration.k8s.io/v1"
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"capacity": amounts, "allocatable": amounts},
        },
        {"apiVersion": group, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": [hook]},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "a", "image": "b"}]},
        },
    ]


def test_a_binding_waits_for_the_webhook_response(tmp_path: Path, hooks: HookServer) -> None:
    with running(tmp_path, cluster(hooks, "/allow")) as url:
        pod = f"{url}/api/v1/namespaces/default/pods/p"
        wait_until(lambda: read(pod)["spec"].get("nodeName") == "n")  # type: ignore[attr-defined]
        assert "/allow" in hooks.asked


def test_a_denied_binding_is_retried_after_the_webhook_is_deleted(tmp_path: Path, hooks: HookServer) -> None:
    with running(tmp_path, cluster(hooks, "/deny")) as url:
        pod = f"{url}/api/v1/namespaces/default/pods/p"
        wait_until(lambda: "/deny" in hooks.asked)
        assert "nodeName" not in read(pod)["spec"]  # type: ignore[operator]
        urllib.request.urlopen(urllib.request.Request(f"{url}{HOOKS}/c", method="DELETE")).close()
        wait_until(lambda: read(pod)["spec"].get("nodeName") == "n")  # type: ignore[attr-defined]
