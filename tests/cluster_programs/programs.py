"""Find and run the upstream programs that are tested against Bayplan's API.

`make test-cluster` and `make other-controllers` build them, which needs Go; `make test-cluster` sets their folder.
Otherwise, the tests that need them are skipped.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.apiserver.http.kubeconfig import write_kubeconfig
from bayplan.apiserver.http.server import ApiServer
from tests.missing import missing

FOLDER = "BAYPLAN_CLUSTER_PROGRAMS"
OTHER_CONTROLLERS = ("descheduler", "jobset", "kwok")


def program(name: str) -> str:
    """Return the path of a program; skip the calling test unless `make test-cluster` runs it.

    A program that has not been built is missing (`tests.missing`).
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        pytest.skip(f"needs {name}, which make test-cluster builds (needs Go)")
    path = Path(folder).absolute() / name
    if not path.exists():
        target = "other-controllers" if name.startswith(OTHER_CONTROLLERS) else "test-cluster"
        missing(f"needs {path}, which make {target} builds (needs Go)")
    return str(path)


def kubeconfig(server: ApiServer, folder: Path) -> str:
    """Write a kubeconfig for a server and return its path."""
    path = folder / "kubeconfig"
    write_kubeconfig(path, server.kubeconfig())
    return str(path)


@contextlib.contextmanager
def kube_scheduler(server: ApiServer, folder: Path, *options: str) -> Iterator[None]:
    """Run the upstream kube-scheduler with its default configuration and `options`; print its log if the test fails."""
    command = [program("kube-scheduler"), "--secure-port=0", "-v=1", *options]
    if not any(each.startswith("--config") for each in options):
        command += ["--kubeconfig", kubeconfig(server, folder)]
    with running(folder / "kube-scheduler.log", *command):
        yield


@contextlib.contextmanager
def running(log: Path, *command: str) -> Iterator[None]:
    """Run a program; print its log if the test fails."""
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield
            assert process.poll() is None, f"{command[0]} has ended"
        except BaseException:
            print(log.read_text()[-5000:])
            raise
        finally:
            process.terminate()
            process.wait(30)
