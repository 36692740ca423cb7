"""Run a durable cluster under a steady load for an hour, and draw its memory, latency and store size over time.

    python -m benchmarks.soak --minutes 60 --rate 500 --out soak.jsonl     run, and write a sample every 15 seconds
    python -m benchmarks.soak --minutes 12 -- --event-ttl 2m               the same in less time, as events expire early
    python -m benchmarks.soak --draw soak.jsonl                            draw docs/images/soak.svg

The server runs with controllers, kubelet, scheduler and a store. Clients send patches, replace pods and scale
Deployments, so that the number of objects stays the same; watchers read all changes of pods and config maps. The rate
counts all changes, including those of controllers: clients adjust their requests until it is reached. Latency is that
of the clients' requests.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

IMAGE = Path(__file__).resolve().parents[1] / "docs" / "images" / "soak.svg"
NODES, DEPLOYMENTS, REPLICAS, CONFIG_MAPS, BARE_PODS = 20, 10, 20, 200, 200
WATCHERS, CLIENTS = 6, 8
REPLACED_IN = 4
"""One in this many rounds replaces a pod, because the scheduler and the kubelet write several times for each."""
SAMPLE_S = 15.0
_NAMESPACE = "/api/v1/namespaces/default"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_MERGE = "application/merge-patch+json"

Sample = Mapping[str, float]


class Client:
    """A persistent connection of one client."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._latencies: list[float] = []

    def send(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> int:
        """Send a request and return the status of the response."""
        data = None if body is None else json.dumps(body)
        start = time.perf_counter()
        self._connection.request(method, path, data, {"Content-Type": content_type})
        answer = self._connection.getresponse()
        answer.read()
        self._latencies.append(time.perf_counter() - start)
        return answer.status

    def taken(self) -> list[float]:
        """Return the seconds of each request since the last call."""
        found, self._latencies = self._latencies, []
        return found

    def revision(self) -> int:
        """Return the latest revision of the cluster."""
        self._connection.request("GET", "/api/v1/namespaces?limit=1")
        return int(json.loads(self._connection.getresponse().read())["metadata"]["resourceVersion"])


class Watcher(threading.Thread):
    """A thread that reads a watch and counts its events."""

    def __init__(self, port: int, path: str) -> None:
        super().__init__(daemon=True)
        self._port, self._path = port, path
        self.events = 0

    def run(self) -> None:
        """Read the watch, again after it ends, until the server is gone."""
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self._port)
                connection.request("GET", f"{self._path}?watch=1")
                answer = connection.getresponse()
                while piece := answer.read1(1 << 18):
                    self.events += piece.count(b'{"type":"')
            except (OSError, http.client.HTTPException):
                return


def pod(name: str, number: int) -> dict[str, object]:
    """Return a pod with a number as its label, and small requests."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bare", "number": str(number)}},
        "spec": {"containers": [container]},
    }


def set_up(client: Client) -> None:
    """Create the objects that the load changes."""
    for number in range(NODES):
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        node = {"metadata": {"name": f"node-{number}"}, "status": {"capacity": amounts, "allocatable": amounts}}
        client.send("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node})
    for number in range(CONFIG_MAPS):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"config-{number}"}, "data": {"a": "0"}}
        client.send("POST", f"{_NAMESPACE}/configmaps", body)
    for number in range(DEPLOYMENTS):
        labels = {"app": f"web-{number}"}
        template = {"metadata": {"labels": labels}, "spec": pod("x", 0)["spec"]}
        spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"web-{number}"}, "spec": spec}
        client.send("POST", _DEPLOYMENTS, body)
    for number in range(BARE_PODS):
        client.send("POST", f"{_NAMESPACE}/pods", pod(f"bare-{number}", number))


def changes(seed: int) -> Iterator[tuple[str, str, object, str]]:
    """Yield one client's requests: patches, replacements of its pods, and sometimes scaling of a Deployment."""
    choose = random.Random(seed)
    own = range(seed % CLIENTS, BARE_PODS, CLIENTS)
    for number in range(1 << 60):
        for _ in range(4):
            path = f"{_NAMESPACE}/configmaps/config-{choose.randrange(CONFIG_MAPS)}"
            yield "PATCH", path, {"data": {"a": f"{seed}-{number}"}}, _MERGE
            path = f"{_NAMESPACE}/pods/bare-{choose.choice(own)}"
            yield "PATCH", path, {"metadata": {"annotations": {"round": f"{seed}-{number}"}}}, _MERGE
        if number % REPLACED_IN == 0:
            replaced = choose.choice(own)
            path = f"{_NAMESPACE}/pods/bare-{replaced}?gracePeriodSeconds=0"
            yield "DELETE", path, None, "application/json"
            yield "POST", f"{_NAMESPACE}/pods", pod(f"bare-{replaced}", replaced), "application/json"
        if number % 40 == 0:
            replicas = REPLICAS + choose.randrange(-2, 3)
            path = f"{_DEPLOYMENTS}/web-{choose.randrange(DEPLOYMENTS)}"
            yield "PATCH", path, {"spec": {"replicas": replicas}}, _MERGE


class Pace:
    """The request rate of all clients.

    Attributes:
        pause_s: the pause of each client after each request.
        failed: the number of requests that the server should not have refused.
        stopped: whether clients must end.
    """

    def __init__(self) -> None:
        self.pause_s = 0.02
        self.failed = 0
        self.stopped = False


class Sender(threading.Thread):
    """A thread that sends the requests of one client."""

    def __init__(self, client: Client, pace: Pace, seed: int) -> None:
        super().__init__(daemon=True)
        self.client = client
        self._pace, self._requests = pace, changes(seed)

    def run(self) -> None:
        """Send requests until the run ends."""
        for request in self._requests:
            if self._pace.stopped:
                return
            status = self.client.send(*request)
            self._pace.failed += status >= 300 and status not in (404, 409)
            time.sleep(self._pace.pause_s)


def start_server(folder: Path, more: Sequence[str]) -> tuple[subprocess.Popen[str], int]:
    """Start a durable server with additional options, and return it with its port."""
    command = [sys.executable, "-m", "bayplan", "up", "--port", "0", "--store", str(folder / "store.db")]
    command += ["--write-kubeconfig", str(folder / "config"), *more]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found:
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return process, int(found[1])
    raise RuntimeError("the server has ended before it was ready")


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def processor_s(pid: int) -> float:
    """Return the CPU time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(minutes: float, rate: float, out: Path, more: Sequence[str] = (), *, seed: int = 1) -> None:
    """Run the load on a server with additional options, and write samples to a file."""
    with tempfile.TemporaryDirectory() as name, out.open("w") as file:
        folder = Path(name)
        process, port = start_server(folder, more)
        pace = Pace()
        try:
            set_up(Client(port))
            paths = ("/api/v1/pods", "/api/v1/configmaps")
            watchers = [Watcher(port, paths[number % 2]) for number in range(WATCHERS)]
            senders = [Sender(Client(port), pace, seed * CLIENTS + number) for number in range(CLIENTS)]
            for thread in (*watchers, *senders):
                thread.start()
            reader = Reader(Client(port), process.pid, folder, watchers, senders)
            start = time.perf_counter()
            while time.perf_counter() - start < minutes * 60:
                time.sleep(SAMPLE_S)
                sample = reader.sample()
                sample |= {"minute": round((time.perf_counter() - start) / 60, 3), "failed": pace.failed}
                print(json.dumps(sample), file=file, flush=True)
                # Adjust the pause towards the rate in steps: it is only part of the duration of a request.
                pace.pause_s = min(0.5, max(0.0005, pace.pause_s * min(2.0, max(0.5, sample["changes_per_s"] / rate))))
        finally:
            pace.stopped = True
            process.send_signal(signal.SIGTERM)
            process.wait()


class Reader:
    """Takes samples of a run."""

    def __init__(
        self, client: Client, pid: int, folder: Path, watchers: Sequence[Watcher], senders: Sequence[Sender]
    ) -> None:
        self._client, self._pid, self._folder = client, pid, folder
        self._watchers, self._senders = watchers, senders
        self._before = self._counts()

    def _counts(self) -> tuple[float, int, int, float]:
        events = sum(watcher.events for watcher in self._watchers)
        return time.perf_counter(), self._client.revision(), events, processor_s(self._pid)

    def sample(self) -> dict[str, float]:
        """Return the rates since the last sample, latencies and sizes."""
        before, self._before = self._before, self._counts()
        seconds, revisions, events, computed = (after - was for after, was in zip(self._before, before, strict=True))
        latencies = sorted(each for sender in self._senders for each in sender.client.taken()) or [0.0]
        return {
            "changes_per_s": round(revisions / seconds, 1),
            "clients_per_s": round(len(latencies) / seconds, 1),
            "events_per_s": round(events / seconds, 1),
            "p50_ms": round(latencies[len(latencies) // 2] * 1000, 3),
            "p99_ms": round(latencies[int(len(latencies) * 0.99)] * 1000, 3),
            "memory_mb": round(resident_mb(self._pid), 1),
            "store_mb": round(sum(path.stat().st_size for path in self._folder.glob("store.db*")) / 1e6, 2),
            "cpu": round(computed / seconds, 3),
            "load": round(os.getloadavg()[0], 2),
        }


def draw(taken: Sequence[Sample], path: Path) -> None:
    """Draw the samples. The same data gives the same bytes."""
    mpl.rcParams["svg.hashsalt"] = "soak"
    mpl.rcParams["svg.fonttype"] = "none"
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flat
    minutes = [sample["minute"] for sample in taken]
    for panel, title, unit, names in zip(
        panels,
        ("changes", "latency of a change", "memory of the server", "store and its log"),
        ("a second", "ms", "MB", "MB"),
        (("changes_per_s", "clients_per_s"), ("p50_ms", "p99_ms"), ("memory_mb",), ("store_mb",)),
        strict=True,
    ):
        for name in names:
            panel.plot(minutes, [sample[name] for sample in taken], label=name.partition("_")[0], linewidth=1)
        panel.set_title(title, fontsize=10)
        panel.set_ylabel(unit)
        panel.set_ylim(bottom=0)
        panel.grid(visible=True, color="#dddddd")
        if len(names) > 1:
            panel.set_yscale("symlog")
            panel.legend(fontsize=8)
    for panel in figure.axes[2:]:
        panel.set_xlabel("minutes")
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    # The SVG backend writes trailing spaces.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def main() -> None:
    """Run the load, or draw samples."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=500.0, help="changes per second [default: 500]")
    parser.add_argument("--out", type=Path, default=Path("soak.jsonl"))
    parser.add_argument("--draw", type=Path, metavar="FILE", help="draw the samples of a file instead")
    parser.add_argument("server", nargs="*", metavar="-- OPTION", help="options of bayplan up")
    options = parser.parse_args()
    if options.draw is None:
        run(options.minutes, options.rate, options.out, options.server)
    else:
        draw([json.loads(line) for line in options.draw.read_text().splitlines()], IMAGE)


if __name__ == "__main__":
    main()
