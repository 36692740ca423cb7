"""A result directory contains all of a run's results, and the same run always writes the same bytes."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from bayplan.analysis.export import export, is_result
from bayplan.analysis.record_writer import write_records
from bayplan.analysis.result_directory import ResultDirectory, open_result
from bayplan.analysis.run_facts import run_facts
from bayplan.analysis.stored_records import StoredRecords
from bayplan.base.errors import InputError
from bayplan.engine.decision import Decision, rebuild
from bayplan.engine.records import RecordLevel
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin, PerNodeSpec
from bayplan.framework.plugin import Params
from bayplan.objects.pod import Pod
from bayplan.sim.result import SimulationResult
from bayplan.state.arrays import Ints
from bayplan.state.views import Rows
from bayplan.testing.builders import make_node
from tests.analysis.runs import busy_run, node, pod, run
from tests.engine.sampled_cycles import sampled_cycles


def assert_same(left: Decision, right: Decision) -> None:
    for field in dataclasses.fields(Decision):
        if field.name in ("pre_filters", "pre_scores"):
            # Result directories do not store which plugins returned Skip.
            continue
        one, other = getattr(left, field.name), getattr(right, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other), field.name
        else:
            assert one == other, field.name


@pytest.fixture(scope="module")
def result() -> SimulationResult:
    return busy_run()


@pytest.fixture(scope="module")
def directory(result: SimulationResult, tmp_path_factory: pytest.TempPathFactory) -> ResultDirectory:
    path = tmp_path_factory.mktemp("results") / "busy"
    export(result, path)
    return open_result(path)


def test_decisions_round_trip_through_a_result_directory(result: SimulationResult, directory: ResultDirectory) -> None:
    assert list(directory.records) == list(result.records)
    assert len(result.records) > 40
    kinds = set()
    for number, record in enumerate(result.records):
        if record.frame < 0:
            continue
        decision = result.records.decision(number)
        assert_same(directory.decision(number), decision)
        kinds.add((record.outcome, decision.pre_filter is not None, len(decision.scorers) > 0))
    assert len(kinds) == 4


def test_pods_nodes_and_events_round_trip_through_a_result_directory(
    result: SimulationResult, directory: ResultDirectory
) -> None:
    assert len(directory.pods) == len(result.pods)
    for ours, theirs in zip(directory.pods, result.pods, strict=True):
        assert ours.pod is not None
        assert theirs.pod is not None
        assert ours.pod.metadata.name == theirs.pod.metadata.name
        assert ours.pod.spec == msgspec.structs.replace(theirs.pod.spec, node_name="")
        waits = theirs.fate.value in ("gated", "unattended")
        message = ours.message if waits else theirs.message
        assert msgspec.structs.replace(ours, pod=None) == msgspec.structs.replace(theirs, pod=None, message=message)
    assert list(directory.nodes) == [node.name for node in result.nodes if node.removed_ns is None]
    assert directory.nodes["gpu"].status.allocatable["example.com/gpu"] == "2"
    assert list(directory.events) == result.events
    assert directory.facts == run_facts(result)


def test_sampled_decisions_round_trip(tmp_path: Path) -> None:
    records = sampled_cycles(300, 5).records
    write_records(records, tmp_path)
    stored = StoredRecords(tmp_path)
    for number, record in enumerate(records):
        decision = records.decision(number)
        assert decision.examined.sum() < 300
        assert_same(rebuild(record, stored.frame(record.frame)), decision)


class OwnScale(PerNodePlugin):
    """Breaks the contract of NormalizeScore: the normalised score depends on the row, not only on the raw score."""

    name = "OwnScale"

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return 7 if "zone" in node.name else 3

    def normalize(self, spec: PerNodeSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        return raw + rows.row_numbers() % 5


@pytest.mark.parametrize("plugins", [[], [OwnScale]], ids=["PodTopologySpread", "a custom plugin"])
def test_scores_normalized_by_more_than_the_raw_score_round_trip(
    plugins: list[type[PerNodePlugin]], tmp_path: Path
) -> None:
    labels = {"app": "web"}
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": labels}}
    spread = [constraint | {"topologyKey": f"topology.kubernetes.io/{key}"} for key in ("zone", "region")]
    nodes = [
        node(f"zone-{number}", zone="abc"[number % 3]).label({"topology.kubernetes.io/region": "r"})
        for number in range(7)
    ]
    nodes += [make_node(f"plain-{number}").capacity(cpu="4", memory="8Gi") for number in range(4)]
    pods = [pod(f"web-{number}").label(labels).spec(topologySpreadConstraints=spread).obj() for number in range(12)]
    result = run(*(each.obj() for each in nodes), *pods, plugins=plugins)
    export(result, tmp_path / "r")
    directory = open_result(tmp_path / "r")
    for number in range(len(result.records)):
        assert_same(directory.decision(number), result.records.decision(number))


def test_a_result_with_summaries_has_no_full_records(tmp_path: Path) -> None:
    export(busy_run(RecordLevel.SUMMARY), tmp_path / "r")
    directory = open_result(tmp_path / "r")
    assert directory.level is RecordLevel.SUMMARY
    assert not (tmp_path / "r" / "records").exists()
    with pytest.raises(LookupError, match="has no full record"):
        directory.decision(0)


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_the_same_run_writes_identical_files_under_any_hash_seed(tmp_path: Path, result: SimulationResult) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.analysis.runs import busy_run; "
        "from bayplan.analysis.export import export; export(busy_run(), Path(sys.argv[1]))"
    )
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.getcwd()}
        subprocess.run([sys.executable, "-c", program, str(tmp_path / hash_seed)], env=environment, check=True)
    first, second = files_of(tmp_path / "1"), files_of(tmp_path / "2")
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []
    export(result, tmp_path / "in this process")
    assert files_of(tmp_path / "in this process") == first


def test_files_contain_neither_their_path_nor_wall_clock_times(directory: ResultDirectory) -> None:
    for name, content in files_of(directory.path).items():
        assert str(directory.path).encode() not in content, name
        assert b"seconds" not in content, name


def test_an_existing_result_is_replaced_completely(tmp_path: Path, result: SimulationResult) -> None:
    export(result, tmp_path / "r")
    (tmp_path / "r" / "note.txt").write_text("mine")
    export(busy_run(RecordLevel.SUMMARY, seed=2), tmp_path / "r")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r"]
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == [
        "decisions.parquet",
        "events.parquet",
        "nodes.parquet",
        "objects.parquet",
        "pods.parquet",
        "summary.json",
        "templates.parquet",
        "usage.parquet",
    ]
    assert open_result(tmp_path / "r").facts.seed == 2


def test_export_refuses_to_overwrite_other_files(tmp_path: Path, result: SimulationResult) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "summary.json").write_text('{"mine": 1}')
    with pytest.raises(InputError, match="a folder with other files; try another name"):
        export(result, tmp_path / "home")
    assert (tmp_path / "home" / "summary.json").read_text() == '{"mine": 1}'
    assert not is_result(tmp_path / "home")
    with pytest.raises(InputError, match="which does not exist"):
        export(result, tmp_path / "a" / "b")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file', a file"):
        export(result, tmp_path / "file")


def test_a_failed_export_leaves_the_previous_result_unchanged(
    tmp_path: Path, result: SimulationResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(result, tmp_path / "r")
    before = files_of(tmp_path / "r")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bayplan.analysis.result_writer.write_records", fail)
    with pytest.raises(OSError, match="No space"):
        export(result, tmp_path / "r")
    assert files_of(tmp_path / "r") == before
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda path: None, "no such directory; try bayplan simulate PATH --out"),
        (lambda path: path.write_text(""), "got a file"),
        (lambda path: path.mkdir(), "got a folder without summary.json; try bayplan simulate PATH --out"),
        (
            lambda path: path.mkdir() or (path / "summary.json").write_text('{"form'),
            "got a folder with an invalid summary.json",
        ),
        (
            lambda path: path.mkdir() or (path / "summary.json").write_bytes(b'"\xff"'),
            "got a folder with an invalid summary.json",
        ),
        (lambda path: path.mkdir() or (path / "sweep.json").touch(), "try bayplan sweep FILE --out DIRECTORY --save N"),
    ],
    ids=[
        "a path that is not there",
        "a file",
        "an empty directory",
        "half a summary",
        "no UTF-8",
        "a sweep without results",
    ],
)
def test_open_result_refuses_missing_and_foreign_paths(
    make: Callable[[Path], object], want: str, tmp_path: Path
) -> None:
    make(tmp_path / "r")
    with pytest.raises(InputError, match=want):
        open_result(tmp_path / "r")


def test_a_result_of_a_newer_version_is_refused(tmp_path: Path, result: SimulationResult) -> None:
    export(result, tmp_path / "r")
    summary = msgspec.json.decode((tmp_path / "r" / "summary.json").read_bytes())
    (tmp_path / "r" / "summary.json").write_bytes(msgspec.json.encode(summary | {"format": 99}))
    with pytest.raises(InputError, match="got 99; try a newer Bayplan"):
        open_result(tmp_path / "r")
