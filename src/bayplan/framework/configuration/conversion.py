"""The result of converting a configuration of an older release: a v1 document, and notes about changes and omissions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

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
        document: as v1.
        notes: the changes and omissions: path in the old document, and the note.
    """

    source: str
    document: Document = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def note(self, path: str, text: str) -> None:
        """Add a note, unless there is an equal one already."""
        if (path, text) not in self.notes:
            self.notes.append((path, text))
