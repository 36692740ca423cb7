"""The command ``extender``, end to end: a process serves a plugin to Bayplan's client and to a simulation."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bayplan.cli.main import main
from bayplan.library import Cluster
from bayplan.testing import make_node, make_pod

PLUGIN = """
from bayplan import PerNodePlugin


class Picky(PerNodePlugin):
    def filter_node(self, pod, node):
        return "node(s) were a" if node.name == "a" else None

    def score_node(self, pod, node):
        return 100 if node.name == "c" else 0
"""


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[list[str]]:
    """Run the command on a free port; yield the lines of configuration that it prints."""
    (tmp_path / "picky.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "bayplan", "extender", "--plugin", f"{tmp_path}/picky.py:Picky", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            if "nodeCacheCapable" in line:
                break
        yield printed
        process.terminate()
        printed += process.stdout.readlines()


def test_a_scheduler_uses_the_served_plugin_as_an_extender(lines: list[str]) -> None:
    assert lines[0] == "serving Picky; in a KubeSchedulerConfiguration:\n"
    declared = yaml.safe_load("".join(lines[1:]))
    assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+", declared["extenders"][0]["urlPrefix"])
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    nodes = [make_node(name).capacity(cpu="4", memory="8Gi").obj() for name in ("a", "b", "c")]
    cluster = Cluster(nodes, configuration={**header, **declared})
    (decision,) = cluster.schedule(make_pod("p").req(cpu="1").obj())
    cluster._setup.connections.close()
    assert decision.record.node == "c"
    refused = decision.first_failure(0)
    assert refused is not None
    assert refused.reasons == ("node(s) were a",)
    assert decision.scorers[-1] == declared["extenders"][0]["urlPrefix"]
    assert decision.raw[-1].tolist() == [0, 0, 10]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param([], "--plugin: expected at least one plugin to serve, got none", id="nothing to serve"),
        pytest.param(
            ["--plugin", "NodeName", "--port", "70000"],
            "--port: expected a port from 0 to 65535, got 70000",
            id="no port",
        ),
        pytest.param(["--plugin", "NoSuch"], "got an unknown name", id="no such plugin"),
    ],
)
def test_invalid_extender_options_are_refused(
    arguments: list[str], want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["extender", *arguments]) == 2
    assert want in capsys.readouterr().err


def test_a_port_in_use_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["extender", "--plugin", "NodeName", "--port", str(taken.getsockname()[1])]) == 2
    assert "expected an available address and port, got 127.0.0.1 port" in capsys.readouterr().err
