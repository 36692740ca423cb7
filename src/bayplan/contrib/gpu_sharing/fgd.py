"""FGD, fragmentation gradient descent: the node and the GPU whose fragmentation grows least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.contrib.gpu_sharing.devices import tightest
from bayplan.contrib.gpu_sharing.fragmentation import FragmentationMeasure, TypicalPods, read_typical_pods, typical_pods
from bayplan.contrib.gpu_sharing.policy import GpuNodes, GpuPolicy, GpuSpec
from bayplan.contrib.gpu_sharing.requests import GPU_SIZE_MILLI, GpuRequest
from bayplan.framework.plugin import Handle, Params
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Floats, Index, Ints
from bayplan.state.cluster_state import ClusterState


class FGD(GpuPolicy):
    """Scores a node by how much the pod would decrease its fragmentation: 100 * sigmoid(decrease in GPUs), rounded down.

    Arguments: ``typicalPods``, the workload for which fragmentation is measured (`typical_pods_argument`). Without it,
    the typical pods are taken from the cluster's pods, running or waiting. They are counted again whenever the number
    of pods has doubled or fallen below that of the last count.
    """

    name = "FGD"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        given = arguments.get("typicalPods") if isinstance(arguments, dict) else None
        self._given: TypicalPods | None = None if given is None else read_typical_pods(given)
        self._measure = FragmentationMeasure(self._given or ())
        self._counted = 0

    @classmethod
    def argument_names(cls) -> Sequence[str]:
        """Return the names of the arguments."""
        return ("typicalPods",)

    def observe(self, spec: GpuSpec, cluster: ClusterState) -> Params:
        """Return the typical pods, because scores depend on them."""
        pods = self.handle.pods
        if self._given is None and not self._counted <= len(pods) < 2 * self._counted:
            self._counted = len(pods)
            self._measure = FragmentationMeasure(typical_pods(pods.values()))
        return (self._measure.typical,)

    def measure(self, params: Params) -> FragmentationMeasure:
        """Return the fragmentation measure for the typical pods that `observe` returned."""
        if params and params[0] is not self._measure.typical and params[0] != self._measure.typical:
            typical: TypicalPods = params[0]  # type: ignore[assignment]
            return FragmentationMeasure(typical)
        return self._measure

    def score_nodes(self, spec: GpuSpec, params: Params, nodes: GpuNodes) -> Ints:
        """Return the score of the best way to place the pod on each node."""
        assert self._table is not None
        measure = self.measure(params)
        allowed = measure.allowed(self._table.model_names)
        # Most nodes of a cluster are in one of a few states, so each state is scored once. The order of a node's GPUs
        # does not matter.
        states = np.column_stack((nodes.cpu, nodes.models, -np.sort(-nodes.free, axis=1)))
        _, first, places = np.unique(_as_records(states), return_index=True, return_inverse=True)
        states = states[first]
        ways = self._best(measure, spec, states[:, 0], states[:, 2:], allowed[states[:, 1]])
        scores: Ints = np.maximum(ways.max(axis=1), 0)
        found: Ints = scores[places.reshape(-1)]
        return found

    def choose(
        self, pod: Pod, cpu_milli: int, model: str, free: list[int], request: GpuRequest
    ) -> Sequence[int] | None:
        """Return the GPU with the highest score if the pod shares a GPU; else the fitting GPUs with the least room."""
        fitting = tightest(free, request)
        if fitting is None or not request.shares:
            return fitting
        spec = self.compile(pod, self.handle.cluster)
        allowed = self._measure.allowed([model])
        cpu, rooms = np.array([cpu_milli], dtype=np.int64), np.array([free], dtype=np.int64)
        scores = self._best(self._measure, spec, cpu, rooms, allowed)[0]
        return [int(scores.argmax())]

    def _best(self, measure: FragmentationMeasure, spec: GpuSpec, cpu: Ints, free: Ints, allowed: Bools) -> Ints:
        """Return the score of each way to place a pod: int64[nodes, ways], -1 for ways without room.

        For a pod that shares a GPU, each GPU of the node is a way. Other pods have one way: the fitting GPUs with the
        least room.
        """
        request = spec.request
        before = measure.amounts(cpu, free, allowed)
        left = cpu - spec.cpu_milli
        if not request.shares:
            after = free.copy()
            order = np.argsort(free, axis=1, kind="stable")
            sorted_free = np.take_along_axis(free, order, axis=1)
            fits = sorted_free >= request.milli
            taken = fits & (np.cumsum(fits, axis=1) <= request.count)
            np.put_along_axis(after, order, sorted_free - taken * request.milli, axis=1)
            return _scores(before - measure.amounts(left, after, allowed))[:, np.newaxis]
        node, gpu = np.nonzero(free >= request.milli)
        after = free[node]
        after[np.arange(len(node)), gpu] -= request.milli
        found = np.full(free.shape, -1, dtype=np.int64)
        decrease = before[node] - self._distinct_amounts(measure, left[node], after, allowed, node)
        found[node, gpu] = _scores(decrease)
        return found

    def _distinct_amounts(
        self, measure: FragmentationMeasure, cpu: Ints, free: Ints, allowed: Bools, node: Index
    ) -> Floats:
        """Return the fragmentation of node states; each distinct state is computed once."""
        states = np.column_stack((node, -np.sort(-free, axis=1)))
        _, first, places = np.unique(_as_records(states), return_index=True, return_inverse=True)
        amounts = measure.amounts(cpu[first], free[first], allowed[node[first]])
        return amounts[places.reshape(-1)]


def _as_records(states: Ints) -> Ints:
    """Return the rows of a matrix as single values, which `numpy.unique` sorts faster than rows."""
    rows = np.ascontiguousarray(states)
    records: Ints = rows.view([("", rows.dtype)] * rows.shape[1]).reshape(-1)
    return records


def _scores(decrease: Floats) -> Ints:
    """Return floor(100 * sigmoid(decrease)), with the decrease converted from milli-GPUs to GPUs."""
    scores: Ints = (100.0 / (1.0 + np.exp(-decrease / GPU_SIZE_MILLI))).astype(np.int64)
    return scores
