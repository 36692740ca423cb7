"""Which scheduler decides; a module of its own, so that asking for today's does not import the other."""

from enum import StrEnum


class Mode(StrEnum):
    """Which scheduler decides: today's, or that of 2017 to 2019."""

    CURRENT = "current"
    CLASSIC = "classic"
