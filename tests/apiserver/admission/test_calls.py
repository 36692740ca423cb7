"""Webhooks of a running server: only allowed ones are called, and other requests are served during a call."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest

from tests.apiserver.admission.hook_server import HookServer, make_certificate
from tests.apiserver.serving import Document, ask, call, serving

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HookServer]:
    server = HookServer(*make_certificate(tmp_path_factory.mktemp("hook")))
    yield server
    server.close()


def configuration(hooks: HookServer, path: str, kind: str, **more: object) -> Document:
    hook: Document = {
        "name": "a.hooks.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
        "clientConfig": {"url": f"https://127.0.0.1:{hooks.port}{path}", "caBundle": hooks.bundle},
        **more,
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration"}
    return {**head, "metadata": {"name": f"c-{kind.lower()}"}, "webhooks": [hook]}


def config_map(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("allowed", "want"),
    [
        pytest.param((), [], id="no webhook, so the object is stored unchanged"),
        pytest.param(("127.0.0.1:1",), [], id="at another location only"),
        pytest.param(("loopback",), ["/label"], id="on this machine"),
    ],
)
@pytest.mark.parametrize("imported", [pytest.param(False, id="created"), pytest.param(True, id="imported")])
def test_webhooks_are_called_only_at_allowed_addresses(
    hooks: HookServer, allowed: tuple[str, ...], want: list[str], imported: bool
) -> None:
    hook = configuration(hooks, "/label", "Mutating")
    hooks.asked.clear()
    with serving([hook] if imported else [], webhooks=allowed) as server:
        if not imported:
            call(server, "POST", f"{CONFIGURATIONS}/mutatingwebhookconfigurations", hook)
        made = call(server, "POST", CONFIG_MAPS, config_map("c"))
    assert hooks.asked == want
    assert ("hooked" in made["metadata"]["labels"]) is bool(want)


def test_a_slow_webhook_does_not_block_other_requests(hooks: HookServer) -> None:
    with serving(webhooks=("loopback",)) as server:
        slow = configuration(hooks, "/waits", "Validating", timeoutSeconds=30)
        call(server, "POST", f"{CONFIGURATIONS}/validatingwebhookconfigurations", slow)
        answers: list[int] = []

        def create() -> None:
            body = json.dumps(config_map("late")).encode()
            answers.append(ask(f"{server.url}{CONFIG_MAPS}", "POST", body, **{"Content-Type": "application/json"})[0])

        hooks.asked.clear()
        hooks.released.clear()
        creating = threading.Thread(target=create)
        creating.start()
        while not hooks.asked:
            time.sleep(0.01)
        assert ask(f"{server.url}/api/v1/namespaces/default")[0] == 200
        assert ask(f"{server.url}{CONFIG_MAPS}/late")[0] == 404
        assert not answers
        hooks.released.set()
        creating.join(30)
        assert answers == [201]


def test_concurrent_patches_with_a_mutating_webhook_do_not_lose_updates(hooks: HookServer) -> None:
    with serving(webhooks=("loopback",)) as server:
        call(server, "POST", CONFIG_MAPS, config_map("shared"))
        counted = configuration(hooks, "/count", "Mutating", timeoutSeconds=10)
        call(server, "POST", f"{CONFIGURATIONS}/mutatingwebhookconfigurations", counted)

        def change() -> None:
            patch = {"data": {"k": "v"}}
            call(server, "PATCH", f"{CONFIG_MAPS}/shared", patch, "application/merge-patch+json")

        threads = [threading.Thread(target=change) for _ in range(5)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(30)
        found = call(server, "GET", f"{CONFIG_MAPS}/shared")
        assert found["metadata"]["labels"]["count"] == "5"
