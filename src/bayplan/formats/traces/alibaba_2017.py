"""Alibaba cluster-trace-v2017: 1,300 machines, about a day, batch tasks and containers.

Source: https://github.com/alibaba/clusterdata (cluster-trace-v2017, trace_201708.md and schema.csv). The files have no
header. Memory is a fraction of the largest machine (`machine.memory`). `plan_cpu` is in hundredths of a core for batch
tasks (issue 11 of that repository, although the schema says cores), and in cores for containers and machines. Times are
in seconds; 0 and negative times are before the trace.

- `batch_task`: `instance_num` pods each, from `create_timestamp` to `modify_timestamp`, if the task had ended by then.
- `batch_instance`, if given: the instances of these tasks, each with individual times. Only the last attempt counts
  (`seq_no` is `total_seq_no`). Rows without job and task are ignored.
- `container_event`: a pod from `Create` to `Remove`.
- `server_event`: `add` adds a node; machine errors are not modelled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from bayplan.formats.files import InputFile
from bayplan.formats.trace import Trace
from bayplan.formats.traces.csv_table import CsvTable
from bayplan.formats.traces.parents import Parents
from bayplan.formats.traces.reader import Columns, ReadOptions, TraceReader
from bayplan.formats.traces.selection import Task
from bayplan.formats.traces.shapes import Shape, cpu_text, share_text

PERCENT = 100.0
ENDED = ("Terminated", "Failed", "Cancelled", "Interrupted")


class Reader(TraceReader):
    """Reads Alibaba cluster-trace-v2017; the module describes the tables."""

    name = "alibaba-2017"
    title = "Alibaba 2017"
    tables: ClassVar[Mapping[str, Columns]] = {
        "server_event": (
            "timestamp", "machine_id", "event_type", "event_detail", "cpus", "memory", "disk",
        ),
        "container_event": (
            "timestamp", "event_type", "instance_id", "machine_id", "plan_cpu", "plan_mem", "plan_disk", "cpuset",
        ),
        "batch_task": (
            "create_timestamp", "modify_timestamp", "job_id", "task_id", "instance_num", "status", "plan_cpu", "plan_mem",
        ),
        "batch_instance": (
            "start_timestamp", "end_timestamp", "job_id", "task_id", "machine_id", "status", "seq_no", "total_seq_no",
            "real_cpu_max", "real_cpu_avg", "real_mem_max", "real_mem_avg",
        ),
    }  # fmt: skip
    unused: ClassVar[Mapping[str, str]] = {"server_usage": "measured usage", "container_usage": "measured usage"}

    def __init__(self, options: ReadOptions, present: Collection[str]) -> None:
        super().__init__(options, present)
        self._parents = Parents(options.selection)
        self._instances: dict[str, int] = {}
        self._containers: dict[str, Task] = {}
        self._removed: dict[str, int] = {}

    def read(self, table: str, file: InputFile) -> None:
        """Read one file of a table."""
        handle = {
            "server_event": self._machine,
            "container_event": self._container,
            "batch_task": self._task,
            "batch_instance": self._instance,
        }[table]
        self.read_csv(file, self.tables[table], handle)

    def finish(self) -> Trace:
        """Return the trace, after adding the containers, whose end may be in any file."""
        for name, task in self._containers.items():
            end_ns = self._removed.get(name)
            run_time_ns = None if end_ns is None else max(end_ns - task.arrival_ns, 0)
            self.selected.add(
                Task(
                    name=task.name,
                    shape=task.shape,
                    arrival_ns=task.arrival_ns,
                    run_time_ns=run_time_ns,
                    end_ns=end_ns,
                )
            )
        return super().finish()

    def _machine(self, table: CsvTable, row: list[str]) -> None:
        _, name, event, _, cpus, memory, _ = row
        if event != "add":
            self.skip("errors of machines")
            return
        share = table.amount(memory, "memory")
        if not 0 < share <= 1:
            raise table.error("memory", memory, wanted="above 0, at most 1")
        amounts = {
            "cpu": cpu_text(table.amount(cpus, "cpus")),
            "memory": share_text(share, self.options.machine.memory_bytes),
        }
        self.add_machine(f"machine-{name}", amounts, {})

    def _container(self, table: CsvTable, row: list[str]) -> None:
        time, event, name, _, cpu, memory, _, _ = row
        if not self.sample.has(name):
            return
        time_ns = max(table.time_ns(time, "timestamp") or 0, 0)
        if event == "Create":
            shape = self._shape(table, cpu, memory, cores=1.0)
            self._containers[name] = Task(name=f"container-{name}", shape=shape, arrival_ns=time_ns)
        elif event == "Remove":
            self._removed[name] = time_ns
        else:
            raise table.error("event_type", event, wanted="Create or Remove")

    def _task(self, table: CsvTable, row: list[str]) -> None:
        start, end, job, name, instances, status, cpu, memory = row
        if not self.sample.has(job):
            return
        selected = self._parents.selected if "batch_instance" in self.present else self.selected
        start_ns = max(table.time_ns(start, "create_timestamp") or 0, 0)
        if start_ns >= selected.horizon_ns:
            return
        end_ns = self._end(table, start_ns, end, status, "modify_timestamp")
        if not self.selection.in_window(start_ns, end_ns):
            return
        count = table.whole(instances, "instance_num")
        if not count:
            self.skip("tasks without instances")
            return
        selected.add(
            Task(
                name=f"{job}-{name}",
                job=job,
                shape=self._shape(table, cpu, memory, cores=1 / PERCENT),
                arrival_ns=start_ns,
                end_ns=end_ns,
                run_time_ns=None if end_ns is None else end_ns - start_ns,
                instances=count,
                count=count,
            )
        )

    def _instance(self, table: CsvTable, row: list[str]) -> None:
        start, end, job, task, _, status, number, total = row[:8]
        if not job or not task:
            self.skip("instances without job or task")
            return
        name = f"{job}-{task}"
        parent = self._parents.find(name)
        if parent is None:
            return
        if number != total:
            self.skip("earlier attempts of instances")
            return
        if status in ("Ready", "Waiting"):
            self.skip("rows that never started")
            return
        start_ns = max(table.time_ns(start, "start_timestamp") or 0, 0)
        end_ns = self._end(table, start_ns, end, status, "end_timestamp")
        number_of = self._instances[name] = self._instances.get(name, -1) + 1
        self.selected.add(parent.instance(f"{name}-{number_of}", start_ns, end_ns))

    def _end(self, table: CsvTable, start_ns: int, end: str, status: str, column: str) -> int | None:
        """Return the end of a row in nanoseconds; None if the task or instance had not ended."""
        end_ns = table.time_ns(end, column)
        return end_ns if end_ns and end_ns >= start_ns and status in ENDED else None

    def _shape(self, table: CsvTable, cpu: str, memory: str, *, cores: float) -> Shape:
        """Return the shape of a row's pods. `cores`: the number of cores in one unit of `plan_cpu`."""

        def make() -> Shape:
            share = table.amount(memory or "0", "plan_mem")
            amounts = (
                ("cpu", cpu_text(table.amount(cpu or "0", "plan_cpu") * cores)),
                ("memory", share_text(share, self.options.machine.memory_bytes)),
            )
            return Shape(amounts=amounts)

        return self.shape((cpu, memory, cores), make)
