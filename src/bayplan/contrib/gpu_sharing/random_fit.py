"""Random: any node and any GPU that fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.base.errors import ConfigurationError
from bayplan.base.random_streams import RandomStreams
from bayplan.contrib.gpu_sharing.devices import tightest
from bayplan.contrib.gpu_sharing.policy import GpuNodes, GpuPolicy, GpuSpec
from bayplan.contrib.gpu_sharing.requests import GpuRequest
from bayplan.framework.plugin import Handle, Params
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Ints


class Random(GpuPolicy):
    """Gives all nodes the same score, so that the scheduler selects one at random; a pod that shares a GPU gets a random one.

    Arguments: ``seed``, the seed for the choice of GPUs.
    """

    name = "Random"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        seed = arguments.get("seed", 0) if isinstance(arguments, dict) else 0
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ConfigurationError("pluginConfig of Random: seed", got=repr(seed), wanted="an integer")
        self._random = RandomStreams(seed).stream("gpu").random

    @classmethod
    def argument_names(cls) -> Sequence[str]:
        """Return the names of the arguments."""
        return ("seed",)

    def score_nodes(self, spec: GpuSpec, params: Params, nodes: GpuNodes) -> Ints:
        """Return 0 for every node."""
        return np.zeros(len(nodes.cpu), dtype=np.int64)

    def choose(
        self, pod: Pod, cpu_milli: int, model: str, free: list[int], request: GpuRequest
    ) -> Sequence[int] | None:
        """Return a random fitting GPU for a pod that shares a GPU; for other pods, the fitting GPUs with the least room."""
        fitting = [number for number, room in enumerate(free) if room >= request.milli]
        if not request.shares or not fitting:
            return tightest(free, request)
        return [fitting[int(self._random() * len(fitting))]]
