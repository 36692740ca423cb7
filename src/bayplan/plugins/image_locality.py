"""ImageLocality: prefers nodes that already have the pod's images.

The size of an image is scaled by the share of nodes that have it, so that pods don't all run on the only node with the
image. Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins.
"""

from __future__ import annotations

import msgspec

from bayplan.base import go_arithmetic as go
from bayplan.framework.plugin import MAX_NODE_SCORE, Reads, ScorePlugin
from bayplan.framework.rule import ScoreRule
from bayplan.objects.image_names import container_images
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState

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

    def score_rule(self, spec: ImageLocalitySpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores the pod's images on a node."""
        return ImageScore(spec, cluster)


class ImageScore(ScoreRule):
    """Scores the weighted size of the pod's images on a node, from 23 MiB (score 0) to 1000 MiB per container (100)."""

    def __init__(self, spec: ImageLocalitySpec, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._images = spec.images
        self._nodes = cluster.nodes
        self._most = spec.max_threshold_bytes
        self._scores: list[int] = []
        self._holders: list[Bools] = []
        self._moved = True

    def bind(self) -> None:
        """Look up the nodes that have each image, and its weighted size: the size times the share of these nodes."""
        before, total = self._scores, len(self._nodes)
        self._scores, self._holders = [], []
        for name, count in self._images:
            image = self._nodes.images.get(name)
            if image is None:
                continue
            share = go.divide(float(image.num_nodes), float(total))
            score = go.mul(count, go.to_int64(float(image.size_bytes) * share))
            if score:
                self._scores.append(score)
                self._holders.append(image.column(self.columns.capacity))
        self._moved = self._moved or before != self._scores

    def refresh(self) -> bool:
        """Return whether the weighted size of an image has changed."""
        moved, self._moved = self._moved, False
        return moved

    def score(self, row: int) -> int:
        """Return the score for the sum of the weighted sizes of the pod's images on the node."""
        total = 0
        for number in range(len(self._scores)):
            if self._holders[number][row]:
                total = go.add(total, self._scores[number])
        if total < MIN_THRESHOLD_BYTES:
            total = MIN_THRESHOLD_BYTES
        elif total > self._most:
            total = self._most
        return go.quotient(MAX_NODE_SCORE * (total - MIN_THRESHOLD_BYTES), self._most - MIN_THRESHOLD_BYTES)
