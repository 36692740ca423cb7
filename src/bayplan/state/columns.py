"""The columns of the cluster for compiled rules: typed views of the arrays of the node table and the state.

In uncompiled code, the same attributes are NumPy arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

CHUNK = 256
"""Number of rows that a rule evaluates at a time, so that intermediate results stay in the L1 cache."""


class Columns:
    """Typed views of the arrays of a cluster state.

    A rule reads them as attributes on each call, so it never uses an array that has been replaced.

    Attributes:
        count: the number of rows in use, including freed ones.
        capacity: the length of every column.
        bare: whether the usage of nodes is unknown, because an extender returned node objects.
        counted: the number of additions and removals of pods that any counter counts.
        version: changes when a node changes or an array is replaced; rules must then repeat cached look-ups.
        allocatable: int64[resources, capacity].
        usage: int64[3 + resources, capacity], rows as in `pod_info`.
        allowed_pods: int64[capacity].
        taint_codes: intp[capacity], indexes in `NodeTable.taint_sets`.
        alive, unschedulable: uint8[capacity], 0 or 1.
        scratch_floats, scratch_integers: float64[3, 2 * CHUNK] and int64[CHUNK], for intermediate results of a rule;
            the next rule overwrites them.
    """

    allocatable: Any
    usage: Any
    allowed_pods: Any
    taint_codes: Any
    alive: Any
    unschedulable: Any

    def __init__(self) -> None:
        self.count = 0
        self.capacity = 0
        self.version = 0
        self.bare = False
        self.counted = 0
        self.scratch_floats: Any = np.zeros((3, 2 * CHUNK))
        self.scratch_integers: Any = np.zeros(CHUNK, dtype=np.int64)
