"""The GPUs that a pod requests and the GPUs that a node has, by the annotations and resources of Alibaba's GPU sharing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bayplan.formats.traces.shapes import GPU_COUNT, GPU_MILLI, GPU_MODEL
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

GPU_INDEX = "alibabacloud.com/gpu-index"
"""The annotation with the numbers of a pod's assigned GPUs, joined by dashes."""

GPU_SIZE_MILLI = 1000
MAX_GPUS = 64
"""No machine has more GPUs; a larger number in an annotation is an error."""


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The GPUs that a pod requests.

    Attributes:
        count: the number of different GPUs; 0 for a pod without GPUs.
        milli: the milli-GPUs of each; 0 for a pod without GPUs.
        models: the allowed models; empty allows all.
    """

    count: int = 0
    milli: int = 0
    models: tuple[str, ...] = ()

    @property
    def shares(self) -> bool:
        """Return whether the pod shares a GPU: it requests less than a whole one."""
        return self.count == 1 and self.milli < GPU_SIZE_MILLI

    @property
    def total_milli(self) -> int:
        """Return the milli-GPUs of all GPUs together."""
        return self.count * self.milli

    def allows(self, model: str) -> bool:
        """Return whether the pod may use GPUs of a model."""
        return not self.models or model in self.models


NO_GPUS = GpuRequest()


def gpu_request(pod: Pod) -> GpuRequest | str:
    """Return the GPUs that the annotations of a pod request, or a text that says why the annotations are invalid."""
    annotations = pod.metadata.annotations
    return _read_request(annotations.get(GPU_COUNT, ""), annotations.get(GPU_MILLI, ""), annotations.get(GPU_MODEL, ""))


# Rows are read again after each change, and most pods request the same few amounts. This cache takes 0.3 us, reading
# the annotations 5 us.
@lru_cache(maxsize=4096)
def _read_request(text: str, share: str, allowed: str) -> GpuRequest | str:
    if not text and not share:
        return NO_GPUS
    count = _number(text) if text else 1
    milli = _number(share) if share else GPU_SIZE_MILLI
    if count is None or count > MAX_GPUS:
        return f"annotation {GPU_COUNT} is {text!r}, not a number of GPUs"
    if milli is None or milli > GPU_SIZE_MILLI:
        return f"annotation {GPU_MILLI} is {share!r}, not a number from 0 to {GPU_SIZE_MILLI}"
    if not count or not milli:
        return NO_GPUS
    models = tuple(name for name in allowed.split("|") if name)
    return GpuRequest(count, milli, models)


def assigned_gpus(pod: Pod) -> tuple[int, ...]:
    """Return the numbers of the GPUs in a pod's annotation; empty if the annotation is missing or invalid."""
    numbers = [_number(text) for text in pod.metadata.annotations.get(GPU_INDEX, "").split("-") if text]
    found = [number for number in numbers if number is not None and number < MAX_GPUS]
    return tuple(found) if len(found) == len(numbers) else ()


def gpus_of(node: Node) -> tuple[int, str]:
    """Return the number of a node's GPUs and their model."""
    count = _number(str(node.status.allocatable.get(GPU_COUNT, ""))) or 0
    return min(count, MAX_GPUS), node.metadata.labels.get(GPU_MODEL, "")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
