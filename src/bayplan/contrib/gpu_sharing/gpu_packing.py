"""GpuPacking: prefers GPUs in use, then free GPUs of nodes in use, then nodes whose GPUs are all free."""

from __future__ import annotations

import numpy as np

from bayplan.contrib.gpu_sharing.policy import GpuNodes, GpuPolicy, GpuSpec, whole_gpus
from bayplan.contrib.gpu_sharing.requests import GPU_SIZE_MILLI
from bayplan.framework.plugin import Params
from bayplan.state.arrays import Ints


class GpuPacking(GpuPolicy):
    """Scores a node from 50 to 100 if the pod fits on GPUs in use, from 33 to 50 if the node is in use, and below 33 otherwise.

    Pods without GPUs get 0 everywhere.
    """

    name = "GpuPacking"

    def score_nodes(self, spec: GpuSpec, params: Params, nodes: GpuNodes) -> Ints:
        """Return the scores, by the fitting GPUs with the least room."""
        request = spec.request
        if not request.count:
            return np.zeros(len(nodes.cpu), dtype=np.int64)
        free_gpus = whole_gpus(nodes)
        ordered = np.sort(nodes.free, axis=1)
        fits = ordered >= request.milli
        used = fits & (np.cumsum(fits, axis=1) <= request.count)
        untouched = (used & (ordered == GPU_SIZE_MILLI)).sum(axis=1)
        free_percent = np.where(used, ordered * 100 // GPU_SIZE_MILLI, 0).sum(axis=1)
        on_used_gpus = np.maximum(100 - free_percent // 10, 50)
        on_free_gpus = np.maximum(50 - untouched, 33)
        on_free_node = np.maximum(33 - free_gpus, free_gpus)
        scores: Ints = np.where(untouched > 0, on_free_gpus, on_used_gpus)
        return np.clip(np.where(free_gpus == nodes.counts, on_free_node, scores), 0, 100)
