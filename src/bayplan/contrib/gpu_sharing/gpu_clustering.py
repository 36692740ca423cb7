"""GpuClustering: prefers nodes with pods of the same kind, as in Gandiva (OSDI 2018)."""

from __future__ import annotations

import numpy as np

from bayplan.contrib.gpu_sharing.devices import SHARE_KIND
from bayplan.contrib.gpu_sharing.policy import MAX_GPU_MILLI, GpuNodes, GpuPolicy, GpuSpec, free_milli
from bayplan.framework.plugin import Params
from bayplan.state.arrays import Ints


class GpuClustering(GpuPolicy):
    """Scores nodes by the kinds of their pods: pods that share a GPU, pods with 1 GPU, with 2, and so on.

    A node whose pods all have the pod's kind gets 75 to 100, one that also has other kinds 50 to 75, one without GPU
    pods 25 to 50, and one with other kinds only 0 to 25. Within each range, nodes with less free get more. Pods without
    GPUs get 0 everywhere.
    """

    name = "GpuClustering"

    def score_nodes(self, spec: GpuSpec, params: Params, nodes: GpuNodes) -> Ints:
        """Return the scores, by the kinds of the pods and the free GPUs."""
        request = spec.request
        if not request.count:
            return np.zeros(len(nodes.cpu), dtype=np.int64)
        kind = SHARE_KIND if request.shares else request.count
        present = nodes.kinds > 0
        same = present[:, kind] if kind < present.shape[1] else np.zeros(len(nodes.cpu), dtype=np.bool_)
        kinds = present.sum(axis=1)
        base = np.select([same & (kinds == 1), same, kinds == 0], [75, 50, 25], 0)
        within = np.maximum(25 * (MAX_GPU_MILLI - free_milli(nodes)), 0) // MAX_GPU_MILLI
        scores: Ints = base + within
        return scores
