"""The result of a plugin: `Status` with its `Code`, and the packing of verdicts into 16 bits.

Names and meanings are those of the scheduling framework (KEP-624).
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Code(IntEnum):
    """The outcome of an extension point."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def text(self) -> str:
        """Return upstream's spelling, e.g. ``UnschedulableAndUnresolvable``."""
        return _TEXTS[self]

    @property
    def rejects(self) -> bool:
        """Return whether the code rejects the pod, on one node or altogether. Errors don't."""
        return self in _REJECTING


_TEXTS = {code: "".join(word.capitalize() for word in code.name.split("_")) for code in Code}
# Looked up once: looking up a member of an enumeration takes longer than the rest of most functions here.
_SUCCESS, _ERROR = Code.SUCCESS, Code.ERROR
_UNSCHEDULABLE, _UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_REJECTING = (_UNSCHEDULABLE, _UNRESOLVABLE, Code.PENDING)


class Status(msgspec.Struct, frozen=True):
    """The outcome of an extension point.

    Attributes:
        code: the outcome.
        reasons: texts for the user, in upstream's words.
        plugin: the plugin that returned it; set by the framework.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the pod may proceed."""
        return self.code is _SUCCESS

    @property
    def message(self) -> str:
        """Return the reasons as one text, as upstream joins them."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the same status with the name of the plugin that returned it."""
        return Status(self.code, self.reasons, plugin)


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return a rejection that preemption could resolve."""
    return Status(_UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return a rejection that preemption can't resolve."""
    return Status(_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Return an Error: the plugin, or something that it depends on, failed. It ends the cycle."""
    return Status(_ERROR, reasons)


# Verdicts on nodes are uint16; 0 passes. Fourteen bits belong to the plugin (`FilterPlugin.reasons` explains them).

UNRESOLVABLE_BIT = 0x4000
"""Set in a verdict that preemption can't change."""

ERROR_BIT = 0x8000
"""Set in a verdict that is an error and ends the cycle."""

MAX_PLUGIN_CODE = 0x3FFF


def verdict_code(verdict: int) -> Code:
    """Return the code of a packed verdict."""
    if verdict == 0:
        return _SUCCESS
    if verdict & ERROR_BIT:
        return _ERROR
    return _UNRESOLVABLE if verdict & UNRESOLVABLE_BIT else _UNSCHEDULABLE
