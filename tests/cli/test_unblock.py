"""The command ``unblock``, end to end."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bayplan.cli.main import COMMANDS, main
from bayplan.examples import example_path

SHAPES = """
apiVersion: v1
kind: Node
metadata: {name: m8.8xlarge, annotations: {bayplan.io/price: "1.5"}}
status: {allocatable: {cpu: "32", memory: 128Gi, pods: "110"}}
"""


def test_unblock_prints_the_verdict_first_and_suggestions_of_several_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unblock", "shop/year-in-memory", str(example_path("three-zones"))]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("shop/year-in-memory is pending: it requests 96Gi memory, ")
    assert "1 add a node in north-a like the m8.xlarge nodes, but with 97Gi memory" in out
    assert "shrink request: shop/year-in-memory goes to memory-" in out
    assert " tried in a copy of the cluster." in out
    assert "Assumptions - kube-scheduler's defaults apply" in out


def test_json_rows_contain_the_objects_to_apply(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unblock", "shop/year-in-memory", str(example_path("three-zones")), "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert [each["rank"] for each in found["suggestions"]] == list(range(1, len(found["suggestions"]) + 1))
    added = next(each for each in found["suggestions"] if each["kind"] == "add node")
    assert added["objects"][0]["kind"] == "Node"
    shrunk = next(each for each in found["suggestions"] if each["kind"] == "shrink request")
    assert [each["kind"] for each in shrunk["objects"]] == ["Pod"]
    assert found["cause"]["everywhere"] == ["NodeResourcesFit"]


def test_node_shapes_from_a_file_are_suggested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shapes.yaml").write_text(SHAPES)
    words = [
        "unblock",
        "shop/year-in-memory",
        str(example_path("three-zones")),
        "--shapes",
        str(tmp_path / "shapes.yaml"),
    ]
    assert main(words) == 0
    assert "add a node like m8.8xlarge (32 cpu, 128Gi memory)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["shop/nobody", "{example}"], "pod: expected the name of one of", id="no such pod"),
        pytest.param(["p"], "source: expected manifests, a dump", id="no source"),
        pytest.param(["p", "{example}", "--context", "prod"], "expected one source", id="two sources"),
        pytest.param(
            ["p", "{example}", "--shapes", "{namespace}"], "--shapes: expected Node manifests", id="no shapes"
        ),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(
    words: list[str], want: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace = tmp_path / "namespace.yaml"
    namespace.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    example = str(example_path("three-zones"))
    assert main(["unblock", *(word.format(example=example, namespace=namespace) for word in words)]) == 2
    printed = capsys.readouterr()
    assert want in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)


def test_help_starts_with_the_command_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unblock", "--help"]) == 0
    summary = next(command.summary for command in COMMANDS if command.name == "unblock")
    assert summary in capsys.readouterr().out


def test_the_state_of_a_finished_pod_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = {"spec": {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Succeeded"}}
    made = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"pods": "9"}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "done", "namespace": "default", "uid": "1"}, **pod},
    ]
    dump = tmp_path / "dump.json"
    dump.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": made}))
    assert main(["unblock", "done", str(dump)]) == 2
    assert "expected a pending pod, got default/done, which has succeeded; try" in capsys.readouterr().err
