"""``python -m tests.apiserver.fuzz``: the run of ``make test-fuzz-api``, ten thousand generated requests to one server.

Watches are closed after their first chunk. No request may hang, raise in the server, or leak memory or open files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx

from tests.apiserver.client import Client
from tests.apiserver.fuzz.expected import documents_of, problem_with, seeded
from tests.apiserver.fuzz.made_up import MadeUp, Source

_PATIENCE = 15.0
_MAX_GROWTH_MB = 64.0


class Server:
    """A server in another process, with the objects that the generated requests refer to."""

    def __init__(self, folder: Path) -> None:
        manifest = folder / "objects.json"
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": seeded()}))
        command = [sys.executable, "-m", "bayplan", "up", str(manifest), "--port", "0"]
        command += ["--write-kubeconfig", str(folder / "kubeconfig")]
        self.log = folder / "server.log"
        with self.log.open("wb") as log:
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        self.url = ""
        assert self.process.stdout is not None
        while not self.url:
            line = self.process.stdout.readline()
            assert line, self.log.read_text()
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            self.url = found[0] if found else ""

    def measure(self) -> tuple[float, int]:
        """Return the server's resident memory in megabytes and the number of its open files."""
        folder = Path(f"/proc/{self.process.pid}")
        found = re.search(r"VmRSS:\s+(\d+)", (folder / "status").read_text())
        assert found is not None
        return int(found[1]) / 1024, len(list((folder / "fd").iterdir()))


def ask(client: httpx.Client, request: MadeUp) -> tuple[int, str]:
    """Send a request; return the status code and the problem with the answer, or the empty string."""
    url = request.path + (f"?{request.query}" if request.query else "")
    try:
        with client.stream(request.method, url, headers=request.headers, content=request.body) as answer:
            if request.streams:
                for _ in answer.iter_raw():
                    break
                return answer.status_code, ""
            return answer.status_code, problem_with(request, answer.status_code, answer.read())
    except httpx.RequestError as problem:
        return 0, f"{type(problem).__name__} {problem}: {request}"


def main() -> None:
    """Send the requests, print statistics, and raise an AssertionError if there was any problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    source = Source(documents_of(Client()), options.seed)
    codes: Counter[int] = Counter()
    problems: list[str] = []
    slowest, sizes, step = 0.0, [], max(1, options.requests // 10)
    with tempfile.TemporaryDirectory() as name:
        server = Server(Path(name))
        with server.process, httpx.Client(base_url=server.url, timeout=_PATIENCE) as client:
            for number, request in enumerate(source.requests(options.requests, most_each=10)):
                if number % step == 0:
                    sizes.append(server.measure())
                    print(f"{number:,} requests, {sizes[-1][0]:.0f} MB, {sizes[-1][1]} files", flush=True)
                begun = time.perf_counter()
                code, problem = ask(client, request)
                if not request.streams:
                    slowest = max(slowest, time.perf_counter() - begun)
                codes[code] += 1
                if problem:
                    problems.append(problem)
                    print(problem, flush=True)
            sizes.append(server.measure())
            assert client.get("/readyz").text == "ok"
            server.process.terminate()
        log = server.log.read_text()
    print(f"answers by code: {dict(sorted(codes.items()))}; slowest {slowest:.2f} s")
    # Caches with a time limit (history, specs) still fill up in the first half, so only growth in the second half
    # counts.
    growth = sizes[-1][0] - sizes[len(sizes) // 2][0]
    print(
        f"memory {sizes[0][0]:.0f} MB, after half {sizes[len(sizes) // 2][0]:.0f} MB, in the end {sizes[-1][0]:.0f} MB"
    )
    print(f"open files {sizes[0][1]}, in the end {sizes[-1][1]}")
    assert not problems, f"{len(problems)} answers were wrong"
    assert "Traceback" not in log, log[-5000:]
    assert growth < _MAX_GROWTH_MB, f"{growth:.0f} MB more"
    assert sizes[-1][1] <= sizes[0][1] + 20, "files stay open"


if __name__ == "__main__":
    main()
