"""Print the files and functions of the package that a write runs through, in the order of their first call.

The write is ``kubectl create deployment web`` on an otherwise idle server with one node; the trace ends when the pod
has started.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import httpx

import bayplan
from bayplan.apiserver.http.server import ServerOptions
from bayplan.app.api_service import make_service
from bayplan.app.simulator_server import SimulatorOptions

PACKAGE = Path(bayplan.__file__).parent
PATIENCE_S = 60.0
REQUEST = ("apiserver/http/protocol.py", "on_headers_complete")
QUIET_S = 1.0
"""Seconds without a first call of any function, after which the server is considered idle."""
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
LABELS = {"app": "web"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}},
    },
}


class Trace:
    """The functions that were called, in the order of their first call.

    Attributes:
        calls: Pairs of file and function.
        last: The time of the latest first call.
        awaits_request: Whether the next request clears the list.
    """

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], None] = {}
        self.last = time.monotonic()
        self.awaits_request = False

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Record a call; a callback for `sys.setprofile`."""
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                call = path.relative_to(PACKAGE).as_posix(), frame.f_code.co_name
                if self.awaits_request and call == REQUEST:
                    self.awaits_request = False
                    self.calls.clear()
                if call not in self.calls:
                    self.calls[call] = None
                    self.last = time.monotonic()


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


def _use(address: str, trace: Trace) -> None:
    """Create a Deployment when the server is idle, and wait until its pod runs."""
    with httpx.Client(base_url=address) as client:
        client.post("/api/v1/nodes", json=NODE)
        _until(lambda: time.monotonic() - trace.last > QUIET_S)
        trace.awaits_request = True
        client.post("/apis/apps/v1/namespaces/default/deployments", json=DEPLOYMENT).raise_for_status()
        pods = "/api/v1/namespaces/default/pods"
        _until(lambda: [each["status"]["phase"] for each in client.get(pods).json()["items"]] == ["Running"])


def main() -> None:
    """Run the server and print the trace."""
    trace = Trace()
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    service = make_service(ServerOptions(port=0), SimulatorOptions(), [])
    problems: list[BaseException] = []

    def work() -> None:
        try:
            _use(service.server.url, trace)
        except BaseException as problem:
            problems.append(problem)
        finally:
            service.server.stop()

    using = threading.Thread(target=work)
    service.run(on_ready=using.start)
    using.join()
    if problems:
        raise problems[0]
    print("\n".join(f"{path} {name}" for path, name in trace.calls))


if __name__ == "__main__":
    main()
