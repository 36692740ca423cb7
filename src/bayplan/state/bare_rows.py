"""Rows of which nothing is known but the node objects: no pods, no images. What scores are computed over after an extender
that answers with nodes: upstream makes new, empty node information of them.
"""

from __future__ import annotations

import copy

import numpy as np

from bayplan.objects.requests import HostPort
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState
from bayplan.state.usage_floats import UsageFloats
from bayplan.state.views import Rows


class BareRows(Rows):
    """All rows in use, with nothing on the nodes.

    Args:
        state: the cluster; it stays as it is.
    """

    __slots__ = ()

    def __init__(self, state: ClusterState) -> None:
        # A shallow copy: every column is the cluster's own, but for what pods take, in each form that rules read it in.
        emptied = copy.copy(state)
        emptied.usage = np.zeros_like(state.usage)
        emptied.usage_floats = UsageFloats(emptied)
        super().__init__(emptied, np.arange(state.nodes.count, dtype=np.intp))

    def has_image(self, name: str) -> Bools:
        """Return that no node holds an image: which ones do is known of the scheduler's own nodes only."""
        return self.everywhere(False)

    def host_port_conflicts(self, wanted: HostPort) -> Bools:
        """Return that no port is in use."""
        return self.everywhere(False)
