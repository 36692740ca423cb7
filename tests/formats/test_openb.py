"""The OpenB trace: nodes, tasks, times, sharing of specs, and bad rows."""

import gzip
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats.files import InputFile
from bayplan.formats.inputs import load_inputs
from bayplan.formats.trace import TimedPod, Trace
from bayplan.formats.traces.openb import QOS, Reader
from bayplan.formats.traces.reading import TraceTable, detect_table
from bayplan.formats.traces.shapes import GPU_COUNT, GPU_MILLI, GPU_MODEL
from bayplan.objects.defaults import default_object
from bayplan.objects.requests import fit_requests
from tests.shared import shared_path

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
TASKS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
TIMED = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)


def load_trace(paths: list[str]) -> Trace:
    trace = load_inputs(paths).trace
    assert trace is not None
    return trace


def read(text: str, folder: Path) -> Trace:
    path = folder / "t.csv"
    path.write_text(text)
    return load_trace([str(path)])


def task(row: str, folder: Path, header: str = TIMED) -> TimedPod:
    (timed,) = read(header + row, folder).pods
    return timed


@pytest.mark.parametrize(
    ("head", "want"),
    [
        pytest.param(NODES.encode(), "nodes", id="nodes"),
        pytest.param(TASKS.encode(), "tasks", id="tasks without times"),
        pytest.param(b"\xef\xbb\xbf" + TIMED.encode(), "tasks", id="tasks after a byte order mark"),
        pytest.param(
            b"model, gpu, sn, cpu_milli, memory_mib, rack\r\n",
            "nodes",
            id="columns in another order, with an additional one",
        ),
    ],
)
def test_tables_are_recognised_by_their_header(head: bytes, want: str, tmp_path: Path) -> None:
    path = tmp_path / "any.csv"
    path.write_bytes(head)
    assert detect_table(InputFile(str(path), path)) == TraceTable(Reader, want)


def test_nodes_have_gpu_labels_and_allocatable_resources(tmp_path: Path) -> None:
    with_gpus, without = read(f"{NODES}a,64000,262144,2,P100\nb,32000,1024,0,\n", tmp_path).nodes
    assert with_gpus.metadata.labels == {
        GPU_MODEL: "P100",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/hostname": "a",
        "kubernetes.io/os": "linux",
    }
    assert with_gpus.status.allocatable == {
        GPU_COUNT: "2",
        GPU_MILLI: "2000",
        "cpu": "64000m",
        "memory": "262144Mi",
        "pods": "1001",
    }
    assert GPU_MODEL not in without.metadata.labels
    assert without.status.allocatable == {"cpu": "32000m", "memory": "1024Mi", "pods": "1001"}


@pytest.mark.parametrize(
    ("columns", "want"),
    [
        pytest.param("0,0", {}, id="no GPU"),
        pytest.param("1,460", {GPU_MILLI: "460"}, id="a share requests no count"),
        pytest.param("1,1000", {GPU_MILLI: "1000", GPU_COUNT: "1"}, id="one GPU"),
        pytest.param("8,1000", {GPU_MILLI: "8000", GPU_COUNT: "8"}, id="eight GPUs"),
        pytest.param("2,500", {GPU_MILLI: "1000"}, id="shares of two"),
    ],
)
def test_tasks_request_cpu_memory_and_gpu_resources(columns: str, want: dict[str, str], tmp_path: Path) -> None:
    pod = task(f"p,6000,12288,{columns},,LS,Running,0,5,0\n", tmp_path).pod
    resources = pod.spec.containers[0].resources
    assert resources.requests == resources.limits == {"cpu": "6000m", "memory": "12288Mi", **want}
    assert default_object(pod) == pod


def test_gpu_shares_and_models_become_annotations_and_node_affinity(tmp_path: Path) -> None:
    pod = task("p,1,1,1,460,T4|A10|T4,BE,Failed,0,5,0\n", tmp_path).pod
    assert pod.metadata.labels == {QOS: "BE"}
    assert pod.metadata.annotations == {
        GPU_MILLI: "460",
        GPU_COUNT: "1",
        GPU_MODEL: "T4|A10",
        "alibabacloud.com/pod-phase": "Failed",
    }
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    required = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    (expression,) = required.node_selector_terms[0].match_expressions
    assert (expression.key, expression.operator, expression.values) == (GPU_MODEL, "In", ("T4", "A10"))


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("times", "want"),
    [
        pytest.param("10,50,20", (10 * SECOND, 30 * SECOND, None), id="scheduled: runs from then to its deletion"),
        pytest.param("10,50,", (10 * SECOND, None, 50 * SECOND), id="never scheduled: gone at its deletion"),
        pytest.param("10,,20", (10 * SECOND, None, None), id="never deleted"),
        pytest.param("10,20,20", (10 * SECOND, 0, None), id="deleted at once"),
        pytest.param("0.5,1.25,1", (SECOND // 2, SECOND // 4, None), id="parts of seconds"),
        pytest.param(
            "12902960,12902961,12902960", (12902960 * SECOND, SECOND, None), id="the end of the trace, 149 days"
        ),
    ],
)
def test_task_times_become_arrival_run_time_and_departure(
    times: str, want: tuple[int, int | None, int | None], tmp_path: Path
) -> None:
    timed = task(f"p,1,1,0,0,,LS,Running,{times}\n", tmp_path)
    assert (timed.arrival_ns, timed.run_time_ns, timed.gone_at_ns) == want


def test_tasks_without_times_arrive_at_zero_and_never_end(tmp_path: Path) -> None:
    timed = task("p,1,1,0,0\n", tmp_path, header=TASKS)
    assert (timed.arrival_ns, timed.run_time_ns, timed.gone_at_ns) == (0, None, None)


def test_tasks_with_equal_requests_share_spec_and_labels(tmp_path: Path) -> None:
    rows = "a,1,1,0,0,,LS,Running,0,5,0\nb,1,1,0,0,,LS,Running,9,12,9\nc,2,1,0,0,,LS,Running,0,5,0\n"
    first, second, third = (timed.pod for timed in read(TIMED + rows, tmp_path).pods)
    assert first.spec is second.spec
    assert first.metadata.labels is second.metadata.labels
    assert third.spec is not first.spec


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a,b\n1,2\n", "t.csv:1 table: expected a header with sn,cpu_milli", id="another header"),
        pytest.param(
            f"{TASKS}p,1,1,0,0\n".replace("cpu_milli", "cpu_mili"),
            "t.csv:1 table: expected the columns name,cpu_milli,memory_mib,num_gpu,gpu_milli (OpenB), "
            "got a header without cpu_milli; try cpu_milli instead of cpu_mili",
            id="a misspelt column",
        ),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,0,5,0\n".replace("deletion_time", "deletion_tme"),
            "t.csv:1 table: expected a known column, got 'deletion_tme'; try deletion_time",
            id="a misspelt column that may be missing",
        ),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,0,5,0\n".replace("creation_time", "created"),
            "t.csv:1 table: expected a column creation_time, got times without it",
            id="ends without arrivals",
        ),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,0,5,0\n".replace("qos", "name"),
            "t.csv:1 table: expected one column name, got 2",
            id="a column twice",
        ),
        pytest.param(NODES, "t.csv table: expected at least one row, got only a header", id="no rows"),
        pytest.param(f"{NODES}a,1,1,0\n", "t.csv:2 row: expected 5 columns, got 4", id="a column is missing"),
        pytest.param(
            f"{NODES}a,x,1,0,\n",
            "t.csv:2 column cpu_milli: expected a whole number from 0 to 1099511627776, got 'x'",
            id="a word",
        ),
        pytest.param(
            f"{NODES}a,-1,1,0,\n", "t.csv:2 column cpu_milli: expected a whole number", id="a negative number"
        ),
        pytest.param(f"{NODES}a,1.5,1,0,\n", "t.csv:2 column cpu_milli: expected a whole number", id="a fraction"),
        pytest.param(f"{NODES}a,1,9999999999999,0,\n", "t.csv:2 column memory_mib: expected", id="a giant"),
        pytest.param(f"{NODES},1,1,0,\n", "t.csv:2 column sn: expected a name, got ''", id="no name"),
        pytest.param(f"{NODES}a,1,1,0,\n\na,1,1,0,\n", "t.csv:4 column sn: expected a unique name", id="a name twice"),
        pytest.param(f"{TASKS}p,1,1,1,1001\n", "t.csv:2 column gpu_milli: expected 1 to 1000", id="over one GPU"),
        pytest.param(f"{TASKS}p,1,1,1,0\n", "t.csv:2 column gpu_milli: expected 1 to 1000", id="zero of one GPU"),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,,5,0\n", "t.csv:2 column creation_time: expected a time", id="no arrival"
        ),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,9,5,10\n",
            "t.csv:2 column deletion_time: expected a time at or after scheduled_time",
            id="deleted before it was scheduled",
        ),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,9,20,5\n",
            "t.csv:2 column scheduled_time: expected a time at or after creation_time",
            id="scheduled before it arrived",
        ),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,9,,5\n",
            "t.csv:2 column scheduled_time: expected a time at or after creation_time",
            id="or without an end",
        ),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,9,5,\n",
            "t.csv:2 column deletion_time: expected a time at or after creation_time",
            id="deleted before it arrived",
        ),
        pytest.param(
            f"{TIMED}p,1,1,0,0,,LS,Running,1e99,5,0\n", "t.csv:2 column creation_time: expected", id="a huge time"
        ),
        pytest.param(f"{TIMED}p,1,1,0,0,,LS,Running,nan,5,0\n", "t.csv:2 column creation_time: expected", id="no time"),
        pytest.param(f'{NODES}a,1,1,0,"x\n', "t.csv:2 row: expected CSV", id="a quote that does not end"),
    ],
)
def test_invalid_rows_are_refused_with_line_and_column(text: str, want: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(text, tmp_path)
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(want)


def test_gzip_and_several_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "n.csv.gz").write_bytes(gzip.compress(f"{NODES}a,1,1,0,\n".encode()))
    (tmp_path / "p.csv").write_text(f"{TASKS}a,1,1,0,0\n")
    trace = load_trace([str(tmp_path / "*.csv*")])
    assert ([node.metadata.name for node in trace.nodes], len(trace.pods), len(trace.files)) == (["a"], 1, 2)


def test_nodes_from_csv_equal_the_published_yaml_nodes() -> None:
    theirs = load_inputs([str(shared_path("data", "openb", "openb_node_list_gpu_node.yaml.gz"))]).manifest.nodes
    assert load_trace([str(shared_path("data", "openb", "openb_node_list_gpu_node.csv"))]).nodes == theirs
    assert len(theirs) == 1213


PUBLISHED = {
    "default.csv": (8152, 897, 6086.8),
    "cpu300.csv.gz": (10094, 955, 6086.8),
    "gpushare100.csv.gz": (8152, 1209, 3952.7),
    "gpuspec33.csv.gz": (8152, 897, 6086.8),
    "multigpu50.csv.gz": (9061, 0, 11358.8),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_pod_lists_match_the_published_counts_and_gpu_sums(name: str) -> None:
    trace = load_trace([str(shared_path("data", "openb", f"openb_pod_list_{name}"))])
    milli = sum(fit_requests(timed.pod).get(GPU_MILLI, 0) for timed in trace.pods)
    waiting = sum(timed.gone_at_ns is not None for timed in trace.pods)
    assert (len(trace.pods), waiting, round(milli / 1000, 1)) == PUBLISHED[name]
    assert len({id(timed.pod.spec) for timed in trace.pods}) < 500


def test_a_table_with_semicolons_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="; try commas between columns"):
        read(TASKS.replace(",", ";"), tmp_path)
