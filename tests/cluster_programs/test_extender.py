"""An HTTP extender serves upstream's kube-scheduler and Bayplan's scheduler with the same outcome."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from bayplan import RecordLevel, SimulationOptions, simulate
from tests.apiserver.serving import Document, serving, wait_until
from tests.cluster_programs.programs import kube_scheduler, kubeconfig
from tests.cluster_programs.test_kube_scheduler import condition, node, pod, pods

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# The numbers of pods on the nodes; pods on nodes called front-* have the label of the shop.
QUIET = {"front-a": 1, "front-b": 4, "back-a": 6, "back-b": 2}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@contextlib.contextmanager
def extender(*command: str) -> Iterator[str]:
    """Run an extender in a separate process, with ``PORT`` in its command replaced; yield its address."""
    port = free_port()
    arguments = [sys.executable, *(each.replace("PORT", str(port)) for each in command)]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT) as process:
        try:
            wait_until(lambda: answers(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def config_of(extenders: list[Document], kubeconfig_path: str = "") -> Document:
    document: Document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": extenders,
    }
    if kubeconfig_path:
        document |= {"leaderElection": {"leaderElect": False}, "clientConnection": {"kubeconfig": kubeconfig_path}}
    return document


def is_decided(found: Document) -> bool:
    return "nodeName" in found["spec"] or bool(condition(found, "PodScheduled"))


def outcome_of_the_stock_one(documents: list[Document], extenders: list[Document], folder: Path) -> dict[str, str]:
    """Return the node of each pod, or why it has none."""
    with serving(documents) as server:
        path = folder / "stock.yaml"
        path.write_text(yaml.safe_dump(config_of(extenders, kubeconfig(server, folder))))
        with kube_scheduler(server, folder, f"--config={path}"):
            wait_until(lambda: all(is_decided(each) for each in pods(server)))
        return {
            each["metadata"]["name"]: each["spec"].get("nodeName") or condition(each, "PodScheduled")["message"]
            for each in pods(server)
        }


def outcome_of_ours(documents: list[Document], extenders: list[Document], folder: Path) -> dict[str, str]:
    """Return the node of each pod, or why it has none."""
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all(documents))
    (folder / "ours.yaml").write_text(yaml.safe_dump(config_of(extenders)))
    options = SimulationOptions(
        paths=[str(folder / "cluster.yaml")],
        config=folder / "ours.yaml",
        record_level=RecordLevel.SUMMARY,
        until_ns=5 * 10**9,
    )
    result = simulate(options)
    return {found.key.partition("/")[2]: found.node or found.message for found in result.pods}


def hot_nodes(folder: Path) -> tuple[list[Document], list[str], Document]:
    """The example with temperatures: it filters, scores, and fails for one pod."""
    read = [each for each in yaml.safe_load_all((EXAMPLES / "extenders" / "cluster.yaml").read_text()) if each]
    documents = [inner for each in read for inner in (each["items"] if each["kind"] == "List" else [each])]
    config = yaml.safe_load((EXAMPLES / "extenders" / "scheduler.yaml").read_text())
    return documents, [str(EXAMPLES / "extenders" / "hot_nodes.py"), "PORT"], config["extenders"][0]


def quiet_nodes(folder: Path) -> tuple[list[Document], list[str], Document]:
    """Bayplan's example plugin behind ``bayplan extender``: it gets whole nodes, and reads the running pods from a file."""
    documents: list[Document] = [node(name, "8", "32Gi") for name in QUIET]
    for name, count in QUIET.items():
        for number in range(count):
            running = pod(f"{name}-{number}", "10m", "16Mi", nodeName=name)
            running["metadata"]["labels"] = {"tier": name.partition("-")[0]}
            running["status"] = {"phase": "Running"}
            documents.append(running)
    (folder / "running.yaml").write_text(yaml.safe_dump_all(documents))
    for name, app, size in (("render", "render", "1"), ("shop", "shop", "1"), ("large", "render", "20")):
        wanted = pod(name, size)
        wanted["metadata"]["labels"] = {"app": app}
        documents.append(wanted)
    plugin = "examples/plugins/quiet_nodes.py:QuietNodes"
    command = ["-m", "bayplan", "extender", str(folder / "running.yaml"), "--plugin", plugin, "--port", "PORT"]
    asked: Document = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 100, "nodeCacheCapable": False}
    return documents, command, asked


@pytest.mark.parametrize(
    ("situation", "want"),
    [
        pytest.param(
            hot_nodes,
            {
                "cool": "cellar",
                "large": "0/4 nodes are available: 1 node(s) were melting, 1 node(s) were too hot: 71 C, 2 Insufficient cpu.",
                "blind": "the temperature sensor is broken",
            },
            id="an example of thirty lines",
        ),
        pytest.param(
            quiet_nodes,
            {
                "render": "back-b",
                "shop": "front-a",
                "large": "0/4 nodes are available: 4 Insufficient cpu.",
            },
            id="a plugin of Bayplan",
        ),
    ],
)
def test_stock_and_built_in_schedulers_get_the_same_outcome_with_an_extender(
    situation: Callable[[Path], tuple[list[Document], list[str], Document]], want: dict[str, str], tmp_path: Path
) -> None:
    documents, command, asked = situation(tmp_path)
    with extender(*command) as address:
        extenders = [{**asked, "urlPrefix": address}]
        ours = outcome_of_ours(documents, extenders, tmp_path)
        stock = outcome_of_the_stock_one(documents, extenders, tmp_path)
    assert stock == ours
    # The message of preemption follows after the first sentence, so only the beginnings are compared.
    assert {name: ours[name][: len(text)] for name, text in want.items()} == want
