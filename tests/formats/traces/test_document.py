"""Trace files: the files they refer to, their fields, refused ones; the result is the same however they are read."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.formats.inputs import load_inputs
from tests.formats.traces.reading import HEAD, SAMPLES, load, sample, times

DAY = 86400


def document(folder: Path, text: str) -> Path:
    path = folder / "trace.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def test_times_in_a_window_are_relative_to_its_start() -> None:
    trace = load(SAMPLES / "alibaba-2018" / "trace.yaml")
    assert times(trace.pods) == {
        "j-1-m1-0": (0, 60, None),
        "j-1-m1-1": (0, 60, None),
        "j-1-m1-2": (0, 60, None),
        "j-1-m1-3": (0, 60, None),
        "j-1-r2-1-0": (60, 240, None),
        "j-1-r2-1-1": (60, 240, None),
        "j-2-task-nzg3odawndgz": (600, 3600, None),
        "c-1": (0, None, None),
        "c-2": (0, DAY, None),
    }


def test_running_false_excludes_instances_that_arrived_earlier(tmp_path: Path) -> None:
    trace = sample("google-borg-2019/*.json", "from: 625s\nrunning: false\n", tmp_path)
    assert times(trace.pods) == {"11-0": (15, 40, None), "12-0": (25, None, 55)}
    with_running = sample("google-borg-2019/*.json", "from: 625s\n", tmp_path)
    assert times(with_running.pods) == {
        "7-0": (0, None, None),
        "8-0": (0, 75, None),
        "9-0": (0, None, None),
        "11-0": (15, 40, None),
        "12-0": (25, None, 55),
    }


@pytest.mark.parametrize("text", ["limit: 2\n", "from: 600s\nlimit: 2\n", "from: 600s\nrunning: false\nlimit: 2\n"])
def test_a_limit_selects_the_first_instances(text: str, tmp_path: Path) -> None:
    every = sample("google-borg-2019/*.json", text.replace("limit: 2\n", ""), tmp_path)
    first = sample("google-borg-2019/*.json", text, tmp_path)
    assert times(first.pods) == dict(list(times(every.pods).items())[:2])


def test_the_machine_size_scales_relative_resources(tmp_path: Path) -> None:
    trace = sample("google-borg-2019/*.json", "machine: {cpu: '128', memory: 1Ti, pods: 50}\n", tmp_path)
    assert trace.nodes[0].status.allocatable == {"cpu": "64000m", "memory": str(2**39), "pods": "50"}
    assert trace.pods[1].pod.spec.containers[0].resources.requests["cpu"] == "12800m"


def test_machines_are_generated_if_the_trace_has_none(tmp_path: Path) -> None:
    trace = sample("philly/cluster_job_log", "nodes: 3\nmachine: {gpus: 8}\n", tmp_path)
    assert [node.metadata.name for node in trace.nodes] == ["machine-00000", "machine-00001", "machine-00002"]
    assert trace.nodes[0].status.allocatable["nvidia.com/gpu"] == "8"


def test_files_with_other_names_can_be_assigned_to_tables(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "alibaba-2018" / "batch_task.csv", tmp_path / "part-1.txt")
    path = document(tmp_path, "format: alibaba-2018\ntables: {batch_task: [part-*.txt]}\n")
    assert len(load(path).pods) == 10


def test_tables_are_recognised_without_a_file_suffix(tmp_path: Path) -> None:
    for version in ("2017", "2018"):
        shutil.copy(SAMPLES / f"alibaba-{version}" / "batch_task.csv", tmp_path / "batch_task")
        assert load(tmp_path / "batch_task").format == f"Alibaba {version}"


def test_skip_invalid_drops_and_counts_invalid_rows(tmp_path: Path) -> None:
    good = (SAMPLES / "alibaba-2018" / "batch_task.csv").read_text()
    (tmp_path / "batch_task.csv").write_text(f"M1,x,j_0,1,Terminated,1,2,100,0.3\n{good}M2,1,j_1\n")
    path = document(tmp_path, "files: [batch_task.csv]\nskipInvalid: true\n")
    trace = load(path)
    assert len(trace.pods) == 10
    assert {each.what: each.problem for each in trace.warnings}["rows that can't be read"] == "2 skipped"


def test_invalid_events_are_counted_once_despite_two_passes(tmp_path: Path) -> None:
    good = (SAMPLES / "google-borg-2019" / "instance_events-000000000001.json").read_text()
    share = '{"collection_id": 99, "instance_index": 0, "type": 0, "resource_request": {"cpus": -0.5}}\n'
    (tmp_path / "instance_events.json").write_text(f"{{\n{good}{share}")
    trace = load(document(tmp_path, "files: [instance_events.json]\nskipInvalid: true\n"))
    assert list(times(trace.pods)) == ["11-0", "12-0"]
    assert {each.what: each.problem for each in trace.warnings} == {
        "rows that can't be read": "2 skipped",
        "instances without a request": "1 skipped",
    }


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("files: []\n", "3 Trace $.files: expected at least one file, got none", id="no files"),
        pytest.param("files: [a.csv]\nform: x\n", "4 Trace $.form: got an unknown field; try 'format'", id="misspelt"),
        pytest.param("files: [a.csv]\nformat: philli\n", "4 Trace $.format: expected one of", id="an unknown format"),
        pytest.param("files: [a.csv]\nfrom: soon\n", "4 Trace $.from: expected a duration, got 'soon'", id="no time"),
        pytest.param(
            "files: [a.csv]\nfrom: 2h\nuntil: 1h\n", "5 Trace $.until: expected a time after from (2h)", id="no window"
        ),
        pytest.param("files: [a.csv]\nsample: 2\n", "4 Trace $.sample: expected a number of at most 1", id="a share"),
        pytest.param("files: [a.csv]\nlimit: 0\n", "4 Trace $.limit: expected an integer of at least 1", id="no pods"),
        pytest.param(
            "files: [a.csv]\nmachine: {cpu: much}\n", "4 Trace $.machine.cpu: expected a quantity above 0", id="a size"
        ),
        pytest.param(
            "format: philly\ntables: {jobs: [a]}\n", "4 Trace $.tables.jobs: expected a table of philly", id="a table"
        ),
        pytest.param(
            "tables: {batch_task: [a]}\n",
            "3 Trace $.tables.batch_task: expected $.format, which defines the tables",
            id="no format",
        ),
    ],
)
def test_invalid_trace_files_are_refused_with_line_and_field(text: str, want: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,0,0\n")
    path = document(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:{want}")


def test_requesting_more_machines_than_the_trace_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"trace.yaml:4 Trace \$.nodes: expected at most 3, the machines of the trace, got 9"
    ):
        sample("alibaba-2018/machine_meta.csv", "nodes: 9\n", tmp_path)


def test_mixing_files_of_two_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"expected files of one trace \(.*machine_meta.csv is Alibaba 2018\), got Alibaba 2017"
    ):
        load(SAMPLES / "alibaba-2018" / "machine_meta.csv", SAMPLES / "alibaba-2017" / "server_event.csv")
    with pytest.raises(InputError, match=r"expected one trace, got a second one \(Alibaba 2018\)"):
        load(SAMPLES / "alibaba-2018" / "trace.yaml", SAMPLES / "google-borg-2019" / "trace.yaml")
    path = document(tmp_path, f"format: philly\nfiles: ['{SAMPLES}/alibaba-2018/machine_meta.csv']\n")
    with pytest.raises(InputError, match=r"expected tables of philly, got .*machine_meta.csv, a table of alibaba-2018"):
        load(path)


def test_tables_without_tasks_or_machines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "container_usage.csv"
    path.write_text("c_1,m_1,0,1,1,1,1,1,1,1,1\n")
    with pytest.raises(
        InputError, match=r"expected a table of tasks or machines, got container_usage of .*; try without this file"
    ):
        load(path)


def test_a_file_can_contain_a_trace_and_manifests(tmp_path: Path) -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: big}\nstatus: {allocatable: {cpu: '96', memory: 1Ti, pods: '500'}}\n"
    path = tmp_path / "both.yaml"
    path.write_text(f"{node}---\n{HEAD}files: ['{SAMPLES}/alibaba-2018/batch_task.csv']\n")
    inputs = load_inputs([str(path)])
    assert inputs.trace is not None
    assert ([each.key for each in inputs.manifest.nodes], len(inputs.trace.pods)) == (["big"], 10)


def test_plain_and_gzipped_traces_simulate_to_the_same_decisions(tmp_path: Path) -> None:
    for file in (SAMPLES / "google-borg-2019").glob("*.json"):
        (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    plain = simulate(SimulationOptions(paths=[str(SAMPLES / "google-borg-2019" / "*.json")]))
    packed = simulate(SimulationOptions(paths=[str(tmp_path / "*.json.gz")]))
    assert plain.digest == packed.digest
    assert len(plain.pods) == 5
    assert [each.what for each in packed.input.warnings] == ["tasks within a reservation"]


def test_a_workload_samples_the_pods_of_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = tmp_path / "workload.yaml"
    shape.write_text("apiVersion: bayplan.io/v1alpha1\nkind: Workload\nsample: 0.5\n")
    assert main(["simulate", str(SAMPLES / "alibaba-2018" / "trace.yaml"), "--workload", str(shape)]) == 0
    assert "pods         4" in capsys.readouterr().out


def test_a_scenario_can_use_a_trace_as_its_cluster(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    path = SAMPLES / "alibaba-2018" / "trace.yaml"
    scenario.write_text(
        f"apiVersion: bayplan.io/v1alpha1\nkind: Scenario\ncluster: ['{path}']\n"
        "steps:\n- at: 1h\n  assert:\n  - placed: {pods: pod/default/c-2}\n"
    )
    assert main(["test", str(scenario)]) == 0


def test_a_sweep_reads_a_trace(tmp_path: Path) -> None:
    from bayplan.sweeps.plan import read_plan
    from bayplan.sweeps.trials import read_shared_input

    plan = tmp_path / "sweep.yaml"
    plan.write_text(f"paths: ['{SAMPLES}/alibaba-2018/trace.yaml']\nparameters: {{weight.ImageLocality: [0, 1]}}\n")
    trace = read_shared_input(read_plan(plan)).inputs.trace
    assert trace is not None
    assert len(trace.pods) == 9
