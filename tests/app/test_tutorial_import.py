"""The tutorial on a cluster's waiting pod: each command runs as written, and prints what the tutorial shows.

The commands run with curl if it is installed, and always with a replacement for it (`tests.app.curl`).
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app import curl

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorial-import.md").read_text(encoding="utf-8")
CURLS = ["stand-in", *(["curl"] if shutil.which("curl") else [])]
BLOCK = re.compile(r"```(sh|text)\n(.*?)```", re.DOTALL)


def sections() -> list[tuple[str, list[str]]]:
    """Return each block of commands with the lines that its output must contain."""
    found: list[tuple[str, list[str]]] = []
    for kind, content in BLOCK.findall(PAGE):
        if kind == "sh":
            found.append((content, []))
        else:
            found[-1][1].extend(line for line in content.splitlines() if line)
    return found


def path_with_stand_in(folder: Path) -> str:
    """Return a search path on which ``curl`` is the stand-in."""
    folder.mkdir()
    program = folder / "curl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "tests" / "app" / "curl.py"} "$@"\n')
    program.chmod(0o755)
    return f"{folder}{os.pathsep}"


@pytest.mark.parametrize("program", CURLS)
def test_tutorial_commands_print_the_output_shown_in_the_tutorial(program: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"localhost:{free.getsockname()[1]}"
    first_path = path_with_stand_in(tmp_path / "programs") if program == "stand-in" else ""
    path = f"{first_path}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    (explain, want), (first, _), *rest = sections()
    done = subprocess.run(
        explain, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[: len(want)] == want
    start, _, until_ready = first.partition("\n")
    words = start.replace("&", f"--port {address.rpartition(':')[2]}").split()
    with (tmp_path / "up.log").open("wb") as log:
        server = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        # All commands run in one shell, because later ones use variables that earlier ones set.
        script = (until_ready + "echo '#'\n".join(commands for commands, _ in rest)).replace("localhost:6443", address)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
        )
    finally:
        server.terminate()
        server.wait(30)
    said = (done.stdout, done.stderr, (tmp_path / "up.log").read_text())
    assert done.returncode == 0, said
    outputs = done.stdout.split("#\n")
    assert len(outputs) == len(rest)
    for (commands, wanted), output in zip(rest, outputs, strict=True):
        printed = [line.rstrip() for line in output.splitlines()]
        assert [line for line in wanted if line not in printed] == [], (commands, output)


@pytest.mark.parametrize("arguments", [["-k"], ["--fail", "x"]])
def test_the_curl_stand_in_refuses_unknown_options(arguments: list[str]) -> None:
    with pytest.raises(AssertionError, match="not known here"):
        curl.main([*arguments, "http://localhost"])
