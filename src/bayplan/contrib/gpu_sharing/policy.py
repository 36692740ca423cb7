"""The base of the GPU sharing policies: Filter and Reserve for GPUs, and the nodes as arrays for the scores."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bayplan.base.errors import ConfigurationError
from bayplan.contrib.gpu_sharing.devices import Assignments, DeviceTable, pod_key, tightest
from bayplan.contrib.gpu_sharing.requests import GPU_INDEX, GPU_SIZE_MILLI, GpuRequest, gpu_request
from bayplan.formats.traces.shapes import GPU_COUNT, GPU_MILLI, GPU_MODEL
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads, ReservePlugin, ScorePlugin
from bayplan.framework.status import SUCCESS, UNRESOLVABLE_BIT, Status, unresolvable, unschedulable
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE
from bayplan.state.resource_table import CPU
from bayplan.state.views import Rows

MAX_CPU_MILLI = 128_000
MAX_GPU_MILLI = 8_000
"""The largest machine of the paper's experiments. Policies express amounts as shares of it."""

CHOSEN_GPUS = "GpuSharingDevices"
"""The key in the cycle state of the chosen GPUs: the first policy of a profile stores them, and the others use them."""

_NO_GPUS, _OTHER_MODEL, _NO_ROOM, _BAD_REQUEST = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """The data of a pod for a policy.

    Attributes:
        key: the values of the other fields, for comparisons.
        request: the GPUs that the pod requests.
        cpu_milli: the CPU that it requests, in milli-CPUs.
        problem: why its annotations are invalid, or "".
    """

    key: Hashable
    request: GpuRequest = field(compare=False)
    cpu_milli: int = field(compare=False)
    problem: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class GpuNodes:
    """Some nodes as arrays with one element per node.

    Attributes:
        cpu: int64, the free CPU in milli-CPUs.
        free: int64[rows, GPUs], the free milli-GPUs of each GPU.
        counts: int64, the number of GPUs.
        models: positions in `DeviceTable.model_names`.
        kinds: int64[rows, kinds], see `DeviceTable.kinds`.
    """

    cpu: Ints
    free: Ints
    counts: Ints
    models: Index
    kinds: Ints

    def at(self, chosen: Index) -> GpuNodes:
        """Return some of these nodes."""
        return GpuNodes(
            self.cpu[chosen], self.free[chosen], self.counts[chosen], self.models[chosen], self.kinds[chosen]
        )


class GpuPolicy(FilterPlugin[GpuSpec], ScorePlugin[GpuSpec], ReservePlugin[GpuSpec]):
    """Filters nodes by GPUs, scores them and reserves GPUs. Subclasses implement `score_nodes`, and can override `choose`.

    Nodes that the filters reject may get any score.
    """

    reads = Reads.NODES | Reads.USAGE

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        check_fields(type(self).__name__, arguments, self.argument_names())
        self._assignments: Assignments = {}
        self._table: DeviceTable | None = None

    @classmethod
    def argument_names(cls) -> Sequence[str]:
        """Return the names of the arguments that a configuration may give."""
        return ()

    def score_nodes(self, spec: GpuSpec, params: Params, nodes: GpuNodes) -> Ints:
        """Return the score of each node. The scores of nodes without room for the pod are ignored."""
        raise TypeError(f"{type(self).__name__} lacks score_nodes()")

    def choose(
        self, pod: Pod, cpu_milli: int, model: str, free: list[int], request: GpuRequest
    ) -> Sequence[int] | None:
        """Return the GPUs of a node that a pod gets; None if it does not fit.

        Args:
            pod: the pod.
            cpu_milli: the free CPU of the node without the pod.
            model: the model of the node's GPUs.
            free: the free milli-GPUs of each GPU without the pod.
            request: the GPUs that the pod requests.
        """
        return tightest(free, request)

    # Pods and nodes.

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return the annotations that request GPUs; None if the pod has none."""
        annotations = pod.metadata.annotations
        found = tuple(annotations.get(name, "") for name in (GPU_COUNT, GPU_MILLI, GPU_MODEL))
        return found if any(found) else None

    def compile(self, pod: Pod, cluster: ClusterState) -> GpuSpec:
        """Return the GPU and CPU requests of a pod."""
        request = gpu_request(pod)
        problem = request if isinstance(request, str) else ""
        found = GpuRequest() if isinstance(request, str) else request
        cpu_milli = int(cluster.footprint(pod).vector[FIRST_RESOURCE + CPU])
        return GpuSpec((found, cpu_milli, problem), found, cpu_milli, problem)

    def table(self, state: ClusterState) -> DeviceTable:
        """Return the device table of a state, up to date."""
        table = self._table_of(state)
        table.refresh()
        return table

    def _table_of(self, state: ClusterState) -> DeviceTable:
        """Return the device table of a state, as of its last refresh."""
        table = self._table
        if table is None or table.state is not state:
            table = self._table = DeviceTable(state, self._assignments, self.handle.pods)
        return table

    def nodes_of(self, rows: Rows) -> GpuNodes:
        """Return the nodes of a view as arrays."""
        table, numbers = self.table(rows.state), rows.row_numbers()
        cpu = rows.allocatable(CPU) - rows.requested(CPU)
        return GpuNodes(cpu, table.free[numbers], table.counts[numbers], table.models[numbers], table.kinds[numbers])

    # Filter.

    def filter(self, spec: GpuSpec, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes without GPUs, with another model, or with too little room on their GPUs."""
        codes: Codes = np.zeros(len(rows), dtype=np.uint16)
        if spec.problem:
            codes[:] = _BAD_REQUEST | UNRESOLVABLE_BIT
            return codes
        request = spec.request
        if not request.count:
            return codes
        table, numbers = self.table(rows.state), rows.row_numbers()
        fitting = (table.free[numbers] >= request.milli).sum(axis=1)
        codes[fitting < request.count] = _NO_ROOM
        allowed = np.array([request.allows(name) for name in table.model_names], dtype=np.bool_)
        codes[~allowed[table.models[numbers]]] = _OTHER_MODEL | UNRESOLVABLE_BIT
        codes[table.counts[numbers] == 0] = _NO_GPUS | UNRESOLVABLE_BIT
        return codes

    def reasons(self, spec: GpuSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the message of a verdict."""
        kind = verdict & ~UNRESOLVABLE_BIT
        if kind == _BAD_REQUEST:
            return (f"pod {spec.problem}",)
        if kind == _NO_GPUS:
            return ("node(s) had no GPUs",)
        if kind == _OTHER_MODEL:
            return ("node(s) had GPUs of another model",)
        return ("node(s) didn't have enough room on their GPUs",)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register deleted pods, and nodes that are added or whose allocatable resources or labels change."""
        return (
            (ClusterEvent(EventResource.POD, ActionType.DELETE), None),
            (
                ClusterEvent(
                    EventResource.NODE,
                    ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL,
                ),
                None,
            ),
        )

    # Score.

    def score(self, spec: GpuSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the scores of the policy for the nodes of a view."""
        return self.score_nodes(spec, params or (), self.nodes_of(rows))

    # Reserve.

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Choose the GPUs of the pod on its node, and record them."""
        request = gpu_request(pod)
        if isinstance(request, str):
            return unresolvable(f"pod {request}")
        if not request.count:
            return SUCCESS
        cluster = self.handle.cluster
        row, table = cluster.nodes.row_of[node_name], self._table_of(cluster)
        given = state.read(CHOSEN_GPUS, tuple)
        chosen = given if given is not None else self._choose(table, pod, row, request)
        if chosen is None:
            return unschedulable("node(s) didn't have enough room on their GPUs")
        table.assign(pod, row, tuple(chosen))
        state.write(CHOSEN_GPUS, tuple(chosen))
        return SUCCESS

    def _choose(self, table: DeviceTable, pod: Pod, row: int, request: GpuRequest) -> Sequence[int] | None:
        cluster = table.state
        own_milli = int(cluster.footprint(pod).vector[FIRST_RESOURCE + CPU])
        requested = int(cluster.usage[FIRST_RESOURCE + CPU, row])
        cpu_milli = int(cluster.nodes.allocatable[CPU, row]) - requested + own_milli
        return self.choose(pod, cpu_milli, table.model_of(row), table.free_before(pod, row), request)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Free the GPUs of the pod."""
        self._assignments.pop(pod_key(pod), None)

    def reserved(self, state: CycleState) -> Mapping[str, object]:
        """Return the GPU numbers of the pod, as its annotation."""
        chosen = state.read(CHOSEN_GPUS, tuple)
        return {GPU_INDEX: "-".join(map(str, chosen))} if chosen else {}


def check_fields(plugin: str, arguments: object, names: Sequence[str]) -> Mapping[str, object]:
    """Return the arguments of a plugin as a mapping.

    Raises:
        ConfigurationError: the arguments are not an object, or have an unknown field.
    """
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise ConfigurationError(f"pluginConfig of {plugin}", got=repr(arguments), wanted="an object")
    given = {str(name): value for name, value in arguments.items() if name not in ("apiVersion", "kind")}
    for name in given:
        if name not in names:
            wanted = f"one of {', '.join(names)}" if names else "no arguments"
            raise ConfigurationError(f"pluginConfig of {plugin}", got=f"{name!r}", wanted=wanted)
    return given


def free_milli(nodes: GpuNodes) -> Ints:
    """Return the total free milli-GPUs of each node."""
    total: Ints = nodes.free.sum(axis=1)
    return total


def whole_gpus(nodes: GpuNodes) -> Ints:
    """Return the number of entirely free GPUs of each node."""
    found: Ints = (nodes.free == GPU_SIZE_MILLI).sum(axis=1)
    return found
