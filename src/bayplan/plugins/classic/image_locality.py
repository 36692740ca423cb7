"""ImageLocalityPriority: nodes that have the images of a pod's containers are better.

An image counts with its size times the share of nodes that have it. How many have it was counted when the node came to be known:
of two nodes with the same image the later one is worth more.
"""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.framework.plugin import Params, Reads, ScorePlugin
from bayplan.objects.image_names import normalized_image_name
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import wrap_int64
from bayplan.plugins.classic.priority import MAX_PRIORITY
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

MIN_THRESHOLD_BYTES = 23 * 1024 * 1024
MAX_THRESHOLD_BYTES = 1000 * 1024 * 1024


class ImagesSpec(msgspec.Struct, frozen=True):
    """The normalised names of the images of all containers, repeats included; init containers don't count."""

    key: tuple[str, ...]


class ImageLocalityPriority(ScorePlugin[ImagesSpec]):
    """Scores nodes by the images that they have."""

    name = "ImageLocalityPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> ImagesSpec:
        """Keep the names."""
        return ImagesSpec(tuple(normalized_image_name(container.image) for container in pod.spec.containers))

    def observe(self, spec: ImagesSpec, cluster: ClusterState) -> Params:
        """Return how many nodes there are."""
        return (len(cluster.nodes),)

    def score(self, spec: ImagesSpec, params: Params | None, rows: Rows) -> Ints:
        """Return 0 at 23 MiB to 10 at 1000 MiB of images, scaled by how many nodes have them."""
        state = rows.state
        total = float(len(state.nodes))
        sums = np.zeros(state.nodes.count, dtype=np.int64)
        for name in spec.key:
            image = state.nodes.images.get(name)
            if image is not None:
                for row, holders in image.rows.items():
                    worth = int(float(image.size_bytes) * (float(holders) / total))
                    sums[row] = wrap_int64(int(sums[row]) + worth)
        clipped = np.clip(sums[rows.row_numbers()], MIN_THRESHOLD_BYTES, MAX_THRESHOLD_BYTES) - MIN_THRESHOLD_BYTES
        scores: Ints = MAX_PRIORITY * clipped // (MAX_THRESHOLD_BYTES - MIN_THRESHOLD_BYTES)
        return scores
