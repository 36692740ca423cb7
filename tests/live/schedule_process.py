"""Run `bayplan schedule` in a separate process for tests."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE_SECONDS = 60.0


class ScheduleProcess:
    """A process of `bayplan schedule`.

    Attributes:
        url: The address of its probes and metrics, which it prints when it starts.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def lines(self) -> list[str]:
        """The lines that it has printed so far."""
        return self._log.read_text().splitlines()

    @property
    def url(self) -> str:
        """The address of its probes and metrics."""
        return next(line.rpartition(" ")[2] for line in self.lines if line.startswith("probes and metrics at "))

    def wait_for(self, line: str) -> None:
        """Wait until the process has printed a line that starts with `line`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(each.startswith(line) for each in self.lines):
            assert self.process.poll() is None, "\n".join(self.lines)
            assert time.monotonic() < deadline, "\n".join(self.lines)
            time.sleep(0.05)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal to the process and return its exit code."""
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def bayplan_schedule(kubeconfig: Path | str, log: Path, *options: str) -> Iterator[ScheduleProcess]:
    """Run the process for the length of a ``with`` block; show what it printed if the test fails."""
    port = () if "--dry-run" in options else ("--port", "0")
    command = [sys.executable, "-m", "bayplan", "schedule", "--kubeconfig", str(kubeconfig), *port, *options]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT) as process:
        try:
            yield ScheduleProcess(process, log)
        except BaseException:
            print(f"--- {log.name}\n{log.read_text()[-5000:]}")
            raise
        finally:
            process.kill()
