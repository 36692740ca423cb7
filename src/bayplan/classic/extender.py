"""HTTP extenders of the classic scheduler, whose scores are not scaled."""

from __future__ import annotations

from bayplan.framework.extender import Extender


class ClassicExtender(Extender):
    """An extender of a Policy. Its scores go from 0 to 10, as those of priorities do: the weight is all there is to them."""

    scale = 1
