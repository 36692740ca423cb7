"""Print what a write runs through: files and functions of the package, in the order of their first call after the request.

The write is ``kubectl create deployment web`` on a server with one node that is quiet otherwise; the end is the pod's start.
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
"""Without a call of something new, so that the node has been dealt with, and only timers tick."""
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
    """Functions by their first call.

    Attributes:
        calls: files and functions. last: when the newest was called first.
        awaits_request: whether the next request begins the list anew.
    """

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], None] = {}
        self.last = time.monotonic()
        self.awaits_request = False

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; see `sys.setprofile`."""
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
    """Create a Deployment when the server has nothing else to do, and wait until its pod runs."""
    with httpx.Client(base_url=address) as client:
        client.post("/api/v1/nodes", json=NODE)
        _until(lambda: time.monotonic() - trace.last > QUIET_S)
        trace.awaits_request = True
        client.post("/apis/apps/v1/namespaces/default/deployments", json=DEPLOYMENT).raise_for_status()
        pods = "/api/v1/namespaces/default/pods"
        _until(lambda: [each["status"]["phase"] for each in client.get(pods).json()["items"]] == ["Running"])


def main() -> None:
    """Run the server, and print the calls."""
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
