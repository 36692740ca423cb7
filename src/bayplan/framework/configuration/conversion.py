"""The result of converting a configuration of an older release: a v1 document, and notes about changed settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from bayplan.base.go_text.durations import format_duration
from bayplan.framework.configuration.json_tree import JsonValue

Document: TypeAlias = "dict[str, JsonValue]"

Note: TypeAlias = Callable[[str, str], None]
"""Called with a path in the old document and a note about the setting there."""

KIND = "KubeSchedulerConfiguration"


@dataclass
class Conversion:
    """A document being converted to v1.

    Attributes:
        source: the original version, for example ``kubescheduler.config.k8s.io/v1beta2`` or ``Policy``.
        document: the converted document.
        notes: one per changed or dropped setting: its path in the old document, and the text.
    """

    source: str
    document: Document = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def note(self, path: str, text: str) -> None:
        """Add a note, unless there already is an equal one."""
        if (path, text) not in self.notes:
            self.notes.append((path, text))


def convert_extender(old: Document, path: str, note: Note) -> Document:
    """Return an extender in v1 form; call `note` for each change. `path`: its path in the old document."""
    new: Document = {("enableHTTPS" if name == "enableHttps" else name): value for name, value in old.items()}
    timeout = new.get("httpTimeout")
    if isinstance(timeout, int):
        new["httpTimeout"] = format_duration(timeout)
        note(f"{path}.httpTimeout", f"{timeout} nanoseconds became {new['httpTimeout']}")
    if "apiVersion" in new:
        del new["apiVersion"]
        note(f"{path}.apiVersion", "left out: there is one version of the protocol")
    return new
