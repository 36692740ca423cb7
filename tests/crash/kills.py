"""Kill a durable server with SIGKILL at random moments under load, restart it, and check that no write is missing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.crash.watcher import Watcher
from tests.crash.writer import NAMESPACE, Document, Writer, number_of

CONNECTIONS = 16
KINDS = ("configmaps", "pods")
_MAX_ROUND = 0.8
_KILLED_AT_START = 0.1


@dataclass(slots=True)
class Figures:
    """The statistics of a run.

    Attributes:
        kills: The number of kills.
        early: The number of kills before the server answered.
        acknowledged: The number of acknowledged writes over all rounds.
        undone: The number of writes under way at a kill that were not stored.
        done: The number of writes under way at a kill that were stored.
        events: The number of events that watches received.
        restarts: The seconds from each restart to the first answer, by the clock.
        computed: The CPU seconds of the process in these restarts, which do not depend on the machine's other load.
        stored: The number of objects in the store at the end.
    """

    kills: int = 0
    early: int = 0
    acknowledged: int = 0
    done: int = 0
    undone: int = 0
    events: int = 0
    stored: int = 0
    restarts: list[float] = field(default_factory=list)
    computed: list[float] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the statistics as lines of text."""
        clock, computed = sorted(self.restarts), sorted(self.computed)
        middle = len(clock) // 2
        return [
            f"{self.kills} kills, {self.early} of them while the server started",
            f"{self.acknowledged:,} acknowledged writes, none lost; no half object; nothing seen by a watch was undone",
            f"{self.done} writes under way had been done, {self.undone} had not",
            f"{self.events:,} watch events",
            f"{self.stored:,} objects of the writers in the end",
            f"restart: median {clock[middle]:.2f} s, most {clock[-1]:.2f} s by the clock; "
            f"median {computed[middle]:.2f} s, most {computed[-1]:.2f} s computed",
        ]


class Server:
    """A process of ``bayplan up --store``."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        command = [sys.executable, "-m", "bayplan", "up", *arguments, "--store", str(folder / "store"), "--port", "0"]
        command += ["--write-kubeconfig", str(folder / "kubeconfig")]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.begun = time.perf_counter()
        self._log = (folder / "server.log").open("ab")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, env=environment)

    def wait(self) -> tuple[int, float, float]:
        """Wait until the server answers; return its port, the seconds it took, and the CPU seconds it used in them."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(rb"http://127\.0\.0\.1:(\d+)", line)
            if found is not None:
                port = int(found[1])
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30) as answer:
                    assert answer.read() == b"ok"
                return port, time.perf_counter() - self.begun, self._computed()
        raise AssertionError(f"the server has ended: {Path(self._log.name).read_text()[-3000:]}")

    def _computed(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """Kill the process with SIGKILL, for which it cannot prepare."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Close the process' output and its log."""
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


class Run:
    """A run that kills a server with one store many times.

    Args:
        folder: The folder for the store and the log.
        seed: The seed of all random choices.
        objects: Manifests of objects that the store has from the start.
        tell: Called with lines that report progress.
    """

    def __init__(self, folder: Path, seed: int, objects: list[str], tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._objects = objects
        self._tell = tell
        self._random = Random(seed)
        numbers = [0]
        self._writers = [Writer(index, Random(f"{seed}/{index}"), numbers) for index in range(CONNECTIONS)]
        self._watchers = [Watcher(kind) for kind in KINDS]
        self._revision = 0
        self.figures = Figures()

    def kill_often(self, kills: int) -> Figures:
        """Kill the server, restart it and compare its store, `kills` times.

        Raises:
            AssertionError: A write is lost or partial, or something that a watch has shown was undone.
        """
        arguments = self._objects
        while self.figures.kills < kills:
            server = Server(self._folder, arguments)
            if not arguments and self._random.random() < _KILLED_AT_START:
                time.sleep(self._random.random())
                server.kill()
                self.figures.early += 1
            else:
                self._compare(port := self._begun(server, restarted=not arguments))
                asyncio.run(self._load(server, port))
            arguments = []
            self.figures.kills += 1
            if self.figures.kills % 20 == 0:
                self._tell(f"{self.figures.kills} kills, {self._acknowledged():,} acknowledged writes")
        server = Server(self._folder, [])
        self._compare(self._begun(server, restarted=True))
        server.process.terminate()
        server.process.wait()
        server.close()
        self.figures.acknowledged = self._acknowledged()
        self.figures.events = sum(watcher.events for watcher in self._watchers)
        return self.figures

    def _begun(self, server: Server, *, restarted: bool) -> int:
        """Wait until a server answers, record how long that took, and return its port."""
        port, seconds, computed = server.wait()
        if restarted:
            self.figures.restarts.append(seconds)
            self.figures.computed.append(computed)
        return port

    def _acknowledged(self) -> int:
        return sum(writer.acknowledged for writer in self._writers)

    async def _load(self, server: Server, port: int) -> None:
        """Write and watch until a random moment, at which the server is killed."""
        watching = [asyncio.create_task(each.watch(port, self._revision)) for each in self._watchers]
        writing = [asyncio.create_task(each.write(port)) for each in self._writers]
        done, _ = await asyncio.wait(writing, timeout=self._random.uniform(0.0, _MAX_ROUND))
        server.kill()
        await asyncio.gather(*writing, *watching)
        assert not done, "a connection was closed before the kill"

    def _compare(self, port: int) -> None:
        """Compare the store with acknowledged writes and watched events; start the next round from the store."""
        stored = 0
        for kind in KINDS:
            found, revision = _list(port, kind)
            stored += len(found)
            self._revision = revision
            revisions = {name: int(str(_metadata(each)["resourceVersion"])) for name, each in found.items()}
            next(each for each in self._watchers if each.kind == kind).check(revisions, revision)
            for writer in self._writers:
                if writer.kind == kind:
                    assert writer.revision <= revision, f"revision {writer.revision} was acknowledged, not {revision}"
                    self._settle(writer, {n: number_of(kind, each) for n, each in found.items() if writer.owns(n)})
        self.figures.stored = stored

    def _settle(self, writer: Writer, found: dict[str, int]) -> None:
        for pending in writer.pending:
            was_done = found.get(pending.name) == pending.number
            self.figures.done += was_done
            self.figures.undone += not was_done
        writer.reconcile(found)


def _metadata(found: Document) -> Document:
    metadata = found["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def _list(port: int, kind: str) -> tuple[dict[str, Document], int]:
    url = f"http://127.0.0.1:{port}/api/v1/namespaces/{NAMESPACE}/{kind}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        listed = json.load(answer)
    return {each["metadata"]["name"]: each for each in listed["items"]}, int(listed["metadata"]["resourceVersion"])
