"""Read the Alibaba GPU cluster trace of 2023 ("OpenB"): node lists and task lists in CSV to typed nodes and pods.

The trace: https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2023). Headers identify the files, so any mix of
node lists and task lists can be read at once; both lists of nodes, all lists of tasks, plain or gzipped.

**Nodes** are made as `openb_node_list_gpu_node.yaml` of the trace has them: labels for hostname, operating system and
GPU model; `alibabacloud.com/gpu-count` GPUs and 1000 `alibabacloud.com/gpu-milli` for each; room for 1001 pods. A node
without GPUs has none of the GPU parts.

**Tasks** become pods of one container. CPU and memory are what the columns say. A task of `num_gpu` g and `gpu_milli` m
carries both as annotations, as the pods of the FGD artifact do (per GPU: `gpu-milli` m, `gpu-count` g), for plugins that
place on single GPUs. kube-scheduler itself sees two extended resources, so the pod also requests:

- `gpu-milli`: g * m, its share of the node's GPUs all together;
- `gpu-count`: g, only where m is 1000, that is for whole GPUs.

A task that shares a GPU must not request a count: 1,213 nodes have 6,212 GPUs, and each would then be taken by one task
however small, which is the opposite of sharing. Whole GPUs are always 1000 milli each, so the count never decides alone;
it is there to be counted. What two sums can't say is which GPU a share is on: three tasks of 600 are let on two GPUs of
1000 each. The default scheduler of a real cluster with these resources errs in the same way.

`gpu_spec` (models joined by `|`) becomes required node affinity to the model label; `qos` a label, `pod_phase` an
annotation. **Times** are in seconds. A task arrives at `creation_time`; it runs for `deletion_time - scheduled_time`; one
that was never scheduled (no `scheduled_time`) is gone at `deletion_time`. Lists without times (multigpu) arrive at 0 and
run for ever.
"""

import csv
import io
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from enum import Enum

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.formats.files import InputFile
from bayplan.formats.trace import TimedPod, Trace
from bayplan.objects.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from bayplan.objects.defaults import default_pod_spec
from bayplan.objects.meta import ObjectMeta, ResourceList
from bayplan.objects.node import Node, NodeStatus
from bayplan.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from bayplan.objects.pod_defaults import rounded

FORMAT = "OpenB"
GPU_COUNT = "alibabacloud.com/gpu-count"
GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_MODEL = "alibabacloud.com/gpu-card-model"
QOS = "alibabacloud.com/qos"
PHASE = "alibabacloud.com/pod-phase"
NAMESPACE = "default"

_PODS_OF_A_NODE = "1001"
_MILLI = 1000
_MAX_NUMBER = 2**40  # Far beyond any machine, and small enough for sums of bytes in int64.
_LAST_SECOND = 2**62 // SECOND_NS

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_TASK_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_SHAPE_COLUMNS = (*_TASK_COLUMNS[1:], "gpu_spec")
_TIME_COLUMNS = ("creation_time", "deletion_time", "scheduled_time")


class Table(Enum):
    """The kind of a file of the trace; the value names its columns."""

    NODES = _NODE_COLUMNS
    TASKS = _TASK_COLUMNS


def sniff(head: bytes) -> Table | None:
    """Detect from the first bytes of a file (decompressed) whether it is a table of the trace, and which."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    columns = {name.strip() for name in first.split(",")}
    return next((table for table in Table if columns.issuperset(table.value)), None)


class Reader:
    """Reads tables of the trace into one `Trace`."""

    def __init__(self) -> None:
        self.trace = Trace(format=FORMAT)
        # The file and the line in which each name stands.
        self._names: dict[Table, dict[str, tuple[str, int]]] = {table: {} for table in Table}
        self._statuses: dict[tuple[str, ...], NodeStatus] = {}
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._labels: dict[str, dict[str, str]] = {}
        self._annotations: dict[tuple[object, ...], dict[str, str]] = {}

    def read(self, file: InputFile, data: bytes) -> None:
        """Read one table.

        Raises:
            InputError: no table of the trace; a bad row, with file, line and column; a name that stands twice.
        """
        table = sniff(data[:65536])
        if table is None:
            wanted = "a header with " + " or ".join(",".join(each.value) for each in Table)
            raise InputError("table", where=f"{file.name}:1", wanted=wanted, got="none of them")
        self.trace.files.append(file.name)
        names, column = self._names[table], table.value[0]
        row: _Row | None = None
        for row in _rows(data, file.name):
            name = row.text(column)
            if not name or name in names:
                raise _refused_name(row, column, names.get(name))
            names[name] = (row.file, row.line)
            if table is Table.NODES:
                self.trace.nodes.append(self._node(row))
            else:
                self.trace.pods.append(self._task(row))
        if row is None:
            raise InputError("table", where=file.name, wanted="at least one row", got="a header alone")

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _node(self, row: "_Row") -> Node:
        name, model = row.text("sn"), row.text("model")
        labels = {"beta.kubernetes.io/os": "linux", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        if model:
            labels = {GPU_MODEL: model, **labels}
        key = (row.text("cpu_milli"), row.text("memory_mib"), row.text("gpu"))
        status = self._statuses.get(key)
        if status is None:
            status = self._statuses[key] = _node_status(row)
        return Node(metadata=ObjectMeta(name=name, labels=labels), status=status)

    # --- tasks --------------------------------------------------------------------------------------------------------

    def _task(self, row: "_Row") -> TimedPod:
        key = tuple([row.text(column) for column in _SHAPE_COLUMNS])
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _Shape.of(row)
        qos, phase = row.text("qos"), row.text("pod_phase")
        labels = self._labels.setdefault(qos, {QOS: qos} if qos else {})
        annotations = self._annotations.get((id(shape), phase))
        if annotations is None:
            annotations = {**shape.annotations, **({PHASE: phase} if phase else {})}
            self._annotations[id(shape), phase] = annotations
        metadata = ObjectMeta(name=row.text("name"), namespace=NAMESPACE, labels=labels, annotations=annotations)
        pod = Pod(metadata=metadata, spec=shape.spec)
        if not row.has("creation_time"):
            return TimedPod(pod=pod, arrival_ns=0)
        return _timed(pod, row)


def _refused_name(row: "_Row", column: str, earlier: tuple[str, int] | None) -> InputError:
    """Return why a name is refused: it is empty, or an earlier row has it."""
    if earlier is None:
        return row.refusal(column, wanted="a name")
    return row.refusal(column, wanted=f"a name of its own ({earlier[0]}:{earlier[1]} has it)")


def _timed(pod: Pod, row: "_Row") -> TimedPod:
    created, deleted, scheduled = [row.time_ns(column) for column in _TIME_COLUMNS]
    if created is None:
        raise row.refusal("creation_time", wanted="a time in seconds")
    if deleted is None:
        return TimedPod(pod=pod, arrival_ns=created)
    if scheduled is None:
        if deleted < created:
            raise row.refusal("deletion_time", wanted="a time at or after creation_time")
        return TimedPod(pod=pod, arrival_ns=created, gone_at_ns=deleted)
    if deleted < scheduled:
        raise row.refusal("deletion_time", wanted="a time at or after scheduled_time")
    return TimedPod(pod=pod, arrival_ns=created, run_time_ns=deleted - scheduled)


def _node_status(row: "_Row") -> NodeStatus:
    gpus = row.number("gpu")
    amounts: ResourceList = {GPU_COUNT: str(gpus), GPU_MILLI: str(gpus * _MILLI)} if gpus else {}
    amounts["cpu"] = f"{row.number('cpu_milli')}m"
    amounts["memory"] = f"{row.number('memory_mib')}Mi"
    amounts["pods"] = _PODS_OF_A_NODE
    # In the API's form, so that all nodes of a kind continue to share them.
    amounts = rounded(amounts)
    return NodeStatus(capacity=amounts, allocatable=amounts)


class _Shape(msgspec.Struct, frozen=True):
    """The resources of tasks with equal requests."""

    spec: PodSpec
    annotations: dict[str, str]

    @classmethod
    def of(cls, row: "_Row") -> "_Shape":
        gpus, milli = row.number("num_gpu"), row.number("gpu_milli")
        if gpus and not 0 < milli <= _MILLI:
            raise row.refusal("gpu_milli", wanted=f"1 to {_MILLI} where num_gpu is not 0")
        amounts: ResourceList = {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}
        annotations: dict[str, str] = {}
        affinity = None
        if gpus:
            amounts[GPU_MILLI] = str(gpus * milli)
            if milli == _MILLI:
                amounts[GPU_COUNT] = str(gpus)
            annotations = {GPU_MILLI: str(milli), GPU_COUNT: str(gpus)}
            models = tuple(dict.fromkeys(name for name in row.text("gpu_spec").split("|") if name))
            if models:
                annotations[GPU_MODEL] = "|".join(models)
                affinity = _affinity(models)
        container = Container(
            name="main",
            image="tensorflow:latest",
            resources=ResourceRequirements(limits=amounts, requests=amounts),
        )
        return cls(default_pod_spec(PodSpec(containers=(container,), affinity=affinity)), annotations)


def _affinity(models: tuple[str, ...]) -> Affinity:
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=GPU_MODEL, operator="In", values=models),))
    required = NodeSelector(node_selector_terms=(term,))
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))


# --- rows -------------------------------------------------------------------------------------------------------------


class _Row:
    """A row of a table, with what an error needs to know of it; one object goes through the whole table.

    Attributes:
        values: without spaces around them.
    """

    __slots__ = ("columns", "file", "line", "values")

    def __init__(self, file: str, columns: dict[str, int]) -> None:
        self.file = file
        self.columns = columns
        self.line = 0
        self.values: list[str] = []

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    def has(self, column: str) -> bool:
        return column in self.columns

    def text(self, column: str) -> str:
        index = self.columns.get(column)
        return "" if index is None else self.values[index]

    def number(self, column: str) -> int:
        """Return a whole number that is not negative."""
        text = self.text(column)
        if not text.isascii() or not text.isdigit() or len(text) > 13 or (number := int(text)) > _MAX_NUMBER:
            raise self.refusal(column, wanted="a whole number, not negative")
        return number

    def time_ns(self, column: str) -> int | None:
        """Return a time in seconds as nanoseconds, None if there is none."""
        text = self.text(column)
        if not text:
            return None
        if text.isascii() and text.isdigit() and len(text) <= 9:
            return int(text) * SECOND_NS
        try:
            seconds = Decimal(text)
        except InvalidOperation:
            raise self.refusal(column, wanted="a time in seconds") from None
        if not seconds.is_finite() or not 0 <= seconds <= _LAST_SECOND:
            raise self.refusal(column, wanted=f"a time in seconds, at most {_LAST_SECOND}")
        return int(seconds * SECOND_NS)

    def refusal(self, column: str, *, wanted: str) -> InputError:
        return InputError(f"column {column}", where=self.where, wanted=wanted, got=repr(self.text(column)))


def _rows(data: bytes, file: str) -> Iterator[_Row]:
    """Yield the rows of a table below its header; empty lines are left out."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise InputError("table", where=f"{file}:{line}", wanted="UTF-8", got="other bytes") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    row = _Row(file, {})
    try:
        for values in reader:
            if not row.columns:
                row.columns = {name.strip(): index for index, name in enumerate(values)}
                width = len(values)
            elif values:
                if len(values) != width:
                    where = f"{file}:{reader.line_num}"
                    raise InputError("row", where=where, wanted=f"{width} columns", got=str(len(values)))
                row.line, row.values = reader.line_num, [value.strip() for value in values]
                yield row
    except csv.Error as problem:
        raise InputError("row", where=f"{file}:{reader.line_num}", wanted="CSV", got=str(problem)) from None
