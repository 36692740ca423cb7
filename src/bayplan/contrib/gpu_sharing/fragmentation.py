"""Fragmentation as FGD measures it: the free amount of a node's GPUs that typical pods cannot use.

For a pod that cannot run on the node, or needs no GPU, all free GPU amounts are fragments. For any other pod, the
fragments are the free amounts of the GPUs that have less room than the share that it needs. The fragmentation of a node
is the mean over the typical pods, weighted by how common they are. Source: Weng et al., USENIX ATC 2023, section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from bayplan.base.errors import ConfigurationError
from bayplan.base.go_arithmetic import MAX_INT64
from bayplan.contrib.gpu_sharing.policy import check_fields
from bayplan.contrib.gpu_sharing.requests import GPU_SIZE_MILLI, MAX_GPUS, GpuRequest, gpu_request
from bayplan.objects.pod import Pod
from bayplan.objects.requests import accounted_requests
from bayplan.state.arrays import Bools, Floats, Index, Ints

POPULARITY = 0.95
"""The typical pods are the most common kinds that together make up at least this share of all pods, as in the paper."""

_FIELDS = ("cpuMilli", "gpuMilli", "gpuCount", "gpuModels", "count")

TypicalPods: TypeAlias = tuple[tuple[int, GpuRequest, float], ...]
"""Kinds of pods: CPU in milli-CPUs, GPUs, and the share of all pods. The shares add up to 1."""


def typical_pods(pods: Iterable[Pod], *, popularity: float = POPULARITY) -> TypicalPods:
    """Return the most common kinds of pods that together make up at least a given share of all pods."""
    kinds: Counter[tuple[int, GpuRequest]] = Counter()
    known: dict[tuple[int, str], tuple[int, GpuRequest]] = {}
    for pod in pods:
        request = gpu_request(pod)
        if isinstance(request, str):
            continue
        # Pods made from one template share their spec, so the requests of each spec are computed once.
        key = (id(pod.spec), str(request))
        kind = known.get(key)
        if kind is None:
            kind = known[key] = (accounted_requests(pod).requests.get("cpu", 0), request)
        kinds[kind] += 1
    return most_common(kinds, popularity)


def most_common(kinds: Mapping[tuple[int, GpuRequest], float], popularity: float = POPULARITY) -> TypicalPods:
    """Return the most common kinds with their shares. If kinds are equally common, those with larger requests come first."""

    def order(item: tuple[tuple[int, GpuRequest], float]) -> tuple[float, int, int, int, tuple[str, ...]]:
        (cpu_milli, request), count = item
        return count, cpu_milli, request.milli, request.count, request.models

    total = sum(kinds.values())
    chosen: list[tuple[int, GpuRequest, float]] = []
    reached = 0.0
    for (cpu_milli, request), count in sorted(kinds.items(), key=order, reverse=True):
        if reached >= popularity * total:
            break
        chosen.append((cpu_milli, request, count))
        reached += count
    return tuple((cpu_milli, request, count / reached) for cpu_milli, request, count in chosen)


def typical_pods_argument(typical: TypicalPods) -> list[dict[str, object]]:
    """Return typical pods as the argument ``typicalPods`` of a configuration."""
    return [
        {
            "cpuMilli": cpu_milli,
            "gpuMilli": request.milli,
            "gpuCount": request.count,
            "gpuModels": list(request.models),
            "count": share,
        }
        for cpu_milli, request, share in typical
    ]


def read_typical_pods(argument: object) -> TypicalPods:
    """Return the typical pods that an argument ``typicalPods`` describes.

    Raises:
        ConfigurationError: the argument is not a list of kinds of pods.
    """
    where = "pluginConfig of FGD: typicalPods"
    if not isinstance(argument, Sequence) or isinstance(argument, str) or not argument:
        raise ConfigurationError(where, got=repr(argument), wanted="a non-empty list of kinds of pods")
    kinds: dict[tuple[int, GpuRequest], float] = {}
    for item in argument:
        fields = check_fields("FGD: typicalPods", item, _FIELDS)
        cpu_milli, count = _whole(fields, "cpuMilli", 0), float(_amount(fields, "count", 1))
        gpus, milli = _whole(fields, "gpuCount", 0), _whole(fields, "gpuMilli", GPU_SIZE_MILLI)
        models = fields.get("gpuModels", ())
        if not isinstance(models, Sequence) or isinstance(models, str):
            raise ConfigurationError(where, got=repr(models), wanted="a list of GPU models")
        if gpus > MAX_GPUS or milli > GPU_SIZE_MILLI:
            raise ConfigurationError(
                where,
                got=f"gpuCount {gpus} and gpuMilli {milli}",
                wanted=f"gpuCount up to {MAX_GPUS} and gpuMilli up to {GPU_SIZE_MILLI}",
            )
        request = GpuRequest(gpus, milli, tuple(map(str, models))) if gpus and milli else GpuRequest()
        key = (cpu_milli, request)
        kinds[key] = kinds.get(key, 0.0) + count
    if not sum(kinds.values()):
        raise ConfigurationError(where, got="0 for all kinds of pods", wanted="a count above 0")
    return most_common(kinds, 1.0)


def _amount(fields: Mapping[str, object], name: str, default: float) -> float:
    number = fields.get(name, default)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= MAX_INT64:
        wanted = "a finite number of at least 0"
        raise ConfigurationError(f"pluginConfig of FGD: typicalPods: {name}", got=repr(number), wanted=wanted)
    return number


def _whole(fields: Mapping[str, object], name: str, default: int) -> int:
    number = _amount(fields, name, default)
    if number != int(number):
        raise ConfigurationError(f"pluginConfig of FGD: typicalPods: {name}", got=repr(number), wanted="an integer")
    return int(number)


class FragmentationMeasure:
    """Measures the fragmentation of nodes for one workload.

    Args:
        typical: the typical pods of the workload.
    """

    def __init__(self, typical: TypicalPods) -> None:
        with_gpus = [kind for kind in typical if kind[1].count]
        sizes = sorted({request.milli for _, request, _ in with_gpus})
        self.typical = typical
        self._requests = [request for _, request, _ in with_gpus]
        self._cpu: Ints = np.array([cpu_milli for cpu_milli, _, _ in with_gpus], dtype=np.int64)
        self._count: Ints = np.array([request.count for request in self._requests], dtype=np.int64)
        self._share: Floats = np.array([share for _, _, share in with_gpus], dtype=np.float64)
        self._sizes: Ints = np.array(sizes, dtype=np.int64)
        self._size_of: Index = np.array([sizes.index(request.milli) for request in self._requests], dtype=np.intp)
        self._without_gpus = sum(share for _, request, share in typical if not request.count)

    def allowed(self, model_names: Sequence[str]) -> Bools:
        """Return bool[models, kinds]: which kinds of pods with GPUs may use which models."""
        table = [[request.allows(name) for request in self._requests] for name in model_names]
        return np.array(table, dtype=np.bool_).reshape(len(model_names), len(self._requests))

    def amounts(self, cpu: Ints, free: Ints, allowed: Bools) -> Floats:
        """Return the fragmentation of nodes, in milli-GPUs.

        Args:
            cpu: int64[nodes], the free CPU in milli-CPUs.
            free: int64[nodes, GPUs], the free milli-GPUs of each GPU.
            allowed: bool[nodes, kinds], for each node the row of its model in the result of `allowed`.
        """
        total = free.sum(axis=1)
        fits = free[:, :, np.newaxis] >= self._sizes
        fitting = fits.sum(axis=1)[:, self._size_of]
        usable = np.where(fits, free[:, :, np.newaxis], 0).sum(axis=1)[:, self._size_of]
        runs = allowed & (fitting >= self._count) & (cpu[:, np.newaxis] >= self._cpu)
        lost = np.where(runs, total[:, np.newaxis] - usable, total[:, np.newaxis])
        found: Floats = lost @ self._share + total * self._without_gpus
        return found
