"""The result of converting a configuration of an older release: a v1 document, and notes about changes and omissions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from bayplan.base.go_text.durations import format_duration
from bayplan.framework.configuration.json_tree import JsonValue

Document: TypeAlias = "dict[str, JsonValue]"

Note: TypeAlias = Callable[[str, str], None]
"""Called with a path in the old document and the note about it."""

KIND = "KubeSchedulerConfiguration"


@dataclass
class Conversion:
    """A document being converted to v1.

    Attributes:
        source: the original version: ``kubescheduler.config.k8s.io/v1beta2``, ``Policy``.
        document: the document in version v1.
        notes: the changes and omissions: path in the old document, and the note.
    """

    source: str
    document: Document = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def note(self, path: str, text: str) -> None:
        """Add a note, unless there is an equal one already."""
        if (path, text) not in self.notes:
            self.notes.append((path, text))


def convert_extender(old: Document, path: str, note: Note) -> Document:
    """Return an extender in v1 form. `path`: its position, for notes."""
    new: Document = {("enableHTTPS" if name == "enableHttps" else name): value for name, value in old.items()}
    timeout = new.get("httpTimeout")
    if isinstance(timeout, int):
        new["httpTimeout"] = format_duration(timeout)
        note(f"{path}.httpTimeout", f"{timeout} nanoseconds became {new['httpTimeout']}")
    if "apiVersion" in new:
        del new["apiVersion"]
        note(f"{path}.apiVersion", "left out: there is one version of the protocol")
    return new
