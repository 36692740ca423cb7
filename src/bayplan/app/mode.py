"""The scheduler mode; a separate module, so that the current scheduler does not import the classic one."""

from enum import StrEnum


class Mode(StrEnum):
    """The scheduler that decides: the current one, or the scheduler of 2017 to 2019."""

    CURRENT = "current"
    CLASSIC = "classic"
