"""Azure traces for packing 2020: requests for virtual machines of one zone in 14 days, as an SQLite database.

Source: https://github.com/Azure/AzurePublicDataset (AzureTracesForPacking2020.md; `packing_trace_zone_a_v1.sqlite`).
Amounts are fractions of one machine, and depend on its kind (`machineId`, a hardware generation). One kind is read
(`machine.type`, or the kind that most types of virtual machines fit on), and its size is `machine`. The trace does not
contain the number of machines.

- `vm`: a pod from `starttime` until `endtime` (in days; negative: before the trace; without an end it runs beyond the
  90 days). Priority 0 (high) becomes pod priority 1, and priority 1 (low, may be evicted) becomes 0.
- `vmType`: the requests of the pod: CPU, memory and, in millionths of a machine, `trace.bayplan.io/ssd`, `hdd` and
  `nic`. Virtual machines of types that the kind of machine does not offer are left out.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import ClassVar
from urllib.parse import quote

from bayplan.base.durations import DAY_NS
from bayplan.base.errors import InputError
from bayplan.formats.files import InputFile
from bayplan.formats.traces.csv_table import RowError
from bayplan.formats.traces.reader import Columns, TraceReader
from bayplan.formats.traces.selection import Task
from bayplan.formats.traces.shapes import Amounts, Shape, cpu_text, share_text

MAGIC = b"SQLite format 3\0"
MILLIONTHS = 1_000_000
_MILLI = 1000
_MAX_DAYS = 36_500
_VM_COLUMNS = ("vmId", "tenantId", "vmTypeId", "priority", "starttime", "endtime")
_TYPE_COLUMNS = ("vmTypeId", "machineId", "core", "memory", "hdd", "ssd", "nic")
_DEVICES = ("hdd", "ssd", "nic")


class Reader(TraceReader):
    """Reads the Azure trace for packing 2020; the module describes the tables."""

    name = "azure-packing-2020"
    title = "Azure packing 2020"
    tables: ClassVar[Mapping[str, Columns]] = {"database": ()}

    def read(self, table: str, file: InputFile) -> None:
        """Read the database."""
        self.began(file)
        with closing(_opened(file)) as database:
            shapes = self._vm_types(database, file.name)
            for row in _rows(database, file.name, "vm", _VM_COLUMNS):
                try:
                    self._vm(file.name, row, shapes)
                except RowError as problem:
                    self.raise_or_skip(problem)

    def made_machine(self) -> Mapping[str, str]:
        """Return the amounts of a generated machine, including all of its devices."""
        return {**super().made_machine(), **{_device(name): str(MILLIONTHS) for name in _DEVICES}}

    def _vm_types(self, database: sqlite3.Connection, file: str) -> dict[object, tuple[Shape, Shape]]:
        """Return the pods' shapes by type of virtual machine, for the chosen kind of machine: with high and with low priority."""
        rows = list(_rows(database, file, "vmType", _TYPE_COLUMNS))
        offered = Counter(str(row[1]) for row in rows)
        if not offered:
            raise InputError("table vmType", where=file, wanted="at least one row", got="none")
        chosen = self.options.machine_type or min(offered, key=lambda name: (-offered[name], len(name), name))
        if chosen not in offered:
            kinds = ", ".join(sorted(offered, key=lambda name: (len(name), name))[:10])
            raise InputError("Trace $.machine.type", wanted=f"a machineId of the trace ({kinds})", got=repr(chosen))
        found: dict[object, tuple[Shape, Shape]] = {}
        for row in rows:
            if str(row[1]) == chosen:
                amounts = self._amounts(file, row)
                found[row[0]] = (Shape(amounts=amounts, priority=1), Shape(amounts=amounts, priority=0))
        return found

    def _amounts(self, file: str, row: tuple[object, ...]) -> Amounts:
        shares: dict[str, float] = {}
        for column, share in zip(_TYPE_COLUMNS[2:], row[2:], strict=True):
            # NULL means that the device is not requested.
            number = 0.0 if share is None else share
            if not isinstance(number, int | float) or not 0 <= number <= 1:
                where = f"{file} vmType {row[0]}"
                raise InputError(f"column {column}", where=where, wanted="a share from 0 to 1", got=repr(share))
            shares[column] = float(number)
        size = self.options.machine
        amounts = [
            ("cpu", cpu_text(shares["core"] * size.cpu_milli / _MILLI)),
            ("memory", share_text(shares["memory"], size.memory_bytes)),
        ]
        amounts += [(_device(name), share_text(shares[name], MILLIONTHS)) for name in _DEVICES if shares[name]]
        return tuple(amounts)

    def _vm(self, file: str, row: tuple[object, ...], shapes: Mapping[object, tuple[Shape, Shape]]) -> None:
        name, tenant, vm_type, priority, start, end = row
        start_ns = _time_ns(file, name, "starttime", start)
        if start_ns >= self.selected.horizon_ns:
            return
        end_ns = None if end is None else _time_ns(file, name, "endtime", end)
        if not self.selection.in_window(start_ns, end_ns) or not self.sample.has(str(name)):
            return
        both = shapes.get(vm_type)
        if both is None:
            self.skip("virtual machines of types that this kind of machine does not offer")
            return
        if priority not in (0, 1):
            raise _refusal(file, name, "priority", priority, "0 or 1")
        if end_ns is not None and end_ns < start_ns:
            raise _refusal(file, name, "endtime", end, "a time at or after starttime")
        self.selected.add(
            Task(
                name=f"vm-{name}",
                job=f"tenant-{tenant}",
                shape=both[int(priority == 1)],
                arrival_ns=start_ns,
                end_ns=end_ns,
                run_time_ns=None if end_ns is None else end_ns - start_ns,
            )
        )


def _opened(file: InputFile) -> sqlite3.Connection:
    if file.path is None:
        raise InputError("trace: this format can't be read from standard input", hint="a file")
    return sqlite3.connect(f"file:{quote(str(file.path.resolve()))}?mode=ro", uri=True)


def _rows(
    database: sqlite3.Connection, file: str, table: str, columns: tuple[str, ...]
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table.

    Raises:
        InputError: the table or column does not exist, or the file is broken.
    """
    try:
        yield from database.execute(f"SELECT {', '.join(columns)} FROM {table}")
    except sqlite3.Error as problem:
        wanted = f"an SQLite database with {table} ({', '.join(columns)})"
        raise InputError(f"table {table}", where=file, wanted=wanted, got=str(problem)) from None


def _time_ns(file: str, name: object, column: str, days: object) -> int:
    try:
        number = float(days)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = _MAX_DAYS + 1.0
    if not -_MAX_DAYS <= number <= _MAX_DAYS:
        raise _refusal(file, name, column, days, "a time in days")
    return round(number * DAY_NS)


def _refusal(file: str, name: object, column: str, got: object, wanted: str) -> RowError:
    return RowError(f"column {column}", where=f"{file} vm {name}", wanted=wanted, got=repr(got))


def _device(name: str) -> str:
    return f"trace.bayplan.io/{name}"
