"""The Kubernetes API under load: creates per second, in memory and durable, with watchers, and lists of many pods.

The server is a separate process, pinned to one core. The load comes from this process, pinned to another: sixteen
persistent connections, each with one request in progress. If there is only one core, they share it, and the figures
mean less.

``python -m benchmarks.bench_api PORT TOKEN`` sends the same load, with the same pods, to a running kube-apiserver, over
TLS (it has no other protocol); pin it and its etcd to the first core.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import selectors
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import Figure

CONNECTIONS = 16
PODS = {"small": 300, "large": 20_000}
LISTED = {"small": 500, "large": 50_000}
FILTERED_WATCHERS = 50
FULL_WATCHERS = 10
_PODS_PATH = "/api/v1/namespaces/default/pods"
_API_ALONE = ["--no-scheduler", "--no-controllers", "--no-kubelet"]  # bench_up measures the work behind the API.


def figures(size: str) -> Iterator[Figure]:
    """Yield the figures; `size` is ``small`` or ``large``."""
    count = PODS[size]
    with tempfile.TemporaryDirectory() as name, own_core(1):
        folder = Path(name)
        for title, options, watchers, alike in (
            ("creates, pods of one template", [], [], True),
            ("creates, all pods unlike", [], [], False),
            ("creates, durable", ["--store", str(folder / "store")], [], True),
            (
                "creates, 50 watchers of one pod in fifty",
                [],
                [f"labelSelector=group%3D{i}" for i in range(FILTERED_WATCHERS)],
                True,
            ),
            ("creates, 10 watchers of all", [], [""] * FULL_WATCHERS, True),
        ):
            with serving(folder, [*_API_ALONE, *options]) as port:
                load = Load(port, watchers)
                before = server_seconds(port)
                seconds = load.run([create_request(i, alike=alike) for i in range(count)])
                received = sum(each.events for each in load.watching)
                wanted = count * (FULL_WATCHERS if watchers == [""] * FULL_WATCHERS else 1) if watchers else 0
                assert received == wanted, f"{received} events instead of {wanted}"
                busy = max(server_seconds(port) - before, 0.01)
                note = f"p50 {load.percentile(0.5):.1f} ms, p99 {load.percentile(0.99):.1f} ms, "
                note += f"{count / busy:,.0f} for each second that the server computed"
                yield Figure(
                    name=title, value=count / seconds, unit="creates/s", decisions_hash=names_hash(port), note=note
                )
        yield from list_figures(folder, LISTED[size])


def list_figures(folder: Path, count: int) -> Iterator[Figure]:
    """Yield figures of loading a file of pods, of listing them, and of the server's memory."""
    path = folder / "pods.json"
    items = [pod(i, alike=False) for i in range(count)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    start = time.perf_counter()
    with serving(folder, [str(path)]) as port:
        loaded = time.perf_counter() - start
        digest = names_hash(port)
        best = min(_timed(lambda: get(port, _PODS_PATH)) for _ in range(3))
        size = server_megabytes(port)
        yield Figure(name=f"start with {count:,} pods from JSON", value=loaded, unit="s", decisions_hash=digest)
        yield Figure(name=f"list of {count:,} pods", value=best, unit="s", decisions_hash=digest)
        yield Figure(name=f"memory of the server, {count:,} pods", value=size, unit="MB", decisions_hash=digest)


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


# --- the server -------------------------------------------------------------------------------------------------------

_processes: dict[int, int] = {}


@contextlib.contextmanager
def own_core(core: int) -> Iterator[None]:
    """Run this process on one core while the block runs, if there are several."""
    before = os.sched_getaffinity(0)
    if len(before) > core:
        os.sched_setaffinity(0, {sorted(before)[core]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def serving(folder: Path, arguments: list[str]) -> Iterator[int]:
    """Run a server on the first core, and yield its port."""
    command = [sys.executable, "-m", "bayplan", "up", *arguments, "--port", "0"]
    command += ["--write-kubeconfig", str(folder / "config")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    with process:
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(1) or {0})})
        try:
            port = 0
            while not port:
                line = process.stdout.readline()
                assert line, "the server has ended"
                found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
                port = int(found[1]) if found else 0
            _processes[port] = process.pid
            yield port
        finally:
            process.terminate()


def server_seconds(port: int) -> float:
    """Return the server's CPU time in seconds, which other processes on the machine do not change."""
    fields = Path(f"/proc/{_processes[port]}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def server_megabytes(port: int) -> float:
    """Return the server's resident memory in megabytes."""
    status = Path(f"/proc/{_processes[port]}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 1.0


# --- requests ---------------------------------------------------------------------------------------------------------


def pod(number: int, *, alike: bool) -> dict[str, object]:
    """Return a pod of about one kilobyte."""
    cpu = "250m" if alike else f"{100 + number}m"
    container = {
        "name": "main",
        "image": "registry.example.com/team/service:1.2.3",
        "command": ["/bin/service", "--listen=:8080", "--log-level=info"],
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(6)],
        "ports": [{"containerPort": 8080, "name": "http"}],
        "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
    }
    labels = {"app": "service", "group": str(number % FILTERED_WATCHERS)}
    metadata = {"name": f"pod-{number:06}", "namespace": "default", "labels": labels}
    spec = {"containers": [container], "nodeSelector": {"pool": "general"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def create_request(number: int, *, alike: bool, token: str = "") -> bytes:
    """Return the bytes of a request that creates a pod."""
    body = json.dumps(pod(number, alike=alike)).encode()
    head = f"POST {_PODS_PATH} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def get(port: int, path: str) -> bytes:
    """Return the body of the response to a GET."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        pieces = []
        while piece := connection.recv(1 << 20):
            pieces.append(piece)
    return b"".join(pieces).partition(b"\r\n\r\n")[2]


def names_hash(port: int) -> str:
    """Return a hash of the names of all pods, in list order."""
    names = [each["metadata"]["name"] for each in json.loads(get(port, _PODS_PATH))["items"]]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:16]


def secured(opened: socket.socket) -> socket.socket:
    """Return a TLS connection that accepts any certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(opened)


def received(opened: socket.socket) -> bytes:
    """Return the bytes that a connection has received."""
    data = opened.recv(1 << 18)
    while isinstance(opened, ssl.SSLSocket) and opened.pending():
        data += opened.recv(1 << 18)
    return data


@dataclass
class Connection:
    """One connection, of a client that creates pods or of a watcher."""

    socket: socket.socket
    begun: float = 0.0
    buffer: bytearray = field(default_factory=bytearray)
    events: int = 0
    watches: bool = False


class Load:
    """The client and watcher connections to a server."""

    def __init__(self, port: int, watchers: list[str], *, token: str = "", connections: int = CONNECTIONS) -> None:
        self._selector = selectors.DefaultSelector()
        self._port = port
        self._token = token
        self._connections = connections
        self.latencies: list[float] = []
        self.watching = [self._watch(query) for query in watchers]

    def _connect(self, *, watches: bool) -> Connection:
        opened = socket.create_connection(("127.0.0.1", self._port))
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._token:
            opened = secured(opened)
        connection = Connection(opened, watches=watches)
        self._selector.register(opened, selectors.EVENT_READ, connection)
        return connection

    def _watch(self, query: str) -> Connection:
        connection = self._connect(watches=True)
        shown = f"Authorization: Bearer {self._token}\r\n" if self._token else ""
        connection.socket.sendall(
            f"GET {_PODS_PATH}?watch=1&{query} HTTP/1.1\r\nHost: localhost\r\n{shown}\r\n".encode()
        )
        while b"\r\n\r\n" not in connection.buffer:
            connection.buffer += connection.socket.recv(65536)
        connection.events = connection.buffer.count(b'{"type":"')
        return connection

    def percentile(self, share: float) -> float:
        """Return a percentile of the latencies in milliseconds; `share` is 0.99 for p99."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000

    def run(self, requests: list[bytes]) -> float:
        """Send requests over all connections, one at a time on each; return the seconds until the last response."""
        waiting = iter(requests)
        clients = [self._connect(watches=False) for _ in range(self._connections)]
        wanted = sum(1 for _ in requests)
        start = time.perf_counter()
        for client in clients:
            self._next(client, waiting)
        done = 0
        while done < wanted:
            for key, _ in self._selector.select():
                connection: Connection = key.data
                data = received(connection.socket)
                if connection.watches:
                    connection.events += data.count(b'{"type":"')
                    continue
                connection.buffer += data
                if _is_complete(connection.buffer):
                    done += 1
                    self.latencies.append(time.perf_counter() - connection.begun)
                    self._next(connection, waiting)
        seconds = time.perf_counter() - start
        self._drain()
        return seconds

    def _next(self, client: Connection, waiting: Iterator[bytes]) -> None:
        request = next(waiting, None)
        client.buffer.clear()
        if request is not None:
            client.begun = time.perf_counter()
            client.socket.sendall(request)

    def _drain(self) -> None:
        """Read the remaining events of watchers, and close all connections."""
        while ready := self._selector.select(0.3):
            for key, _ in ready:
                data = received(key.data.socket)
                key.data.events += data.count(b'{"type":"')
                if not data:
                    self._selector.unregister(key.data.socket)
        for key in list(self._selector.get_map().values()):
            key.data.socket.close()
        self._selector.close()


def _is_complete(buffer: bytearray) -> bool:
    """Return whether a response is complete; any status except 201 fails the benchmark."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return False
    assert buffer.startswith(b"HTTP/1.1 201"), bytes(buffer[:300])
    head = buffer[:end].lower()
    if b"transfer-encoding: chunked" in head:
        return buffer.endswith(b"0\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head)
    return found is not None and len(buffer) >= end + 4 + int(found[1])


def against_kube_apiserver(port: int, token: str, count: int) -> None:
    """Send the same load to a kube-apiserver, and print the results."""
    filtered = [f"labelSelector=group%3D{i}" for i in range(FILTERED_WATCHERS)]
    number = 0
    for title, watchers in (
        ("creates, pods of one template", []),
        ("creates, 50 watchers of one pod in fifty", filtered),
        ("creates, 10 watchers of all", [""] * FULL_WATCHERS),
    ):
        load = Load(port, watchers, token=token)
        seconds = load.run([create_request(number + i, alike=True, token=token) for i in range(count)])
        number += count
        print(
            f"{title}: {count / seconds:,.0f}/s, p50 {load.percentile(0.5):.1f} ms, p99 {load.percentile(0.99):.1f} ms"
        )


if __name__ == "__main__":
    with own_core(1):
        against_kube_apiserver(int(sys.argv[1]), sys.argv[2], PODS["small"] * 10)
