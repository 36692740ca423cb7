"""The example extender, called over loopback: it filters, scores and fails, and explanations show it like a plugin."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from http.server import HTTPServer
from pathlib import Path

import pytest

from bayplan.cli.main import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "extenders"
NAME = "http://127.0.0.1:8888"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Run the example on a port of its own."""
    spec = importlib.util.spec_from_file_location("hot_nodes", EXAMPLE / "hot_nodes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler = type("Quiet", (module.HotNodes,), {"log_message": lambda *_: None})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def explained(
    pod: str,
    address: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    ignorable: bool = False,
    stored: bool = False,
) -> str:
    """Return the explanation of a pod of the example; the address of the extender reads as in the example."""
    config = (EXAMPLE / "scheduler.yaml").read_text().replace(NAME, address)
    if ignorable:
        config = config.replace("ignorable: false", "ignorable: true")
    (folder / "scheduler.yaml").write_text(config)
    options = ["--config", str(folder / "scheduler.yaml")]
    source = [str(EXAMPLE / "cluster.yaml"), *options]
    if stored:
        assert main(["simulate", *source, "--out", str(folder / "run")]) == 0
        source = [str(folder / "run")]
        capsys.readouterr()
    assert main(["explain", pod, *source]) == 0
    return " ".join(capsys.readouterr().out.replace(address, NAME).split())


@pytest.mark.parametrize("stored", [False, True], ids=["simulated now", "from a result directory"])
@pytest.mark.parametrize(
    ("pod", "ignorable", "want"),
    [
        pytest.param(
            "cool",
            False,
            (
                "default/cool is on cellar: 2 of 4 nodes fit, and it is the best of them",
                f"1 {NAME}: node(s) were too hot: 71 C kitchen",
                f"1 {NAME}: node(s) were melting (preemption can't help) furnace",
                f"Extenders {NAME} rejected 2 of 4 nodes; gave scores",
                f"{NAME} x5 8>80>400 3>30>150",
                f"points ahead of attic: {NAME} +250",
            ),
            id="it filters, and its scores decide",
        ),
        pytest.param(
            "large",
            False,
            (
                "0/4 nodes are available: 1 node(s) were melting, 1 node(s) were too hot: 71 C, 2 Insufficient cpu.",
                f"Extenders {NAME} rejected 2 of 2 nodes",
                "1 No preemption victims found for incoming pod kitchen 3 Preemption is not helpful for scheduling",
            ),
            id="nothing is left: only what is not melting could be preempted on",
        ),
        pytest.param(
            "blind",
            False,
            (
                "default/blind is pending: the temperature sensor is broken",
                "Attempt 1, at 0 s: ended by an error",
                f"{NAME} its filter failed, which ended the attempt: the temperature sensor is broken",
                "FailedScheduling the temperature sensor is broken",
            ),
            id="a failure ends the attempt",
        ),
        pytest.param(
            "blind",
            True,
            (
                "default/blind is on furnace: 4 of 4 nodes fit",
                f"{NAME} its filter failed, which is ignored: the temperature sensor is broken; gave no scores, which is "
                "ignored: json: cannot unmarshal object into Go value of type v1.HostPriorityList",
            ),
            id="a failure is ignored",
        ),
    ],
)
def test_an_extender_is_explained_like_a_plugin(
    pod: str,
    ignorable: bool,
    stored: bool,
    want: tuple[str, ...],
    address: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = explained(pod, address, tmp_path, capsys, ignorable=ignorable, stored=stored)
    assert [line for line in want if line not in text] == []


def test_a_refused_connection_is_reported_with_the_message_of_client_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = explained("cool", "http://127.0.0.1:1", tmp_path, capsys)
    assert f'is pending: Post "{NAME}/filter": dial tcp 127.0.0.1:1: connect: connection refused' in text


def test_explaining_a_node_shows_an_extender_only_if_it_evaluated_the_node(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = (EXAMPLE / "scheduler.yaml").read_text().replace(NAME, address)
    (tmp_path / "scheduler.yaml").write_text(config)
    source = [str(EXAMPLE / "cluster.yaml"), "--config", str(tmp_path / "scheduler.yaml")]
    assert main(["explain", "large", *source, "--node", "kitchen"]) == 0
    assert "too hot: 71 C (Unschedulable)" in capsys.readouterr().out
    assert main(["explain", "large", *source, "--node", "attic"]) == 0
    assert address not in capsys.readouterr().out


def test_the_example_has_at_most_thirty_lines_of_code() -> None:
    lines = (EXAMPLE / "hot_nodes.py").read_text().partition("\nimport json")[2].splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 30
