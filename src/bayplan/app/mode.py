"""The scheduler mode. It has its own module, so that the current scheduler does not import the classic one."""

from enum import StrEnum

from bayplan.base.errors import InputError


class Mode(StrEnum):
    """The scheduler that decides: the current one, or the scheduler of 2017 to 2019."""

    CURRENT = "current"
    CLASSIC = "classic"


def reject_provider(algorithm_provider: str) -> None:
    """Raise InputError if an algorithm provider is given: the current scheduler has none.

    Raises:
        InputError: `algorithm_provider` is not empty.
    """
    if algorithm_provider:
        raise InputError("--algorithm-provider needs --mode classic")
