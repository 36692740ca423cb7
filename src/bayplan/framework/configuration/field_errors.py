"""Field errors, in the words of Kubernetes.

A field error is a text: ``path: Invalid value: 0: must be greater than 0``. These functions format single errors;
`bayplan.objects.selectors.join_errors` joins several, as upstream does.
"""

from collections.abc import Iterable, Sequence

from bayplan.base.go_text.json import json_string, json_text
from bayplan.base.go_text.quoting import quote


class Path:
    """The path of a field: ``profiles[0].plugins``. The path of a plugin's arguments at build time is empty."""

    __slots__ = ("text",)

    def __init__(self, text: str = "") -> None:
        self.text = text

    def child(self, *names: str) -> "Path":
        """Return the path of a field of this one."""
        return Path(".".join((self.text, *names) if self.text else names))

    def index(self, index: int | str) -> "Path":
        """Return the path of a list element or a map key."""
        return Path(f"{self.text}[{index}]")


class Named:
    """A text of a named Go type: error texts show it as JSON, not quoted as a plain Go string."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _shown(value: object) -> str:
    """Format an invalid value: simple ones plainly, everything else (dicts, lists, named texts) as JSON."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Named):
        return json_string(value.text)
    return json_text(value)


def invalid(path: Path, value: object, detail: str) -> str:
    """Return the error for an invalid value."""
    return f"{path.text}: Invalid value: {_shown(value)}: {detail}"


def required(path: Path, detail: str = "") -> str:
    """Return the error for a missing value."""
    return f"{path.text}: Required value" + (f": {detail}" if detail else "")


def forbidden(path: Path, detail: str) -> str:
    """Return the error for a field that must not be set."""
    return f"{path.text}: Forbidden: {detail}"


def duplicate(path: Path, value: object) -> str:
    """Return the error for a duplicate value."""
    return f"{path.text}: Duplicate value: {_shown(value)}"


def not_supported(path: Path, value: object, supported: Sequence[str]) -> str:
    """Return the error for a value that is not one of the supported ones."""
    choices = ", ".join(quote(choice) for choice in supported)
    return f"{path.text}: Unsupported value: {_shown(value)}: supported values: {choices}"


def without_repeats(messages: Iterable[str]) -> list[str]:
    """Drop duplicate messages."""
    return list(dict.fromkeys(messages))
