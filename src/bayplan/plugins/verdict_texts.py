"""The verdicts of messages that depend on the pod or the cluster. This module is not a plugin."""

from bayplan.framework.status import ERROR_BIT, UNRESOLVABLE_BIT

FIRST_NUMBER = 16
"""The first number of a message; smaller verdicts have fixed texts."""

LAST_NUMBER = 0x3FFF
"""The last number, which all further messages share."""


class VerdictTexts:
    """Numbers messages in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def verdict(self, text: str, bits: int) -> int:
        """Return the verdict with this message; `bits`: `ERROR_BIT`, `UNRESOLVABLE_BIT` or 0."""
        return min(self._numbers.setdefault(text, len(self._numbers) + FIRST_NUMBER), LAST_NUMBER) | bits

    def text(self, verdict: int) -> str:
        """Return the message of a verdict."""
        number = verdict & ~(ERROR_BIT | UNRESOLVABLE_BIT)
        return next(text for text, other in self._numbers.items() if min(other, LAST_NUMBER) == number)
