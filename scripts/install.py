"""Install packages with pip and show the progress: in one updated line of a terminal, else in a few lines of a log.

    python scripts/install.py [ARGUMENT OF PIP INSTALL]...

pip itself prints every step or nothing: its own progress bars need a terminal, and most versions are silent while they
install.
"""

from __future__ import annotations

import queue
import re
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path

POLL_SECONDS = 0.3
SILENCE_SECONDS = 5.0
"""Time without output after which a log gets a line, even if nothing has changed. It doubles with each such line."""

_COLLECTING = re.compile(r"(?:Collecting|Obtaining|Processing) ([\w.-]+|\S+)")
_DOWNLOADING = re.compile(r"\s*Downloading \S*?([\w.]+)-[^/\s]+ \(([^)]+)\)")
_INSTALLING = "Installing collected packages: "


class Progress:
    """Shows the current step of an installation."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._text = "resolving dependencies"
        self._shown_at = self._began_at = time.monotonic()
        self._silence = SILENCE_SECONDS

    def show(self, text: str, *, logged: bool = True) -> None:
        """Show a step; `logged`: whether to print it in a log, too."""
        self._text = text
        if self._is_terminal:
            print(f"\r\x1b[K  {text[:75]}", end="", file=sys.stderr, flush=True)
        elif logged:
            print(f"  {text}", file=sys.stderr, flush=True)
            self._shown_at = time.monotonic()

    def idle(self) -> None:
        """Show the last step again with the time so far if nothing was printed to a log for long."""
        now = time.monotonic()
        if not self._is_terminal and now - self._shown_at > self._silence:
            self._silence *= 2
            print(f"  {self._text} (after {now - self._began_at:.0f} s)", file=sys.stderr, flush=True)
            self._shown_at = now

    def end(self) -> None:
        """Clear the line of a terminal."""
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Run pip install, show its progress and return its exit code. If pip fails, show its output."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-compile",  # Half of the time. Python compiles a module to bytecode when it is first imported.
        "--progress-bar",
        "off",
        *arguments,
    ]
    progress, printed = Progress(), list[str]()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        total = installed = 0
        before = _installed()
        for line in _lines(pip):
            if line is None:
                # pip is silent while it installs: count the packages that have appeared.
                if total and (now := len(_installed() - before)) > installed:
                    installed = now
                    progress.show(f"installing {installed} of {total} packages", logged=False)
                progress.idle()
                continue
            printed.append(line)
            if line.startswith(_INSTALLING):
                total, before = line.count(",") + 1, _installed()
                progress.show(f"installing {total} packages" if total > 1 else "installing 1 package")
            elif match := _DOWNLOADING.match(line):
                progress.show(f"downloading {match[1]} ({match[2]})")
            elif match := _COLLECTING.match(line):
                progress.show(f"collecting {match[1]}", logged=False)
    progress.end()
    if pip.returncode:
        sys.stderr.writelines(printed)
    return pip.returncode


def _lines(pip: subprocess.Popen[str]) -> Iterator[str | None]:
    """Yield the lines that pip prints, and None after each `POLL_SECONDS` of silence."""
    lines: queue.Queue[str] = queue.Queue()
    assert pip.stdout is not None
    output = pip.stdout

    def read() -> None:
        for line in output:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=POLL_SECONDS)
        except queue.Empty:
            yield None
            continue
        if not line:
            return
        yield line


def _installed() -> set[Path]:
    return set(Path(sysconfig.get_path("purelib")).glob("*.dist-info"))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
