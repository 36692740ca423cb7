"""Files as streams: compressed, truncated, with bad rows, in any order; memory does not grow with the file."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.bench_traces import FORMATS, write_file

from bayplan.base.errors import InputError
from bayplan.formats.traces.streams import BLOCK_BYTES, line_blocks
from tests.formats.traces.reading import HEAD, SAMPLES, load, times
from tests.project.tree import ROOT

ROW = "M1,1,j_1,1,Terminated,5,9,100,0.3\n"
GROWTH_BYTES = 12_000_000
"""Maximum additional memory for a file ten times as large with the same selection. A block and its rows take 3 MB."""


def batch_task(text: str | bytes, folder: Path, suffix: str = "") -> Path:
    path = folder / f"batch_task.csv{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("M1,1,j_1,1,Terminated,5,9\n", ":1 table: expected 8 columns", id="no trace has 7"),
        pytest.param(f"{ROW}M1,1,j_1\n{ROW}", ":2 row: expected 9 columns, got 3", id="a short row"),
        pytest.param(
            f"{ROW}M1,1,j_1",
            ":2 row: expected 9 columns, got 3; try another copy of the file: this one ends within a row",
            id="cut off",
        ),
        pytest.param(f"{ROW}{ROW[:-1]},7\n", ":2 row: expected 9 columns, got 10", id="a long row"),
        pytest.param(
            ROW.replace(",100,", ",many,"),
            ":1 column plan_cpu: expected a number from 0 to 1099511627776, got 'many'",
            id="a word",
        ),
        pytest.param(
            ROW.replace(",100,", ",-100,"),
            ":1 column plan_cpu: expected a number from 0 to 1099511627776",
            id="negative",
        ),
        pytest.param(
            ROW.replace(",100,", ",nan,"),
            ":1 column plan_cpu: expected a number from 0 to 1099511627776",
            id="no number",
        ),
        pytest.param(ROW.replace(",100,", ",1e30,"), ":1 column plan_cpu: expected a number", id="a giant"),
        pytest.param(
            ROW.replace(",1,j_1", ",1.5,j_1"), ":1 column instance_num: expected a whole number", id="a fraction"
        ),
        pytest.param(
            ROW.replace(",5,", ",soon,"), ":1 column start_time: expected a time in seconds, got 'soon'", id="no time"
        ),
        pytest.param(
            ROW.replace(",5,", ",1e99,"), ":1 column start_time: expected a time in seconds", id="a late time"
        ),
        pytest.param(f'{ROW}"M1{ROW[2:]}', ":2 row: expected CSV", id="a quote that does not end"),
        pytest.param(
            ROW.encode() + b"\xff" + ROW.encode(), ":2 table: expected UTF-8, got another encoding", id="other bytes"
        ),
        pytest.param("", ":1 table: expected 8 columns", id="an empty file"),
    ],
)
def test_invalid_rows_are_refused_with_line_and_column(text: str | bytes, want: str, tmp_path: Path) -> None:
    path = batch_task(text, tmp_path)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}{want}")


def test_excessive_machine_memory_is_refused_and_excessive_task_memory_is_dropped(tmp_path: Path) -> None:
    machine = tmp_path / "machine_meta.csv"
    machine.write_text("m_1,0,1,a,96,300,USING\n")
    with pytest.raises(InputError, match="column mem_size: expected above 0, at most 100, got '300'"):
        load(machine)
    trace = load(batch_task(ROW + ROW.replace("0.3", "101").replace("M1", "M2"), tmp_path))
    assert len(trace.pods) == 1
    assert [str(each.problem) for each in trace.warnings] == ["1 skipped"]


def test_a_header_can_reorder_the_columns(tmp_path: Path) -> None:
    names = "plan_mem,plan_cpu,end_time,start_time,status,task_type,job_name,instance_num,task_name"
    path = tmp_path / "batch_task.csv"
    path.write_text(f"\ufeff{names}\r\n0.3,100,9,5,Terminated,1,j_1,1,M1\r\n", encoding="utf-8")
    assert times(load(path).pods) == {"j-1-m1": (5, 4, None)}


@pytest.mark.parametrize("size", [1, 7, 64])
def test_line_blocks_contain_whole_lines_for_any_read_size(size: int) -> None:
    class Slow:
        def __init__(self) -> None:
            self.rest = b"one\ntwo\n\nthree"

        def read(self, _: int, /) -> bytes:
            found, self.rest = self.rest[:size], self.rest[size:]
            return found

    found = list(line_blocks(Slow(), "x"))
    assert b"".join(found) == b"one\ntwo\n\nthree"
    assert all(block.endswith(b"\n") for block in found[:-1])


def test_line_numbers_are_correct_across_blocks(tmp_path: Path) -> None:
    count = BLOCK_BYTES // len(ROW) + 100
    path = batch_task(ROW * count + "x\n", tmp_path)
    with pytest.raises(InputError, match=f"batch_task.csv:{count + 1} row: expected 9 columns, got 1"):
        load(path)


def test_an_overlong_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.yaml"
    path.write_text(f"{HEAD}format: alibaba-2018\ntables: {{batch_task: [zeros]}}\n")
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate(40 * 2**20)
    with pytest.raises(InputError, match="expected lines of at most 16 MiB, got a longer one"):
        load(path)


def test_gzip_streams_are_decompressed_and_truncated_ones_are_refused(tmp_path: Path) -> None:
    rows = "".join(ROW.replace("j_1", f"j_{number * 7919}") for number in range(5000))
    packed = gzip.compress(rows.encode())
    assert len(load(batch_task(packed, tmp_path, ".gz")).pods) == 5000
    # Several compressed streams may follow each other, as parallel compressors write them.
    assert len(load(batch_task(packed + gzip.compress(b"M2" + ROW[2:].encode()), tmp_path, ".gz")).pods) == 5001
    with pytest.raises(InputError, match="expected complete compressed data"):
        load(batch_task(packed[: len(packed) // 2], tmp_path, ".gz"))


def test_zstandard_files_are_decompressed(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    packed = pyarrow.Codec("zstd").compress((ROW * 3).encode(), asbytes=True)
    assert len(load(batch_task(packed, tmp_path, ".zst")).pods) == 3


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("{}", ":1 job log: expected a JSON list, got '{'", id="no list"),
        pytest.param("", ":1 job log: expected a JSON list, got the end of the file", id="an empty file"),
        pytest.param("[", ":1 job log: expected complete JSON", id="a list that does not end"),
        pytest.param('[\n{"jobid": "a"', ":2 job log: expected complete JSON", id="cut off"),
        pytest.param('[\n{"jobid": "a"}]', ":2 job: expected jobid, submitted_time, attempts", id="a field is missing"),
        pytest.param(
            '[\n\n{"jobid": "a", "submitted_time": "soon", "attempts": []}]',
            ":3 submitted_time: expected a time: 2017-10-07 01:11:39, got 'soon'",
            id="no time",
        ),
    ],
)
def test_invalid_job_logs_are_refused_with_their_line(text: str, want: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster_job_log"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}{want}")


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("{", "Input data was truncated", id="cut off"),
        pytest.param('{"instance_index": 1}', "Object missing required field `collection_id`", id="a field is missing"),
        pytest.param('{"collection_id": "x", "instance_index": 1}', "Expected `int`, got `str`", id="no number"),
        pytest.param(
            '{"collection_id": 1, "instance_index": 1, "time": -1}', "Expected `int` >= 0", id="a negative time"
        ),
    ],
)
def test_invalid_events_are_refused_with_their_line(line: str, want: str, tmp_path: Path) -> None:
    path = tmp_path / "instance_events-000000000000.json"
    good = (SAMPLES / "google-borg-2019" / path.name).read_text()
    path.write_text(f"{good}{line}\n")
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:9 event: expected a JSON object in one line, got {want}")


def test_a_negative_resource_request_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "instance_events.json"
    path.write_text('{"collection_id": 1, "instance_index": 0, "type": 0, "resource_request": {"cpus": -0.5}}\n')
    with pytest.raises(InputError, match=r"instance_events.json:1 event: .*Expected `float` >= 0"):
        load(path)


def peak_bytes(path: Path) -> int:
    """Return the peak memory of a process that reads a file and keeps 1,000 pods."""
    program = "import sys; from benchmarks.bench_traces import read_file; read_file(sys.argv[1], 1000)"
    command = [sys.executable, "-c", program, str(path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(ran.stdout.split()[3])


@pytest.mark.parametrize("kind", FORMATS)
def test_peak_memory_is_independent_of_the_file_size(kind: str, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    small, _ = write_file(tmp_path / "small", kind, 3_000_000)
    large, _ = write_file(tmp_path, kind, 30_000_000)
    assert large.stat().st_size > 29_000_000
    assert peak_bytes(large) - peak_bytes(small) < GROWTH_BYTES


def test_rows_outside_the_selection_are_parsed_only_up_to_their_arrival(tmp_path: Path) -> None:
    # The amounts in the last row must not be read, or the row would be refused.
    late = ROW.replace(",5,9,100,", ",50,90,many,")
    path = batch_task(ROW + late, tmp_path)
    document = tmp_path / "trace.yaml"
    for text in ("limit: 1", "until: 50s"):
        document.write_text(f"{HEAD}files: [{path.name}]\n{text}\n")
        assert len(load(document).pods) == 1
    document.write_text(f"{HEAD}files: [{path.name}]\nlimit: 2\n")
    with pytest.raises(InputError, match="column plan_cpu"):
        load(document)
