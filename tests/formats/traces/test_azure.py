"""Azure's packing trace: a database, requests as shares of one machine type, times in days."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats.trace import Trace
from tests.formats.traces.reading import HEAD, load, offers, quantities, requests, times

DAY = 86400
TYPES = [
    # id, vmTypeId, machineId, core, memory, hdd, ssd, nic
    (1, 10, 0, 0.25, 0.125, None, 0.1, 0.05),
    (2, 11, 0, 0.5, 0.5, None, 0.0, 0.1),
    (3, 10, 16, 0.125, 0.0625, 0.0, 0.05, 0.025),
]
VMS = [
    # vmId, tenantId, vmTypeId, priority, starttime, endtime
    (1, 5, 10, 0, -2.5, 1.0),
    (2, 5, 11, 1, 0.5, 1.5),
    (3, 6, 10, 0, 0.25, None),
    (4, 6, 12, 0, 1.0, 2.0),
    (5, 7, 10, 0, -3.0, -1.0),
]


def database(folder: Path, vms: Sequence[tuple[object, ...]] = VMS) -> Path:
    path = folder / "packing_trace_zone_a_v1.sqlite"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)")
        made.execute("CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime)")
        made.executemany("INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)", TYPES)
        made.executemany("INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", vms)
        made.commit()
    return path


def with_fields(folder: Path, text: str) -> Trace:
    (folder / "trace.yaml").write_text(f"{HEAD}files: [{database(folder).name}]\n{text}")
    return load(folder / "trace.yaml")


def test_vms_running_at_the_start_arrive_at_zero_with_their_remaining_time(tmp_path: Path) -> None:
    trace = load(database(tmp_path))
    assert times(trace.pods) == {
        "vm-1": (0, DAY, None),
        "vm-2": (0.5 * DAY, DAY, None),
        "vm-3": (0.25 * DAY, None, None),
    }
    assert requests(trace)["vm-1"] == {
        "cpu": "16000m",
        "memory": str(2**35),
        "trace.bayplan.io/ssd": "100000",
        "trace.bayplan.io/nic": "50000",
    }
    assert [each.pod.spec.priority for each in trace.pods] == [1, 0, 1]
    (warning,) = trace.warnings
    assert warning.problem == "1 skipped"


def test_the_machine_type_determines_shares_and_available_vm_types(tmp_path: Path) -> None:
    trace = with_fields(tmp_path, "machine: {type: '16', cpu: '32', memory: 128Gi}\nnodes: 2\n")
    assert requests(trace)["vm-1"]["cpu"] == "4000m"
    assert [each.pod.metadata.name for each in trace.pods] == ["vm-1", "vm-3"]
    assert offers(trace)["machine-00001"] == quantities(
        {
            "cpu": "32",
            "memory": str(2**37),
            "pods": "1000",
            **{f"trace.bayplan.io/{name}": "1M" for name in ("hdd", "ssd", "nic")},
        }
    )


@pytest.mark.parametrize(
    ("row", "want"),
    [
        pytest.param(
            (9, 1, 10, 0, "soon", 2.0), "vm 9 column starttime: expected a time in days, got 'soon'", id="a word"
        ),
        pytest.param((9, 1, 10, 0, 1e9, 2e9), "vm 9 column starttime: expected a time in days", id="a giant"),
        pytest.param(
            (9, 1, 10, 0, 2.0, 1.0), "vm 9 column endtime: expected a time at or after starttime", id="ends early"
        ),
        pytest.param((9, 1, 10, 7, 2.0, 3.0), "vm 9 column priority: expected 0 or 1, got 7", id="a third priority"),
    ],
)
def test_invalid_rows_are_refused_with_vm_and_column(row: tuple[object, ...], want: str, tmp_path: Path) -> None:
    path = database(tmp_path, [row])
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path} {want}")


def test_invalid_databases_and_unknown_machine_types_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "x.sqlite"
    other.write_text("no database")
    with pytest.raises(InputError, match=r"uncompressed SQLite database .*, got a file in another format"):
        load(other)
    with closing(sqlite3.connect(tmp_path / "y.sqlite")) as made:
        made.execute("CREATE TABLE vmType (id)")
    with pytest.raises(InputError, match=r"expected an SQLite database with vmType .* got no such column"):
        load(tmp_path / "y.sqlite")
    broken = database(tmp_path)
    broken.write_bytes(broken.read_bytes()[:5000])
    with pytest.raises(InputError, match="table vm"):
        load(broken)
    broken.unlink()
    with pytest.raises(
        InputError, match=r"trace.yaml:4 Trace \$.machine.type: expected a machineId of the trace \(0, 16\)"
    ):
        with_fields(tmp_path, "machine: {type: '3'}\n")
