"""HTTP extenders of the classic scheduler, whose scores are not scaled to a larger range."""

from __future__ import annotations

from bayplan.framework.extender import Extender


class ClassicExtender(Extender):
    """An extender of a Policy. Its scores are from 0 to 10, like those of priorities.

    Only its weight multiplies them.
    """

    scale = 1
