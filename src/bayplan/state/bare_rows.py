"""Rows of which nothing is known but the node objects: no pods, no images. What scores are computed over after an extender
that answers with nodes: upstream makes new, empty node information of them.
"""

from __future__ import annotations

import numpy as np

from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows


class BareRows(Rows):
    """All rows in use, with nothing on the nodes.

    Args:
        state: the cluster; it stays as it is.
    """

    __slots__ = ()

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state.without_pods_and_images(), np.arange(state.nodes.count, dtype=np.intp))
