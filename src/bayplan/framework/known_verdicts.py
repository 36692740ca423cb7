"""A rule for plugins that find the verdicts on all nodes together, because these depend on all nodes or on a cache."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.framework.plugin import Params
from bayplan.framework.rule import FilterRule
from bayplan.state.arrays import Codes
from bayplan.state.columns import Columns


class KnownVerdicts(FilterRule):
    """Looks up the verdict on a node.

    Args:
        columns: the columns of the cluster.
        find: returns the verdicts on all nodes for the params of a cycle, uint16[at least the rows in use]. They don't
            depend on pods.
    """

    def __init__(self, columns: Columns, find: Callable[[Params | None], Codes]) -> None:
        super().__init__(columns)
        self._find = find
        self._known: Codes | None = None
        self._codes: Codes = np.zeros(0, dtype=np.uint16)

    def refresh(self) -> bool:
        """Find the verdicts of this cycle; return whether they differ from those of the last one."""
        found = self._find(self.params)
        if found is self._known or (self._known is not None and np.array_equal(found, self._known)):
            return False
        if len(found) < self.columns.count:
            raise InvariantError(f"{len(found)} verdicts for {self.columns.count} rows")
        self._known = self._codes = found
        return True

    def after_changes(self, params: Params | None) -> None:
        """Keep the verdicts, because pods on nodes don't affect them."""

    def after_undo(self, params: Params | None) -> None:
        """Keep the verdicts."""

    def filter(self, row: int) -> int:
        """Return the verdict on a node."""
        return self._codes[row]
