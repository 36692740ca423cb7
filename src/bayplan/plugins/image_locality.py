"""ImageLocality: pods go rather where their images are already.

An image counts with its size, scaled by the share of nodes that hold it, so that pods don't all go to the one node that does.
Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins.
"""

from __future__ import annotations

import msgspec

from bayplan.framework.plugin import MAX_NODE_SCORE, Params, Reads, ScorePlugin
from bayplan.objects.image_names import container_images
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import wrap_int64
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

MIN_THRESHOLD_BYTES = 23 * 1024 * 1024
MAX_CONTAINER_THRESHOLD_BYTES = 1000 * 1024 * 1024


class ImageLocalitySpec(msgspec.Struct, frozen=True):
    """The pod's images and the number of its containers.

    Attributes:
        key: both.
        images: normalised names with how often each occurs.
        max_threshold_bytes: from this sum of image sizes on the score is 100.
    """

    key: tuple[tuple[tuple[str, int], ...], int]
    images: tuple[tuple[str, int], ...]
    max_threshold_bytes: int


class ImageLocality(ScorePlugin[ImageLocalitySpec]):
    """Scores nodes by the sizes of the pod's images that they hold."""

    name = "ImageLocality"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    compiles_requests = False
    scalar = True

    def compile(self, pod: Pod, cluster: ClusterState) -> ImageLocalitySpec:
        """Count the images."""
        counts: dict[str, int] = {}
        for image in container_images(pod):
            counts[image] = counts.get(image, 0) + 1
        images = tuple(sorted(counts.items()))
        containers = len(pod.spec.init_containers) + len(pod.spec.containers)
        return ImageLocalitySpec((images, containers), images, MAX_CONTAINER_THRESHOLD_BYTES * containers)

    def observe(self, spec: ImageLocalitySpec, cluster: ClusterState) -> Params:
        """Return for each image what holding it is worth: its size times the share of nodes that hold it, in bytes."""
        images, total = cluster.nodes.images, len(cluster.nodes)
        worth = []
        for name, count in spec.images:
            image = images.get(name)
            if image is None:
                worth.append(0)
                continue
            spread = float(image.num_nodes) / float(total)
            worth.append(wrap_int64(count * _to_int64(float(image.size_bytes) * spread)))
        return tuple(worth)

    def score(self, spec: ImageLocalitySpec, params: Params | None, rows: Rows) -> Ints:
        """Return the sum of what the images on the node are worth, from 23 MiB (0) to 1000 MiB a container (100)."""
        if params is None:
            params = self.observe(spec, rows.state)
        total = rows.fill(0)
        for (name, _), worth in zip(spec.images, params, strict=True):
            assert isinstance(worth, int)
            if worth:
                total = rows.wrap(total + rows.where(rows.has_image(name), worth, 0))
        most = spec.max_threshold_bytes
        below, above = total < MIN_THRESHOLD_BYTES, total > most
        total = rows.where(below, MIN_THRESHOLD_BYTES, rows.where(above, most, total))
        return rows.quotient(MAX_NODE_SCORE * (total - MIN_THRESHOLD_BYTES), most - MIN_THRESHOLD_BYTES)


def _to_int64(number: float) -> int:
    """Convert as Go does on amd64: what does not fit becomes the smallest int64."""
    return int(number) if abs(number) < 2.0**63 else -(2**63)
