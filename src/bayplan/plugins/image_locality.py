"""ImageLocality: prefers nodes that already have the pod's images.

The size of an image is scaled by the share of nodes that have it, so that pods don't all run on the only node with the
image. Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins.
"""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.framework.plugin import MAX_NODE_SCORE, Params, Reads, ScorePlugin
from bayplan.objects.image_names import container_images
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

MIN_THRESHOLD_BYTES = 23 * 1024 * 1024
MAX_CONTAINER_THRESHOLD_BYTES = 1000 * 1024 * 1024


class ImageLocalitySpec(msgspec.Struct, frozen=True):
    """The pod's images.

    Attributes:
        key: the images and the number of containers.
        images: the normalised image names, each with its number of occurrences.
        max_threshold_bytes: the sum of weighted sizes from which the score is 100.
    """

    key: tuple[tuple[tuple[str, int], ...], int]
    images: tuple[tuple[str, int], ...]
    max_threshold_bytes: int


class ImageLocality(ScorePlugin[ImageLocalitySpec]):
    """Scores nodes by the sizes of the pod's images that are already on them."""

    name = "ImageLocality"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    compiles_requests = False
    compiles_volumes = False

    def compile(self, pod: Pod, cluster: ClusterState) -> ImageLocalitySpec:
        """Return the images with their numbers of occurrences."""
        counts: dict[str, int] = {}
        for image in container_images(pod):
            counts[image] = counts.get(image, 0) + 1
        images = tuple(sorted(counts.items()))
        containers = len(pod.spec.init_containers) + len(pod.spec.containers)
        return ImageLocalitySpec((images, containers), images, MAX_CONTAINER_THRESHOLD_BYTES * containers)

    def observe(self, spec: ImageLocalitySpec, cluster: ClusterState) -> Params:
        """Return a version of all nodes: every score depends on the share of nodes that have an image."""
        return (cluster.node_log.end,)

    def score(self, spec: ImageLocalitySpec, params: Params | None, rows: Rows) -> Ints:
        """Score the weighted size of the pod's images on a node, from 23 MiB (score 0) to 1000 MiB per container (100).

        An image weighs its size times the share of the nodes that have it.
        """
        most, nodes = spec.max_threshold_bytes, rows.state.nodes
        total = np.zeros(nodes.capacity, dtype=np.int64)
        for name, count in spec.images:
            image = nodes.images.get(name)
            if image is not None:
                share = go.divide(float(len(image.rows)), float(len(nodes)))
                total[list(image.rows)] += go.mul(count, go.to_int64(float(image.size_bytes) * share))
        total = np.where(total < MIN_THRESHOLD_BYTES, MIN_THRESHOLD_BYTES, np.minimum(total, most))
        scores: Ints = MAX_NODE_SCORE * (total - MIN_THRESHOLD_BYTES) // (most - MIN_THRESHOLD_BYTES)
        return rows.select(scores)
