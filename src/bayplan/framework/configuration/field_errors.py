"""The error of a rejected configuration, and field errors in Kubernetes' words: ``path: Invalid value: 0: must be ...``."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from bayplan.base.go_text.json import json_text
from bayplan.base.go_text.quoting import quote

Step: TypeAlias = str | int
"""One step of a path: a key of an object, or the index of an element."""

_STEP = re.compile(r"\[(\d+)\]|\[([^\]]*)\]|([^.\[\]]+)")


def steps_of(path: str) -> tuple[Step, ...]:
    """Parse a path from an error text into its steps; a leading dot is ignored."""
    return tuple(int(match[1]) if match[1] else match[2] or match[3] for match in _STEP.finditer(path))


def path_of(steps: Sequence[Step]) -> str:
    """Format steps as a path, e.g. ``$.profiles[0]``; ``$`` is the whole document."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


class Remark(NamedTuple):
    """One problem of a rejected configuration.

    Attributes:
        text: upstream's text.
        steps: the path of the field.
        message: the text without the path, or "" to show `text`.
        of_key: whether the name of the field is wrong, not its value.
    """

    text: str
    steps: tuple[Step, ...] = ()
    message: str = ""
    of_key: bool = False


class ConfigurationRejectedError(ValueError):
    """A configuration is rejected; the message is upstream's. `remarks` are the individual problems."""

    def __init__(self, text: str, remarks: Sequence[Remark] = (), *, steps: tuple[Step, ...] = ()) -> None:
        super().__init__(text)
        self.remarks = tuple(remarks) or (Remark(text, steps),)


def remarks_inside(steps: tuple[Step, ...], remarks: Iterable[Remark]) -> list[Remark]:
    """Return the remarks about a value as remarks about the document that contains it at a path."""
    return [remark._replace(steps=(*steps, *remark.steps)) for remark in remarks]


class Named(str):
    """A text whose Go type is a named string type: error texts show it as JSON, not quoted as a plain Go string."""

    __slots__ = ()


def _shown(value: object) -> str:
    """Format an invalid value: plain strings quoted as in Go, everything else as JSON."""
    return quote(value) if type(value) is str else json_text(value)


class Path(msgspec.Struct, frozen=True):
    """The path of a field; formats errors about the field. `path["profiles"][0]` is the path of an element inside."""

    text: str = ""

    def __getitem__(self, step: Step) -> "Path":
        if isinstance(step, int):
            return Path(f"{self.text}[{step}]")
        return Path(f"{self.text}.{step}" if self.text else step)

    def invalid(self, value: object, detail: str) -> str:
        """Return the error for an invalid value."""
        return f"{self.text}: Invalid value: {_shown(value)}: {detail}"

    def required(self, detail: str = "") -> str:
        """Return the error for a missing value."""
        return f"{self.text}: Required value" + (f": {detail}" if detail else "")

    def forbidden(self, detail: str) -> str:
        """Return the error for a field that must not be set."""
        return f"{self.text}: Forbidden: {detail}"

    def duplicate(self, value: object) -> str:
        """Return the error for a duplicate value."""
        return f"{self.text}: Duplicate value: {_shown(value)}"

    def not_supported(self, value: object, supported: Sequence[str]) -> str:
        """Return the error for an unsupported value."""
        choices = ", ".join(map(quote, supported))
        return f"{self.text}: Unsupported value: {_shown(value)}: supported values: {choices}"
