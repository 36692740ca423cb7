"""Say what is wrong with a field, in the words of Kubernetes' field errors.

A field error is a text: ``path: Invalid value: 0: must be greater than 0``. The functions here make them;
`bayplan.objects.selectors.join_errors` joins several, as upstream does.
"""

from collections.abc import Iterable, Sequence

from bayplan.base.go_text.json import json_string, json_text
from bayplan.base.go_text.quoting import quote


class Path:
    """The way to a field: ``profiles[0].plugins``. The empty path is that of a plugin's arguments at build time."""

    __slots__ = ("text",)

    def __init__(self, text: str = "") -> None:
        self.text = text

    def child(self, *names: str) -> "Path":
        """Go to a field of this one."""
        return Path(".".join((self.text, *names) if self.text else names))

    def index(self, index: int | str) -> "Path":
        """Go to an element of a list, or to a key of a map."""
        return Path(f"{self.text}[{index}]")


class Named:
    """A text of a named Go type: error texts show it as JSON, not quoted as a plain Go string."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _shown(value: object) -> str:
    """Show a bad value: simple ones plainly, everything else (dicts, lists, named texts) as JSON."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Named):
        return json_string(value.text)
    return json_text(value)


def invalid(path: Path, value: object, detail: str) -> str:
    """Refuse a value."""
    return f"{path.text}: Invalid value: {_shown(value)}: {detail}"


def required(path: Path, detail: str = "") -> str:
    """Miss a value."""
    return f"{path.text}: Required value" + (f": {detail}" if detail else "")


def forbidden(path: Path, detail: str) -> str:
    """Refuse a field altogether."""
    return f"{path.text}: Forbidden: {detail}"


def duplicate(path: Path, value: object) -> str:
    """Refuse a value that stands twice."""
    return f"{path.text}: Duplicate value: {_shown(value)}"


def not_supported(path: Path, value: object, supported: Sequence[str]) -> str:
    """Refuse a value that is none of a few."""
    choices = ", ".join(quote(choice) for choice in supported)
    return f"{path.text}: Unsupported value: {_shown(value)}: supported values: {choices}"


def without_repeats(messages: Iterable[str]) -> list[str]:
    """Drop messages that were there before."""
    return list(dict.fromkeys(messages))
