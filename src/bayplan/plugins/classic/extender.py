"""HTTP extenders as the classic scheduler asks them: their scores count as they are."""

from __future__ import annotations

from bayplan.framework.extender import Extender
from bayplan.objects.quantity import wrap_int64


class ClassicExtender(Extender):
    """An extender of a Policy."""

    def points(self, score: int) -> int:
        """Return what a score adds to a node's total: both go from 0 to 10, so that the weight is all there is to it."""
        return wrap_int64(score * self.weight)
