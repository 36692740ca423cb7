"""DotProd: the node with the smallest dot product of free amounts and requests, after Tetris (SIGCOMM 2014)."""

from __future__ import annotations

import numpy as np

from bayplan.contrib.gpu_sharing.policy import MAX_CPU_MILLI, MAX_GPU_MILLI, GpuNodes, GpuPolicy, GpuSpec, free_milli
from bayplan.framework.plugin import Params
from bayplan.state.arrays import Ints


class DotProd(GpuPolicy):
    """Scores a node by 1 minus half the dot product of its free amounts and the requests, as shares of the largest machine."""

    name = "DotProd"

    def score_nodes(self, spec: GpuSpec, params: Params, nodes: GpuNodes) -> Ints:
        """Return the scores: 100 for a dot product of 0, 0 for a dot product of 2."""
        cpu = (nodes.cpu / MAX_CPU_MILLI) * (spec.cpu_milli / MAX_CPU_MILLI)
        gpu = (free_milli(nodes) / MAX_GPU_MILLI) * (spec.request.total_milli / MAX_GPU_MILLI)
        scores: Ints = (100.0 * (1.0 - (cpu + gpu) / 2)).astype(np.int64)
        return np.clip(scores, 0, 100)
