"""The server over real sockets: the official Python client, watches that end cleanly, tokens, durability, limits."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from kubernetes import client as kube
from kubernetes import watch as kube_watch
from kubernetes.informer import SharedInformer

from bayplan.apiserver.http.kubeconfig import write_kubeconfig
from bayplan.apiserver.http.server import ApiServer, ServerOptions
from bayplan.base.asgi import Receive, Scope, Send
from bayplan.base.errors import InputError
from tests.apiserver.client import pod
from tests.apiserver.serving import PATIENCE, ask, serving, wait_until

# The client and urllib leave it to the garbage collector to close their sockets.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


def core(server: ApiServer) -> Any:
    configuration = kube.Configuration()
    configuration.host = server.url
    return kube.CoreV1Api(kube.ApiClient(configuration))


def test_responses_forbid_caches_and_texts_are_not_sniffed() -> None:
    uncached = "no-cache, private"
    with serving() as server:
        document = {"metadata": {"name": "a"}}
        body = json.dumps(document).encode()
        found: dict[str, tuple[str | None, str | None]] = {}
        for method, path in (
            ("GET", "/api/v1/pods"),
            ("POST", "/api/v1/namespaces/default/configmaps"),
            ("GET", "/healthz"),
            ("GET", "/healthz/ping"),
            ("GET", "/none"),
            ("GET", "/openapi/v2"),
            ("GET", "/.well-known/openid-configuration"),
            ("GET", "/api/v1/pods?watch=1&timeoutSeconds=1"),
        ):
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(
                server.url + path, body if method == "POST" else None, headers, method=method
            )
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                    fields = response.headers
            except urllib.error.HTTPError as refused:
                with refused:
                    fields = refused.headers
            found[path] = (fields["cache-control"], fields["x-content-type-options"])
    assert found == {
        "/api/v1/pods": (uncached, None),
        "/api/v1/namespaces/default/configmaps": (uncached, None),
        "/healthz": (uncached, "nosniff"),
        "/healthz/ping": (uncached, None),
        "/none": (uncached, "nosniff"),
        "/openapi/v2": (uncached, None),
        "/.well-known/openid-configuration": ("public, max-age=3600", None),
        "/api/v1/pods?watch=1&timeoutSeconds=1": (uncached, None),
    }


def test_the_official_client_lists_watches_and_runs_an_informer() -> None:
    with serving() as server:
        api = core(server)
        api.create_namespaced_pod("default", pod("a"))
        listed = api.list_namespaced_pod("default")
        assert [each.metadata.name for each in listed.items] == ["a"]
        make_informer: Any = SharedInformer
        informer = make_informer(api.list_namespaced_pod, namespace="default")
        seen: list[tuple[str, str]] = []
        for kind in ("ADDED", "MODIFIED", "DELETED"):
            informer.add_event_handler(kind, lambda each, kind=kind: seen.append((kind, each.metadata.name)))
        informer.start()
        wait_until(lambda: ("ADDED", "a") in seen)
        api.create_namespaced_pod("default", pod("b"))
        api.patch_namespaced_pod("b", "default", {"metadata": {"labels": {"x": "y"}}})
        api.delete_namespaced_pod("a", "default")
        wait_until(lambda: ("DELETED", "a") in seen)
        assert ("MODIFIED", "b") in seen
        watch: Any = kube_watch.Watch
        stream = watch().stream(
            api.list_namespaced_pod, "default", resource_version=listed.metadata.resource_version, timeout_seconds=1
        )
        reported = [(event["type"], event["object"].metadata.name) for event in stream]
        assert reported == [("ADDED", "b"), ("MODIFIED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
        informer.stop()


def test_the_official_client_creates_reads_updates_and_deletes_objects() -> None:
    with serving() as server:
        api = core(server)
        made = api.create_namespaced_config_map("default", {"metadata": {"name": "m"}, "data": {"a": "1"}})
        assert made.metadata.uid
        made.data["a"] = "2"
        assert api.replace_namespaced_config_map("m", "default", made).data == {"a": "2"}
        with pytest.raises(kube.ApiException, match="the object has been modified") as refused:
            api.replace_namespaced_config_map("m", "default", made)
        assert refused.value.status == 409
        assert api.patch_namespaced_config_map("m", "default", {"data": {"b": "3"}}).data == {"a": "2", "b": "3"}
        assert api.read_namespaced_config_map("m", "default").data == {"a": "2", "b": "3"}
        apps: Any = kube.AppsV1Api(api.api_client)
        template = {"metadata": {"labels": {"x": "y"}}, "spec": pod("x")["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": {"x": "y"}}, "template": template}
        apps.create_namespaced_deployment("default", {"metadata": {"name": "d"}, "spec": spec})
        scaled = apps.patch_namespaced_deployment_scale("d", "default", {"spec": {"replicas": 4}})
        assert (scaled.spec.replicas, apps.read_namespaced_deployment("d", "default").spec.replicas) == (4, 4)
        api.create_node({"metadata": {"name": "n"}})
        api.create_namespaced_pod("default", pod("p"))
        target = kube.V1ObjectReference(kind="Node", name="n")
        binding = kube.V1Binding(metadata=kube.V1ObjectMeta(name="p"), target=target)
        api.create_namespaced_pod_binding("p", "default", binding, _preload_content=False)
        assert api.read_namespaced_pod("p", "default").spec.node_name == "n"
        assert (
            api.list_namespaced_config_map("default", limit=1, field_selector="metadata.name=m").items[0].data["b"]
            == "3"
        )
        api.delete_namespaced_config_map("m", "default")
        api.delete_collection_namespaced_pod("default", grace_period_seconds=0)
        assert api.list_namespaced_pod("default").items == []
        with pytest.raises(kube.ApiException) as gone:
            api.read_namespaced_config_map("m", "default")
        assert gone.value.status == 404


def test_a_watch_ends_cleanly_when_the_server_stops() -> None:
    with serving() as server:
        url = f"{server.url}/api/v1/pods?watch=1&timeoutSeconds=600"
        answer = urllib.request.urlopen(url, timeout=PATIENCE)
        threading.Timer(0.2, server.stop).start()
        # If the chunked answer ended without its last chunk, this would raise IncompleteRead.
        assert answer.read() == b""
        answer.close()


class LateWatcher:
    """A mounted application that handles no requests. When the server stops, it connects and begins a watch."""

    def __init__(self, server: ApiServer) -> None:
        address = urlsplit(server.url)
        self._address = (address.hostname, address.port)
        self.connection: socket.socket | None = None

    def answers(self, scope: Scope) -> bool:
        return False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    def watch(self) -> None:
        self.connection = socket.create_connection(self._address, PATIENCE)
        self.connection.sendall(b"GET /api/v1/pods?watch=1&timeoutSeconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_a_watch_that_begins_as_the_server_stops_ends_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """Informers do so: they repeat a watch that has ended."""
    with serving() as server:
        watcher = LateWatcher(server)
        server.mount(watcher, on_end=watcher.watch)
    assert watcher.connection is not None
    with watcher.connection, watcher.connection.makefile("rb") as answer:
        assert answer.read().endswith(b"\r\n\r\n0\r\n\r\n")
    assert caplog.messages == []


def test_requests_without_the_token_are_unauthorized_and_the_kubeconfig_contains_it(tmp_path: Path) -> None:
    with serving(token="secret") as server:
        assert ask(f"{server.url}/api")[0] == 401
        assert ask(f"{server.url}/api", Authorization="Bearer wrong")[0] == 401
        assert ask(f"{server.url}/api", Authorization="Bearer secret")[0] == 200
        path = tmp_path / "config"
        write_kubeconfig(path, server.kubeconfig())
        assert path.stat().st_mode & 0o077 == 0
        document = yaml.safe_load(path.read_text())
        assert document["users"][0]["user"] == {"token": "secret"}
        assert document["clusters"][0]["cluster"]["server"] == server.url


def test_a_durable_store_is_restored_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with serving(store=path) as server:
        created = core(server).create_namespaced_pod("default", pod("a"))
        uid, version = created.metadata.uid, created.metadata.resource_version
    with serving(store=path) as server:
        found = core(server).read_namespaced_pod("a", "default")
        assert (found.metadata.uid, found.metadata.resource_version) == (uid, version)
        status, body = ask(f"{server.url}/api/v1/pods?watch=1&resourceVersion={version}&timeoutSeconds=1")
        assert (status, body) == (200, b"")
        api = core(server)
        assert int(api.create_namespaced_pod("default", pod("b")).metadata.resource_version) > int(version)


def test_an_oversized_body_is_refused_and_the_server_continues() -> None:
    with serving() as server:
        url = f"{server.url}/api/v1/namespaces/default/configmaps"
        body = json.dumps({"metadata": {"name": "m"}, "data": {"a": "x" * (4 * 1024 * 1024)}}).encode()
        # The server may close the connection before the body has been sent.
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            assert ask(url, "POST", body, **{"Content-Type": "application/json"})[0] == 413
        assert ask(f"{server.url}/readyz") == (200, b"ok")


@pytest.mark.parametrize(
    ("options", "want"),
    [
        pytest.param({"listen": "0.0.0.0"}, "without a token", id="all addresses without a token"),
        pytest.param({"port": 70000}, "0 to 65535", id="no port"),
        pytest.param({"certificate": Path("x")}, "both or neither", id="half of TLS"),
        pytest.param({"certificate": Path("x"), "key": Path("y")}, "certificate and its key", id="no certificate"),
    ],
)
def test_invalid_server_options_are_refused(options: dict[str, Any], want: str) -> None:
    with pytest.raises(InputError, match=want):
        ApiServer(ServerOptions(**options))


def test_foreign_hosts_and_origins_are_forbidden_without_a_token() -> None:
    fine: list[dict[str, Any]] = [{"Host": "127.0.0.1:1"}, {"Host": "[::1]:1", "Origin": "http://localhost:3000"}]
    foreign: list[dict[str, Any]] = [
        {"Host": "rebound.example"},
        {"Origin": "https://page.example"},
        {"Host": "[::"},
        {"Origin": "null"},
    ]
    with serving() as server:
        assert [ask(f"{server.url}/version", **headers)[0] for headers in fine] == [200] * 2
        assert [ask(f"{server.url}/version", **headers)[0] for headers in foreign] == [403] * 4


def test_any_host_name_is_accepted_with_a_token() -> None:
    with serving(token="secret") as server:
        headers: dict[str, Any] = {"Host": "cluster.example", "Authorization": "Bearer secret"}
        assert ask(f"{server.url}/version", **headers)[0] == 200


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/api/v1/pods%", 400, id="an escape without digits"),
        pytest.param("/api/v1/%zz", 400, id="an escape with other letters"),
        pytest.param("/api/v1/pod%73", 200, id="an escape"),
        pytest.param("/api/v1/pods?limit=%zz&labelSelector=a;b", 200, id="malformed parameters, which Go ignores"),
    ],
)
def test_malformed_escapes_in_paths_are_bad_requests(path: str, want: int) -> None:
    with serving() as server:
        assert ask(server.url + path)[0] == want
