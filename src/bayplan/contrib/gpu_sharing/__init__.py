"""GPU sharing: fractional GPUs on numbered devices, and scoring policies for them.

A pod requests a number of GPUs and a share of each, in its annotations (`requests`); a node has numbered GPUs
(`devices`). Each policy is one plugin: it filters nodes by their GPUs, scores them, and chooses GPUs on the selected
node. The policies are those of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent" (Weng et al., USENIX ATC 2023); docs/gpu-sharing.md explains them.
"""

from __future__ import annotations

from bayplan.contrib.gpu_sharing.best_fit import BestFit
from bayplan.contrib.gpu_sharing.dot_prod import DotProd
from bayplan.contrib.gpu_sharing.fgd import FGD
from bayplan.contrib.gpu_sharing.gpu_clustering import GpuClustering
from bayplan.contrib.gpu_sharing.gpu_packing import GpuPacking
from bayplan.contrib.gpu_sharing.policy import GpuPolicy
from bayplan.contrib.gpu_sharing.random_fit import Random

__all__ = ["FGD", "BestFit", "GpuPacking", "GpuClustering", "DotProd", "Random", "GpuPolicy", "POLICIES"]

POLICIES: tuple[type[GpuPolicy], ...] = (FGD, BestFit, GpuPacking, GpuClustering, DotProd, Random)
"""The policies, in the order of the table in the paper."""
