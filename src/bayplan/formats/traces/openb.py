"""The Alibaba GPU cluster trace of 2023 ("OpenB"): node lists and task lists in CSV.

Source: https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2023). Headers identify the files, so any mix of node
lists and task lists can be read at once.

**Nodes** are as in `openb_node_list_gpu_node.yaml` of the trace: labels for hostname, operating system and GPU model;
`alibabacloud.com/gpu-count` GPUs and 1000 `alibabacloud.com/gpu-milli` for each GPU; room for 1001 pods. A node without
GPUs has no GPU label and no GPU resources.

**Tasks** become pods with one container. CPU and memory are those of the columns. A task with `num_gpu` g and
`gpu_milli` m carries both as annotations, like the pods of the FGD artifact (`gpu-milli` m per GPU, `gpu-count` g), for
plugins that assign individual GPUs. As kube-scheduler sees only extended resources, the pod also requests:

- `gpu-milli`: g * m, its share of all GPUs of the node;
- `gpu-count`: g, only if m is 1000, that is, for whole GPUs.

A task that shares a GPU must not request a count: 1,213 nodes have 6,212 GPUs, and one small task would take a whole
GPU, which is the opposite of sharing. Whole GPUs always have 1000 milli each, so the count never decides alone; it is
only reported. The two sums don't show which GPU the shares are on: three tasks of 600 are placed on two GPUs of 1000
each. The default scheduler of a real cluster with these resources makes the same error.

`gpu_spec` (models joined by `|`) becomes required node affinity to the model label; `qos` becomes a label, and
`pod_phase` an annotation. **Times** are in seconds. A task arrives at `creation_time` and runs for `deletion_time -
scheduled_time`. A task that was never scheduled (no `scheduled_time`) is deleted at `deletion_time`. Tasks of lists
without times (multigpu) arrive at 0 and run forever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from bayplan.base.errors import InputError
from bayplan.formats.files import InputFile
from bayplan.formats.traces.csv_table import CsvTable
from bayplan.formats.traces.reader import Columns, ReadOptions, TraceReader
from bayplan.formats.traces.selection import NO_LABELS, Task
from bayplan.formats.traces.shapes import GPU_COUNT, GPU_MILLI, GPU_MODEL, MILLI, Shape
from bayplan.objects.affinity import NodeSelectorRequirement
from bayplan.objects.meta import ObjectMeta, ResourceList
from bayplan.objects.node import Node, NodeStatus
from bayplan.objects.pod_defaults import rounded

QOS = "alibabacloud.com/qos"
PHASE = "alibabacloud.com/pod-phase"

_PODS_OF_A_NODE = "1001"
_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_OPTIONAL = ("gpu_spec", "qos", "pod_phase", *_TIMES)


class Reader(TraceReader):
    """Reads the OpenB trace; the module describes the tables."""

    name = "openb"
    title = "OpenB"
    tables: ClassVar[Mapping[str, Columns]] = {
        "nodes": ("sn", "cpu_milli", "memory_mib", "gpu", "model"),
        "tasks": ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
    }

    def __init__(self, options: ReadOptions, present: Collection[str]) -> None:
        super().__init__(options, present)
        # By table: the file and line of each selected name. Memory is bounded by the selection.
        self._names: dict[str, dict[str, tuple[str, int]]] = {table: {} for table in self.tables}
        self._node_statuses: dict[tuple[str, ...], NodeStatus] = {}
        self._labels: dict[str, Mapping[str, str]] = {"": NO_LABELS}

    def read(self, table: str, file: InputFile) -> None:
        """Read one file of a table. A duplicate name is an error; for tasks only if the selection has no limit."""
        handle, optional = (self._node, ()) if table == "nodes" else (self._task, _OPTIONAL)
        self.read_csv(file, self.tables[table], handle, header=True, optional=optional)

    def _node(self, table: CsvTable, row: list[str]) -> None:
        name, cpu, memory, gpus, model = (text.strip() for text in row)
        self._take_name(table, "nodes", "sn", name)
        labels = {"beta.kubernetes.io/os": "linux", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        if model:
            labels = {GPU_MODEL: model, **labels}
        key = (cpu, memory, gpus)
        status = self._node_statuses.get(key)
        if status is None:
            status = self._node_statuses[key] = _node_status(table, *key)
        self.nodes.append(Node(metadata=ObjectMeta(name=name, labels=labels), status=status))

    def _task(self, table: CsvTable, row: list[str]) -> None:
        name, cpu, memory, gpus, milli, models, qos, phase, created, deleted, scheduled = map(str.strip, row)
        if not name:
            raise table.error("name", name, wanted="a name")
        if not self.sample.has(name):
            return
        arrival_ns, run_time_ns, gone_at_ns = 0, None, None
        end_ns = None
        if "creation_time" in table.names:
            found_ns = _time(table, created, "creation_time")
            if found_ns is None:
                raise table.error("creation_time", created, wanted="a time in seconds")
            if found_ns >= self.selected.horizon_ns:
                return
            arrival_ns = found_ns
            run_time_ns, gone_at_ns, end_ns = _ends(table, arrival_ns, deleted, scheduled)
        elif deleted or scheduled:
            raise InputError("table", where=f"{table.name}:1", wanted="a column creation_time", got="times without it")
        key = (cpu, memory, gpus, milli, models, phase)
        shape = self.shape(key, lambda: _shape(table, *key))
        labels = self._labels.get(qos)
        if labels is None:
            labels = self._labels[qos] = {QOS: qos}
        if not self.selection.in_window(arrival_ns, end_ns):
            return
        if self.selection.limit is None:
            self._take_name(table, "tasks", "name", name)
        self.selected.add(
            Task(
                name=name,
                shape=shape,
                arrival_ns=arrival_ns,
                run_time_ns=run_time_ns,
                gone_at_ns=gone_at_ns,
                end_ns=end_ns,
                labels=labels,
            )
        )

    def _take_name(self, table: CsvTable, kind: str, column: str, name: str) -> None:
        names = self._names[kind]
        if not name:
            raise table.error(column, name, wanted="a name")
        if name in names:
            raise table.error(column, name, wanted="a unique name (also at {}:{})".format(*names[name]))
        names[name] = (table.name, table.line)


def _ends(table: CsvTable, arrival_ns: int, deleted: str, scheduled: str) -> tuple[int | None, int | None, int | None]:
    """Return the run time, the deletion time of a task that never ran, and the end in the trace; each None if it does not apply."""
    deleted_ns, scheduled_ns = _time(table, deleted, "deletion_time"), _time(table, scheduled, "scheduled_time")
    if scheduled_ns is not None and scheduled_ns < arrival_ns:
        raise table.error("scheduled_time", scheduled, wanted="a time at or after creation_time")
    if deleted_ns is None:
        return None, None, None
    if scheduled_ns is None:
        if deleted_ns < arrival_ns:
            raise table.error("deletion_time", deleted, wanted="a time at or after creation_time")
        return None, deleted_ns, deleted_ns
    if deleted_ns < scheduled_ns:
        raise table.error("deletion_time", deleted, wanted="a time at or after scheduled_time")
    return deleted_ns - scheduled_ns, None, deleted_ns


def _time(table: CsvTable, text: str, column: str) -> int | None:
    time_ns = table.time_ns(text, column)
    if time_ns is not None and time_ns < 0:
        raise table.error(column, text, wanted="a time in seconds of at least 0")
    return time_ns


def _node_status(table: CsvTable, cpu: str, memory: str, gpus: str) -> NodeStatus:
    count = table.whole(gpus, "gpu")
    amounts: ResourceList = {GPU_COUNT: str(count), GPU_MILLI: str(count * MILLI)} if count else {}
    amounts["cpu"] = f"{table.whole(cpu, 'cpu_milli')}m"
    amounts["memory"] = f"{table.whole(memory, 'memory_mib')}Mi"
    amounts["pods"] = _PODS_OF_A_NODE
    # Use the API's canonical form here, so that all nodes of a kind keep sharing these amounts.
    amounts = rounded(amounts)
    return NodeStatus(capacity=amounts, allocatable=amounts)


def _shape(table: CsvTable, cpu: str, memory: str, num_gpu: str, gpu_milli: str, gpu_spec: str, phase: str) -> Shape:
    gpus, milli = table.whole(num_gpu, "num_gpu"), table.whole(gpu_milli, "gpu_milli")
    if gpus and not 0 < milli <= MILLI:
        raise table.error("gpu_milli", gpu_milli, wanted=f"1 to {MILLI} if num_gpu is not 0")
    amounts = [
        ("cpu", f"{table.whole(cpu, 'cpu_milli')}m"),
        ("memory", f"{table.whole(memory, 'memory_mib')}Mi"),
    ]
    annotations: list[tuple[str, str]] = []
    requirements: tuple[NodeSelectorRequirement, ...] = ()
    if gpus:
        amounts.append((GPU_MILLI, str(gpus * milli)))
        if milli == MILLI:
            amounts.append((GPU_COUNT, str(gpus)))
        annotations = [(GPU_MILLI, str(milli)), (GPU_COUNT, str(gpus))]
        models = tuple(dict.fromkeys(name for name in gpu_spec.split("|") if name))
        if models:
            annotations.append((GPU_MODEL, "|".join(models)))
            requirements = (NodeSelectorRequirement(key=GPU_MODEL, operator="In", values=models),)
    if phase:
        annotations.append((PHASE, phase))
    return Shape(
        amounts=tuple(amounts),
        annotations=tuple(annotations),
        requirements=requirements,
        limited=True,
        image="tensorflow:latest",
    )
