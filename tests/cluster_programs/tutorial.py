"""Run the commands of docs/tutorial.md, compare their output with the document, and update the document.

``python -m tests.cluster_programs.tutorial`` writes their output into the document (BAYPLAN_CLUSTER_PROGRAMS says where
kubectl is).
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "tutorial.md"
FOLDER = "BAYPLAN_CLUSTER_PROGRAMS"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARIES = (
    (re.compile(r"web-[a-z0-9]{6,10}-[a-z0-9]{5}"), "web-pod"),
    (re.compile(r"\b(\d+[smh])+\b"), "AGE"),
    (re.compile(r"(east|west)-\d(?= +<none> +<none>$)"), "NODE"),
    (re.compile(r"\b10\.128\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"[ \t]+"), " "),
)


def steps(block: str) -> list[tuple[str, str]]:
    """Return pairs of a command of the block and its output."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def blocks() -> list[str]:
    """Return the blocks of the document that show commands and their output."""
    return _BLOCK.findall(DOCUMENT.read_text())


def comparable(text: str) -> list[str]:
    """Return the lines without parts that vary between runs: names, ages, nodes, addresses, rollout progress."""
    lines = [line for line in text.splitlines() if not line.startswith("Waiting for deployment")]
    for pattern, replacement in _VARIES:
        lines = [pattern.sub(replacement, line) for line in lines]
    return [line.strip() for line in lines]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """Run the tutorial's cluster for the length of a ``with`` block; its kubeconfig is in `folder`."""
    command = [sys.executable, "-m", "bayplan", "up", "examples/tutorial/nodes.yaml", "--port", "0"]
    command += ["--write-kubeconfig", str(folder / "kubeconfig")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("try: kubectl"):
                    break
            yield
        finally:
            process.terminate()


def runner(folder: Path) -> Callable[[str], str]:
    """Return a function that runs a command against the tutorial's cluster and returns the command's whole output."""
    programs = str(Path(os.environ[FOLDER]).absolute())
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder)}
    environment["KUBECONFIG"] = str(folder / "kubeconfig")

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return "\n".join(line.rstrip() for line in done.stdout.splitlines())

    return run


def main() -> None:
    """Update the outputs of the commands in the document."""
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)):
        run = runner(Path(name))

        def again(found: re.Match[str]) -> str:
            printed = [f"$ {command}\n{run(command)}".rstrip() for command, _ in steps(found[1])]
            return "```console\n" + "\n".join(printed) + "\n```"

        DOCUMENT.write_text(_BLOCK.sub(again, DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
