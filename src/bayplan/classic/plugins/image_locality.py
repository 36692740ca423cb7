"""ImageLocalityPriority: prefers nodes that have the images of a pod's containers.

An image counts with its size times the share of nodes that have it. The number of nodes is that when the node was added:
of two nodes with the same image the later one gets a higher score.
"""

from __future__ import annotations

import msgspec

from bayplan.classic.plugins.priority import MAX_PRIORITY
from bayplan.framework.plugin import Params, Reads, ScorePlugin
from bayplan.framework.rule import ScoreRule
from bayplan.objects.image_names import normalized_image_name
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import wrap_int64
from bayplan.state.cluster_state import ClusterState

MIN_THRESHOLD_BYTES = 23 * 1024 * 1024
MAX_THRESHOLD_BYTES = 1000 * 1024 * 1024


class ImagesSpec(msgspec.Struct, frozen=True):
    """The normalized names of the images of all containers, including repeats; init containers do not count."""

    key: tuple[str, ...]


class ImageLocalityPriority(ScorePlugin[ImagesSpec]):
    """Scores nodes by the images that they have."""

    name = "ImageLocalityPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> ImagesSpec:
        """Store the names."""
        return ImagesSpec(tuple(normalized_image_name(container.image) for container in pod.spec.containers))

    def observe(self, spec: ImagesSpec, cluster: ClusterState) -> Params:
        """Return the number of nodes."""
        return (len(cluster.nodes),)

    def score_rule(self, spec: ImagesSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule for the images."""
        return ImagesOnNode(spec.key, cluster)


class ImagesOnNode(ScoreRule):
    """Scores from 0 (23 MiB of the pod's images) to 10 (1000 MiB); sizes are scaled by the share of nodes with the image."""

    def __init__(self, names: tuple[str, ...], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._names = names
        self._nodes = cluster.nodes

    def score(self, row: int) -> int:
        """Sum the scaled sizes of the pod's images on the node."""
        total, whole = 0, float(len(self._nodes))
        for name in self._names:
            image = self._nodes.images.get(name)
            holders = image.rows.get(row) if image is not None else None
            if image is not None and holders is not None:
                total = wrap_int64(total + int(float(image.size_bytes) * (float(holders) / whole)))
        clipped = min(max(total, MIN_THRESHOLD_BYTES), MAX_THRESHOLD_BYTES)
        return MAX_PRIORITY * (clipped - MIN_THRESHOLD_BYTES) // (MAX_THRESHOLD_BYTES - MIN_THRESHOLD_BYTES)
