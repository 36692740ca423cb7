"""The GPUs of all nodes and the free amount of each, kept up to date with the pods on the nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.contrib.gpu_sharing.requests import GPU_SIZE_MILLI, GpuRequest, assigned_gpus, gpu_request, gpus_of
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Index, Ints
from bayplan.state.cluster_state import ClusterState

Assignments = dict[str, tuple[str, tuple[int, ...]]]
"""By pod key: the UID of the pod, and the numbers of its GPUs on its node."""

PRUNE_ABOVE = 4096
"""If there are more assignments than this plus twice the number of pods, assignments of deleted pods are dropped."""

FIRST_KINDS = 9
"""The initial number of columns of `DeviceTable.kinds`: enough for up to 8 GPUs per pod."""

SHARE_KIND = 0
"""The kind of pods that share a GPU. For pods with whole GPUs, the kind is their number of GPUs."""


class DeviceTable:
    """The free milli-GPUs of every GPU, by row of the cluster state.

    The GPUs of a pod are those that a policy chose in Reserve, else those in its annotation, else the fitting GPUs with
    the least room. The pod keeps them while it is on the node. They stay assigned if a dry run removes the pod and adds
    it again.

    Args:
        state: the cluster.
        assignments: the GPUs assigned to each pod; written here and by policies.
        alive: all unfinished pods of the cluster, by key.

    Attributes:
        free: int64[rows, GPUs], the free amounts; 0 for GPUs that a node does not have.
        counts: int64[rows], the number of GPUs.
        models: int64[rows], positions in `model_names`.
        kinds: int64[rows, kinds], how many pods of each kind a node has: pods that share a GPU, pods with 1 GPU, with
            2, and so on.
        model_names: all models seen.
    """

    def __init__(self, state: ClusterState, assignments: Assignments, alive: Mapping[str, Pod]) -> None:
        self.state = state
        self.model_names: list[str] = [""]
        self._assignments, self._alive = assignments, alive
        self.free: Ints = np.zeros((0, 1), dtype=np.int64)
        self.counts: Ints = np.zeros(0, dtype=np.int64)
        self.models: Index = np.zeros(0, dtype=np.intp)
        self.kinds: Ints = np.zeros((0, FIRST_KINDS), dtype=np.int64)
        self._position = state.change_log.start
        self._stale: set[int] = set(range(state.nodes.count))

    def refresh(self) -> None:
        """Recompute the rows that changed since the last call."""
        state = self.state
        changed = state.change_log.since(self._position)
        self._position = state.change_log.end
        self._stale.update(range(state.nodes.count) if changed is None else changed)
        if state.nodes.capacity > len(self.free):
            self._resize(state.nodes.capacity, self.free.shape[1])
        rows, self._stale = sorted(self._stale), set()
        for row in rows:
            self._read_row(row)
        if len(self._assignments) > PRUNE_ABOVE + 2 * len(self._alive):
            for key in [key for key in self._assignments if key not in self._alive]:
                del self._assignments[key]

    def assign(self, pod: Pod, row: int, numbers: tuple[int, ...]) -> None:
        """Record the GPUs of a pod on a row."""
        self._assignments[pod_key(pod)] = (pod.metadata.uid, numbers)
        self._stale.add(row)

    def model_of(self, row: int) -> str:
        """Return the model of a row's GPUs; "" if it has none."""
        node = self.state.nodes.nodes[row]
        return gpus_of(node)[1] if node is not None else ""

    def free_before(self, pod: Pod, row: int) -> list[int]:
        """Return the free amount of each GPU of a row, as if a pod were not on it."""
        key = pod_key(pod)
        node = self.state.nodes.nodes[row]
        count = gpus_of(node)[0] if node is not None else 0
        free = [GPU_SIZE_MILLI] * count
        for _, info in sorted(self.state.pods_on[row].items()):
            if info.key != key:
                self._take(free, info.key, info.pod)
        return free

    def _read_row(self, row: int) -> None:
        node = self.state.nodes.nodes[row] if row < self.state.nodes.count else None
        count, model = gpus_of(node) if node is not None else (0, "")
        if count > self.free.shape[1]:
            self._resize(len(self.free), count)
        free = [GPU_SIZE_MILLI] * count
        self.kinds[row] = 0
        # By name: the order in which they were added changes when a dry run removes and adds pods.
        for _, info in sorted(self.state.pods_on[row].items()) if node is not None else ():
            request = self._take(free, info.key, info.pod)
            if request.count:
                kind = SHARE_KIND if request.shares else request.count
                self._fit_kinds(kind)
                self.kinds[row, kind] += 1
        self.free[row] = 0
        self.free[row, :count] = np.maximum(np.array(free, dtype=np.int64), 0)
        self.counts[row] = count
        self.models[row] = self._model_number(model)

    def _take(self, free: list[int], key: str, pod: Pod) -> GpuRequest:
        """Subtract the GPUs of a pod from the free amounts; return its request."""
        request = gpu_request(pod)
        if isinstance(request, str) or not request.count:
            return GpuRequest()
        known = self._assignments.get(key)
        if known is None or known[0] != pod.metadata.uid:
            # No GPUs if the pod does not fit: another scheduler may have overcommitted the node.
            known = (pod.metadata.uid, assigned_gpus(pod) or tuple(tightest(free, request) or ()))
            self._assignments[key] = known
        numbers = known[1]
        for number in numbers:
            if number < len(free):
                free[number] -= request.milli
        return request

    def _model_number(self, model: str) -> int:
        if model not in self.model_names:
            self.model_names.append(model)
        return self.model_names.index(model)

    def _resize(self, rows: int, gpus: int) -> None:
        more, wider = rows - len(self.free), gpus - self.free.shape[1]
        self.free = np.pad(self.free, ((0, more), (0, wider)))
        self.counts = np.pad(self.counts, (0, more))
        self.models = np.pad(self.models, (0, more))
        self.kinds = np.pad(self.kinds, ((0, more), (0, 0)))

    def _fit_kinds(self, kind: int) -> None:
        width = self.kinds.shape[1]
        if kind >= width:
            self.kinds = np.pad(self.kinds, ((0, 0), (0, kind + 1 - width)))


def tightest(free: list[int], request: GpuRequest) -> list[int] | None:
    """Return the numbers of the fitting GPUs with the least room, preferring lower numbers; None if too few GPUs fit."""
    fitting = sorted((room, number) for number, room in enumerate(free) if room >= request.milli)
    if len(fitting) < request.count:
        return None
    return sorted(number for _, number in fitting[: request.count])


def pod_key(pod: Pod) -> str:
    """Return the key of a pod in the assignments, which is also the key of its `PodInfo`."""
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
