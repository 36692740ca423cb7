"""SIGTERM ends long-running commands even during requests: exit code 0, no traceback, the store closed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bayplan.apiserver.http.kubeconfig import kubeconfig_entry, write_kubeconfig
from tests.apiserver.serving import wait_until

GRACE_S = 30.0
"""The default grace period of a pod: then the kubelet kills."""

PLUGIN = """
from bayplan import PerNodePlugin


class Even(PerNodePlugin):
    def filter_node(self, pod, node):
        return None
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec: {containers: [{name: c, image: c}]}
"""
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a command until it has printed its address; yield the process and the address."""
    command = [sys.executable, "-m", "bayplan", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            address = None
            while address is None:
                line = process.stdout.readline()
                assert line, process.stderr.read() if process.stderr else ""
                address = re.search(r"http://127\.0\.0\.1:\d+", line)
            yield process, address[0]
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str]:
    """Send a signal, wait for the end for at most the grace period, and return exit code and standard error."""
    process.send_signal(number)
    _, printed = process.communicate(timeout=GRACE_S)
    return process.returncode, printed


def send(url: str, text: str) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), 20)
    opened.sendall(text.encode())
    return opened


REQUESTS = {
    "nothing": "",
    "half a header": "GET / HTTP/1.1\r\nHost: loc",
    "half a body": f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{",
    "half an import": "POST /bayplan/v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{",
    "a watch": f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a watch of kube-scheduler-simulator": "GET /api/v1/listwatchresources HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "server-sent events": "GET /bayplan/v1/stream?topics=clock HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a WebSocket": (
        "GET /bayplan/v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ),
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_up_stops_on_a_signal_despite_open_requests_and_watches(number: int, tmp_path: Path) -> None:
    options = ["--port", "0", "--store", "store", "--write-kubeconfig", "config"]
    with running(tmp_path, "up", *options) as (process, url):
        held = [send(url, text) for text in REQUESTS.values()]
        body = b'{"metadata":{"name":"m"}}'
        request = urllib.request.Request(url + MAPS, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 201
        code, printed = ended(process, number)
        for each in held:
            each.close()
    assert (code, printed) == (0, "")
    # The store was closed properly: its write-ahead log is gone.
    assert sorted(os.listdir(tmp_path)) == ["config", "store"]
    with sqlite3.connect(tmp_path / "store") as store:
        assert store.execute("SELECT count(*) FROM documents WHERE name = 'm'").fetchone() == (1,)
    store.close()


def test_up_stops_while_a_plugin_hangs(tmp_path: Path) -> None:
    hang = "import pathlib, time; pathlib.Path('hanging').touch(); time.sleep(3600)"
    (tmp_path / "slow.py").write_text(PLUGIN.replace("return None", hang))
    (tmp_path / "cluster.yaml").write_text(f"{NODE}---{POD}")
    options = ["--port", "0", "--store", "store", "--write-kubeconfig", "config", "--plugin", "slow.py:Even"]
    with running(tmp_path, "up", "cluster.yaml", *options, "--plugin-deadline", "3600") as (process, url):
        # This request waits for the scheduler, which in turn waits for the plugin.
        waiting = send(url, "POST /bayplan/v1/queue/flush HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until((tmp_path / "hanging").exists)
        code, printed = ended(process)
        waiting.close()
    assert code == 0
    assert "Traceback" not in printed
    assert "store-wal" not in os.listdir(tmp_path)


def test_up_schedules_although_nobody_reads_its_output(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(PLUGIN.replace("return None", "print('x' * 2000)"))
    (tmp_path / "nodes.yaml").write_text(NODE)
    options = ["--port", "0", "--write-kubeconfig", "config", "--plugin", "loud.py:Even"]
    with running(tmp_path, "up", "nodes.yaml", *options) as (process, url):
        for number in range(100):
            pod = {"metadata": {"name": f"p-{number}"}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{url}{PODS}", json.dumps(pod).encode(), headers)
            urllib.request.urlopen(request, timeout=20).close()

        def all_are_bound() -> bool:
            with urllib.request.urlopen(f"{url}{PODS}", timeout=20) as answer:
                return all("nodeName" in item["spec"] for item in json.load(answer)["items"])

        wait_until(all_are_bound)
        code, _ = ended(process)
    assert code == 0


def test_extender_stops_despite_an_unfinished_request(tmp_path: Path) -> None:
    (tmp_path / "even.py").write_text(PLUGIN)
    with running(tmp_path, "extender", "--plugin", "even.py:Even", "--port", "0") as (process, url):
        flood = send(url, "GET / HTTP/1.1\r\nX: ")
        with contextlib.suppress(ConnectionError):
            flood.sendall(b"x" * 2_000_000)
        assert flood.recv(100).startswith(b"HTTP/1.1 431")
        flood.close()
        waiting = send(url, "POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        # The server accepts connections in order: when this request is answered, it has read the unfinished one.
        with urllib.request.urlopen(f"{url}/healthz", timeout=20) as answer:
            assert answer.status == 200
        code, printed = ended(process)
        waiting.close()
    assert (code, printed) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["schedule", "--kubeconfig", "config", "--port", "0"], id="schedule"),
        pytest.param(["schedule", "--kubeconfig", "config", "--dry-run"], id="schedule --dry-run"),
        pytest.param(["sync", "--from", "config", "--to", "config"], id="sync"),
        pytest.param(["import", "--from", "config", "--to", "config"], id="import"),
        pytest.param(["record", "--from", "config", "events.jsonl"], id="record"),
    ],
)
def test_commands_stop_while_the_cluster_does_not_respond(arguments: list[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        write_kubeconfig(tmp_path / "config", kubeconfig_entry(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        silent.settimeout(60)
        command = [sys.executable, "-m", "bayplan", *arguments]
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                # The command has sent a request, which is never answered.
                connection, _ = silent.accept()
                code, printed = ended(process)
                connection.close()
            finally:
                process.kill()
    assert code == 0
    assert "Traceback" not in printed
