"""The strategy of device classes, claims and their templates."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Strategy


class DeviceStrategy(Strategy):
    """Device classes, claims, and templates of claims."""

    returns_deleted = True
    keeps_metadata_of_status = True

    def __init__(self, *, counts_generations: bool = False, name_check: str = "subdomain") -> None:
        self.counts_generations = counts_generations
        self.name_check = name_check
