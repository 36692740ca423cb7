"""Alibaba cluster-trace-v2018: 4,000 machines, 8 days, batch tasks and containers.

Source: https://github.com/alibaba/clusterdata (cluster-trace-v2018; schema.md has the columns, as the files have no
header). CPU is in hundredths of a core, memory in hundredths of the largest machine (`machine.memory`); -1 and 101 are
invalid. Times are in seconds; 0 is before or after the eight days.

- `batch_task`: `instance_num` pods each, which arrive at `start_time` and run until `end_time`. A task without an end,
  or with an end before its start, had not ended. The dependencies in task names are not modelled, because `start_time`
  already respects them.
- `batch_instance`, if given: the instances of these tasks, each with individual times, instead of equal pods. Only the
  last attempt of an instance counts.
- `container_meta`: a pod from the earliest row of a container (0 is before the trace) until a row with `stopped`.
- `machine_meta`: the first row of a machine is a node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from bayplan.formats.files import InputFile
from bayplan.formats.trace import Trace
from bayplan.formats.traces.csv_table import CsvTable
from bayplan.formats.traces.parents import Parents
from bayplan.formats.traces.reader import Columns, ReadOptions, TraceReader
from bayplan.formats.traces.selection import SelectedTasks, Task
from bayplan.formats.traces.shapes import Shape, cpu_text, share_text

PERCENT = 100.0
FAILURE_DOMAIN = "trace.bayplan.io/failure-domain-"


class Reader(TraceReader):
    """Reads Alibaba cluster-trace-v2018; the module describes the tables."""

    name = "alibaba-2018"
    title = "Alibaba 2018"
    tables: ClassVar[Mapping[str, Columns]] = {
        "machine_meta": (
            "machine_id", "time_stamp", "failure_domain_1", "failure_domain_2", "cpu_num", "mem_size", "status",
        ),
        "container_meta": (
            "container_id", "machine_id", "time_stamp", "app_du", "status", "cpu_request", "cpu_limit", "mem_size",
        ),
        "batch_task": (
            "task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time", "plan_cpu",
            "plan_mem",
        ),
        "batch_instance": (
            "instance_name", "task_name", "job_name", "task_type", "status", "start_time", "end_time", "machine_id",
            "seq_no", "total_seq_no", "cpu_avg", "cpu_max", "mem_avg", "mem_max",
        ),
    }  # fmt: skip
    unused: ClassVar[Mapping[str, str]] = {"machine_usage": "measured usage", "container_usage": "measured usage"}

    def __init__(self, options: ReadOptions, present: Collection[str]) -> None:
        super().__init__(options, present)
        self._parents = Parents(options.selection)
        self._containers: dict[str, Task] = {}

    def read(self, table: str, file: InputFile) -> None:
        """Read one file of a table."""
        handle = {
            "machine_meta": self._machine,
            "container_meta": self._container,
            "batch_task": self._task,
            "batch_instance": self._instance,
        }[table]
        self.read_csv(file, self.tables[table], handle)

    def finish(self) -> Trace:
        """Return the trace, after adding the containers, whose rows may be in any order."""
        for task in self._containers.values():
            self.selected.add(task)
        return super().finish()

    def _machine(self, table: CsvTable, row: list[str]) -> None:
        name, _, domain_1, domain_2, cpus, memory, _ = row
        if self.has_machine(name):
            return
        share = table.amount(memory, "mem_size") / PERCENT
        if not 0 < share <= 1:
            raise table.error("mem_size", memory, wanted="above 0, at most 100")
        amounts = {
            "cpu": cpu_text(table.whole(cpus, "cpu_num")),
            "memory": share_text(share, self.options.machine.memory_bytes),
        }
        self.add_machine(name, amounts, {f"{FAILURE_DOMAIN}1": domain_1, f"{FAILURE_DOMAIN}2": domain_2})

    def _container(self, table: CsvTable, row: list[str]) -> None:
        name, _, time, app, status, cpu, _, memory = row
        if not self.sample.has(name):
            return
        time_ns = table.time_ns(time, "time_stamp") or 0
        known = self._containers.get(name)
        if known is None:
            shape = self._shape(table, cpu, memory, "cpu_request", "mem_size")
            if shape is None:
                return
            known = Task(name=name, job=app, shape=shape, arrival_ns=time_ns)
        arrival_ns, end_ns = min(known.arrival_ns, time_ns), known.end_ns
        if status == "stopped":
            end_ns = max(end_ns or 0, time_ns)
        # The rows of a container may be in any order.
        run_time_ns = None if end_ns is None else max(end_ns - arrival_ns, 0)
        self._containers[name] = Task(
            name=name, job=known.job, shape=known.shape, arrival_ns=arrival_ns, end_ns=end_ns, run_time_ns=run_time_ns
        )

    def _task(self, table: CsvTable, row: list[str]) -> None:
        name, instances, job, _, status, start, end, cpu, memory = row
        if not self.sample.has(job):
            return
        selected = self._parents.selected if "batch_instance" in self.present else self.selected
        times = self._times(table, start, end, status, selected)
        if times is None or not self.selection.in_window(*times):
            return
        count = table.whole(instances, "instance_num")
        if not count:
            self.skip("tasks without instances")
            return
        shape = self._shape(table, cpu, memory, "plan_cpu", "plan_mem")
        if shape is None:
            return
        start_ns, end_ns = times
        selected.add(
            Task(
                name=f"{job}-{name}",
                job=job,
                shape=shape,
                arrival_ns=start_ns,
                end_ns=end_ns,
                run_time_ns=None if end_ns is None else end_ns - start_ns,
                instances=count,
                count=count,
            )
        )

    def _instance(self, table: CsvTable, row: list[str]) -> None:
        name, task, job, _, status, start, end, _, number, total = row[:10]
        parent = self._parents.find(f"{job}-{task}")
        if parent is None:
            return
        if number != total:
            self.skip("earlier attempts of instances")
            return
        times = self._times(table, start, end, status, self.selected)
        if times is not None:
            self.selected.add(parent.instance(f"{job}-{task}-{name}", *times))

    def _times(
        self, table: CsvTable, start: str, end: str, status: str, selected: SelectedTasks
    ) -> tuple[int, int | None] | None:
        """Return arrival and end of a row; None if it never started, or arrived after the horizon of `selected`."""
        start_ns = table.time_ns(start, "start_time")
        if start_ns is not None and start_ns >= selected.horizon_ns:
            return None
        end_ns = table.time_ns(end, "end_time")
        if start_ns is None or (not start_ns and status in ("Ready", "Waiting")):
            self.skip("rows that never started")
            return None
        start_ns = max(start_ns, 0)
        return start_ns, end_ns if end_ns and end_ns >= start_ns else None

    def _shape(self, table: CsvTable, cpu: str, memory: str, cpu_column: str, memory_column: str) -> Shape | None:
        """Return the shape of a row's pods; None if its memory is invalid."""

        def make() -> Shape:
            share = table.amount(memory or "0", memory_column) / PERCENT
            hundredths = table.amount(cpu or "0", cpu_column)
            amounts = (
                ("cpu", cpu_text(hundredths / PERCENT)),
                ("memory", share_text(share, self.options.machine.memory_bytes)),
            )
            return Shape(amounts=amounts)

        if memory in ("-1", "101", "-1.0", "101.0"):
            self.skip("invalid memory (-1 or 101)")
            return None
        return self.shape((cpu, memory), make)
