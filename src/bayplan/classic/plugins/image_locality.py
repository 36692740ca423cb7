"""ImageLocalityPriority: prefers nodes that already have the images of a pod's containers.

The weight of an image is its size times the share of nodes that have it. As upstream, these nodes are counted when a node
is added, so of two nodes with the same image, the one added later scores higher.
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
    """The normalized image names of all containers, with repetitions; init containers don't count."""

    key: tuple[str, ...]


class ImageLocalityPriority(ScorePlugin[ImagesSpec]):
    """Scores nodes by the sizes of the pod's images that are already on them."""

    name = "ImageLocalityPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> ImagesSpec:
        """Return the image names as the spec."""
        return ImagesSpec(tuple(normalized_image_name(container.image) for container in pod.spec.containers))

    def observe(self, spec: ImagesSpec, cluster: ClusterState) -> Params:
        """Return the number of nodes as params."""
        return (len(cluster.nodes),)

    def score_rule(self, spec: ImagesSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores the images on a node."""
        return ImagesOnNode(spec.key, cluster)


class ImagesOnNode(ScoreRule):
    """Scores the scaled size of the pod's images on a node: 0 up to 23 MiB, 10 from 1000 MiB on."""

    def __init__(self, names: tuple[str, ...], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._names = names
        self._nodes = cluster.nodes

    def score(self, row: int) -> int:
        """Return the score for the sum of the scaled image sizes."""
        total, whole = 0, float(len(self._nodes))
        for name in self._names:
            image = self._nodes.images.get(name)
            holders = image.rows.get(row) if image is not None else None
            if image is not None and holders is not None:
                total = wrap_int64(total + int(float(image.size_bytes) * (float(holders) / whole)))
        clipped = min(max(total, MIN_THRESHOLD_BYTES), MAX_THRESHOLD_BYTES)
        return MAX_PRIORITY * (clipped - MIN_THRESHOLD_BYTES) // (MAX_THRESHOLD_BYTES - MIN_THRESHOLD_BYTES)
