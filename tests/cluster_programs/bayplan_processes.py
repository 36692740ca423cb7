"""Run commands of Bayplan in other processes, so that tests can kill them."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.apiserver.serving import Document, wait_until

PATIENCE_SECONDS = 60.0


class BayplanUp:
    """A process of ``bayplan up`` with a durable store, which tests can kill and restart.

    Args:
        folder: The folder for the store, the kubeconfig and the log. It is created if it does not exist.
        options: More options of the command.

    Attributes:
        kubeconfig: The path of a kubeconfig for this server.
        url: The URL of this server.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.kubeconfig = folder / "bayplan.kubeconfig"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, or restart it with the store that it had, and wait until it answers."""
        self._process = start_bayplan(
            self.folder / "up.log",
            *("up", "--port", str(self._port), "--store", str(self.folder / "store.db")),
            *("--write-kubeconfig", str(self.kubeconfig), *self._options),
        )
        wait_until(self._answers, PATIENCE_SECONDS)

    def kill(self) -> None:
        """Kill the server with SIGKILL, as abruptly as a power failure."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "up.log").read_text()
        try:
            self.ask("GET", "/readyz")
        except OSError:
            return False
        return True

    def ask(self, method: str, path: str, document: Document | None = None) -> Document:
        """Send a request; see `answer_to`."""
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"}, method=method)
        return answer_to(request)

    def items(self, path: str) -> list[Document]:
        """Return the items of a list."""
        found: list[Document] = self.ask("GET", path)["items"]
        return found


def answer_to(request: urllib.request.Request, context: ssl.SSLContext | None = None) -> Document:
    """Send a request; return the document of the answer, or an empty one if the answer is not JSON.

    Raises:
        AssertionError: the server refused the request.
    """
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            data = answer.read()
    except urllib.error.HTTPError as refused:
        text = f"{request.method} {request.full_url}: {refused.code} {refused.read().decode()}"
        raise AssertionError(text) from None
    try:
        found: Document = json.loads(data)
    except ValueError:
        found = {}
    return found


def start_bayplan(log: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a command whose output is appended to a log file."""
    with log.open("ab") as file:
        command = [sys.executable, "-m", "bayplan", *words]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


@contextlib.contextmanager
def bayplan_up(folder: Path, *options: str) -> Iterator[BayplanUp]:
    """Run ``bayplan up`` for the length of a ``with`` block; print its log if the test fails."""
    server = BayplanUp(folder, *options)
    try:
        server.start()
        yield server
    except BaseException:
        print((folder / "up.log").read_text(errors="replace")[-3000:])
        raise
    finally:
        server.kill()


@contextlib.contextmanager
def bayplan_verb(log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the ``with`` block ends; print its log if the test fails."""
    process = start_bayplan(log, *words)
    try:
        yield process
    except BaseException:
        print(log.read_text(errors="replace")[-3000:])
        raise
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_SECONDS)
