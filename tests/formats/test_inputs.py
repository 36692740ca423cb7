"""Manifests and traces can be given together, and each is recognized."""

import os
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats.inputs import load_inputs

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1024,0,\n"
TASKS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1,1,0,0\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {nodeName: n1}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("nodes.csv", NODES), ("tasks.csv", TASKS), ("pod.yaml", POD), ("other.csv", "a,b\n1,2\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_trace_is_loaded_without_manifests(folder: Path) -> None:
    inputs = load_inputs([str(folder / "nodes.csv"), str(folder / "tasks.csv")])
    assert inputs.trace is not None
    assert ([node.key for node in inputs.trace.nodes], len(inputs.trace.pods)) == (["n1"], 1)
    assert inputs.manifest.loaded == []


def test_a_manifest_is_loaded_without_a_trace(folder: Path) -> None:
    inputs = load_inputs([str(folder / "pod.yaml")])
    assert inputs.trace is None
    assert [each.kind for each in inputs.manifest.warnings] == ["missing node"]


def test_manifest_pods_can_be_bound_to_trace_nodes(folder: Path) -> None:
    inputs = load_inputs([str(folder / "pod.yaml"), str(folder / "nodes.csv")], strict=True)
    assert [pod.key for pod in inputs.manifest.pods] == ["default/web"]


@pytest.mark.parametrize(
    ("paths", "want"),
    [
        pytest.param(["other.csv"], "table: expected a header", id="a table of something else"),
        pytest.param(["nodes.csv", "nodes.csv"], "a unique name", id="a table twice"),
        pytest.param([], "at least one file", id="nothing"),
    ],
)
def test_unknown_and_duplicate_tables_and_empty_inputs_are_refused(paths: list[str], want: str, folder: Path) -> None:
    with pytest.raises(InputError, match=want):
        load_inputs([str(folder / path) for path in paths])


def test_tables_beside_manifests_in_a_folder_cause_a_warning(folder: Path) -> None:
    os.mkfifo(folder / "pipe.csv")
    warning = next(each for each in load_inputs([str(folder)]).manifest.warnings if each.kind == "unread tables")
    nodes, tasks = folder / "nodes.csv", folder / "tasks.csv"
    assert str(warning) == (
        f"{folder} {nodes}, {tasks}: in folders, only manifests are read; this trace is ignored; "
        f"try {folder} {nodes} {tasks}"
    )
    (folder / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n")
    with pytest.raises(InputError, match="only manifests are read; refused because of --strict"):
        load_inputs([str(folder)], strict=True)
    read = load_inputs([str(folder), str(nodes)], strict=True)
    assert read.trace is not None
    assert read.manifest.warnings == []


def test_the_warning_about_many_tables_names_their_folder_and_a_pattern_that_reads_them(folder: Path) -> None:
    below = folder / "below"
    below.mkdir()
    (below / "nodes.csv").write_text(NODES)
    for number in range(4):
        (below / f"tasks-{number}.csv").write_text(TASKS.replace("p1", f"p{number}"))
    for name in ("nodes.csv", "tasks.csv"):
        (folder / name).unlink()
    (warning,) = (each for each in load_inputs([str(folder)]).manifest.warnings if each.kind == "unread tables")
    assert warning.where == str(below)
    assert warning.what.endswith("tasks-1.csv and others")
    assert warning.hint == f"{folder} '{below}/*.csv'"
    (below / "notes.csv").write_text("a,b\n")
    (warning,) = (each for each in load_inputs([str(folder)]).manifest.warnings if each.kind == "unread tables")
    assert warning.hint == f"{folder} '{below}/*.csv', after moving {below}/notes.csv"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "kind: Node\nmetadata: {name: n1}", "Node $.metadata.name: expected a name that no node", id="node"
        ),
        pytest.param(
            "kind: Pod\nmetadata: {name: p1}",
            "Pod $.metadata.name: expected a name that no pod of the trace has",
            id="pod",
        ),
    ],
)
def test_a_manifest_must_not_repeat_names_of_the_trace(text: str, want: str, folder: Path) -> None:
    other = folder / "other.yaml"
    other.write_text(f"apiVersion: v1\n{text}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_inputs([str(other), str(folder / "nodes.csv"), str(folder / "tasks.csv")])
    assert f"{other}:1 {want}" in str(caught.value)
