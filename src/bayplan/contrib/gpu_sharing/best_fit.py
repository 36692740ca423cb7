"""BestFit: the node with the least CPU and GPU left after the pod."""

from __future__ import annotations

import numpy as np

from bayplan.contrib.gpu_sharing.policy import MAX_CPU_MILLI, MAX_GPU_MILLI, GpuNodes, GpuPolicy, GpuSpec, free_milli
from bayplan.framework.plugin import NormalizePlugin, Params
from bayplan.state.arrays import Ints
from bayplan.state.views import Rows


class BestFit(GpuPolicy, NormalizePlugin[GpuSpec]):
    """Scores a node by the amounts that stay free once the pod is on it, CPU and GPUs half each. Normalized to 0 to 100."""

    name = "BestFit"

    def score_nodes(self, spec: GpuSpec, params: Params, nodes: GpuNodes) -> Ints:
        """Return 100 minus the free amounts after the pod, as percent of the largest machine."""
        cpu = (nodes.cpu - spec.cpu_milli) / MAX_CPU_MILLI * 0.5
        gpu = (free_milli(nodes) - spec.request.total_milli) / MAX_GPU_MILLI * 0.5
        return ((1.0 - (cpu + gpu)) * 100).astype(np.int64)

    def scale(self, spec: GpuSpec, params: Params | None, raw: Ints) -> Params:
        """Return the lowest and the highest score."""
        return (int(raw.min()), int(raw.max()))

    def normalize(self, spec: GpuSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return scores from 0 for the lowest to 100 for the highest; 0 for all nodes if they are equal."""
        lowest, highest = scale
        assert isinstance(lowest, int)
        assert isinstance(highest, int)
        if lowest == highest:
            return np.zeros_like(raw)
        scores = rows.quotient((raw - lowest) * 100, highest - lowest)
        return np.clip(scores, 0, 100)
