"""Alibaba cluster-trace-gpu-v2020 (PAI): 1,800 machines with 6,500 GPUs, two months of machine learning jobs.

Source: https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2020, README.md). The files have no header; their
columns are in separate files. `plan_cpu` is in hundredths of a core, `plan_mem` in GiB, `plan_gpu` in hundredths of a
GPU, all for one instance. Empty amounts are 0. Times are in seconds since an unpublished time.

- `pai_task_table`: `inst_num` pods each, which arrive at `start_time`, when the task was launched, and run until
  `end_time`.
- `pai_job_table`, if given: tasks arrive when their job was submitted, before it waited.
- `pai_instance_table`, if given: the instances of tasks, each with an individual run time.
- `pai_machine_spec`: nodes.

GPUs are requested as in `openb`, so that the same plugins can share them. `gpu_type` of a task is the type that it got,
not the type that it requested, so it becomes a label and not a constraint.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from bayplan.formats.files import InputFile
from bayplan.formats.traces.csv_table import CsvTable
from bayplan.formats.traces.parents import Parents
from bayplan.formats.traces.reader import Columns, ReadOptions, TraceReader
from bayplan.formats.traces.selection import NO_LABELS, Task
from bayplan.formats.traces.shapes import (
    GPU_COUNT,
    GPU_MILLI,
    GPU_MODEL,
    MILLI,
    Shape,
    cpu_text,
    gpu_amounts,
    mebibytes_text,
)

PERCENT = 100.0
MEBIBYTES = 1024
_JOB = Shape(amounts=())


class Reader(TraceReader):
    """Reads Alibaba cluster-trace-gpu-v2020; the module describes the tables."""

    name = "alibaba-gpu-2020"
    title = "Alibaba GPU 2020"
    tables: ClassVar[Mapping[str, Columns]] = {
        "pai_machine_spec": ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"),
        "pai_job_table": ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
        "pai_task_table": (
            "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
            "gpu_type",
        ),
        "pai_instance_table": (
            "job_name", "task_name", "inst_name", "worker_name", "inst_id", "status", "start_time", "end_time", "machine",
        ),
    }  # fmt: skip
    unused: ClassVar[Mapping[str, str]] = {
        "pai_sensor_table": "measured usage",
        "pai_machine_metric": "measured usage",
        "pai_group_tag_table": "tags of jobs",
    }

    def __init__(self, options: ReadOptions, present: Collection[str]) -> None:
        super().__init__(options, present)
        self._jobs = Parents(options.selection)
        self._tasks = Parents(options.selection)
        self._labels: dict[str, Mapping[str, str]] = {"": NO_LABELS}

    def read(self, table: str, file: InputFile) -> None:
        """Read one file of a table."""
        handle = {
            "pai_machine_spec": self._machine,
            "pai_job_table": self._job,
            "pai_task_table": self._task,
            "pai_instance_table": self._instance,
        }[table]
        self.read_csv(file, self.tables[table], handle)

    def made_machine(self) -> Mapping[str, str]:
        """Return the amounts of a generated machine, including the GPUs of the options."""
        return {**super().made_machine(), **_gpus(self.options.machine.gpus)}

    def _machine(self, table: CsvTable, row: list[str]) -> None:
        name, model, cpus, memory, gpus = row
        amounts = {
            "cpu": cpu_text(table.amount(cpus, "cap_cpu")),
            "memory": mebibytes_text(table.amount(memory, "cap_mem") * MEBIBYTES),
            **_gpus(table.whole(gpus or "0", "cap_gpu")),
        }
        self.add_machine(name, amounts, {GPU_MODEL: model})

    def _job(self, table: CsvTable, row: list[str]) -> None:
        job, _, _, _, start, end = row
        if not self.sample.has(job):
            return
        start_ns = table.time_ns(start, "start_time")
        if start_ns is None:
            self.skip("jobs without a start time")
            return
        end_ns = self._end(table, start_ns, end)
        self._jobs.selected.add(Task(name=job, job=job, shape=_JOB, arrival_ns=start_ns, end_ns=end_ns))

    def _task(self, table: CsvTable, row: list[str]) -> None:
        job, name, instances, _, start, end, cpu, memory, gpu, model = row
        if not self.sample.has(job):
            return
        selected = self._tasks.selected if "pai_instance_table" in self.present else self.selected
        parent = None
        if "pai_job_table" in self.present:
            parent = self._jobs.find(job)
            if parent is None:
                return
        start_ns = table.time_ns(start, "start_time")
        if start_ns is None:
            self.skip("tasks without a start time")
            return
        arrival_ns = start_ns if parent is None else min(parent.arrival_ns, start_ns)
        if arrival_ns >= selected.horizon_ns:
            return
        end_ns = self._end(table, start_ns, end)
        if not self.selection.in_window(arrival_ns, end_ns):
            return
        count = table.whole(instances or "1", "inst_num")
        if not count:
            self.skip("tasks without instances")
            return
        labels = self._labels.get(model)
        if labels is None:
            labels = self._labels[model] = {GPU_MODEL: model}
        selected.add(
            Task(
                name=f"{job}-{name}",
                job=job,
                shape=self._shape(table, cpu, memory, gpu),
                arrival_ns=arrival_ns,
                end_ns=end_ns,
                run_time_ns=None if end_ns is None else end_ns - start_ns,
                instances=count,
                count=count,
                labels=labels,
            )
        )

    def _instance(self, table: CsvTable, row: list[str]) -> None:
        job, task, name, _, _, _, start, end, _ = row
        parent = self._tasks.find(f"{job}-{task}")
        if parent is None:
            return
        start_ns = table.time_ns(start, "start_time")
        if start_ns is None:
            self.skip("instances without a start time")
            return
        end_ns = self._end(table, start_ns, end)
        arrival_ns = min(parent.arrival_ns, start_ns)
        self.selected.add(
            Task(
                name=f"{job}-{task}-{name[:16]}",
                job=job,
                shape=parent.shape,
                arrival_ns=arrival_ns,
                end_ns=end_ns,
                run_time_ns=None if end_ns is None else end_ns - start_ns,
                labels=parent.labels,
            )
        )

    def _end(self, table: CsvTable, start_ns: int, end: str) -> int | None:
        """Return the end of a row; None if the row has none, or one before its start."""
        end_ns = table.time_ns(end, "end_time")
        return end_ns if end_ns and end_ns >= start_ns else None

    def _shape(self, table: CsvTable, cpu: str, memory: str, gpu: str) -> Shape:
        def make() -> Shape:
            gpus, annotations = gpu_amounts(table.amount(gpu or "0", "plan_gpu"))
            amounts = (
                ("cpu", cpu_text(table.amount(cpu or "0", "plan_cpu") / PERCENT)),
                ("memory", mebibytes_text(table.amount(memory or "0", "plan_mem") * MEBIBYTES)),
                *gpus,
            )
            return Shape(amounts=amounts, annotations=annotations)

        return self.shape((cpu, memory, gpu), make)


def _gpus(count: int) -> Mapping[str, str]:
    return {GPU_COUNT: str(count), GPU_MILLI: str(count * MILLI)} if count else {}
