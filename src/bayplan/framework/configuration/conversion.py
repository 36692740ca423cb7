"""What became of a configuration of an older release: a v1 document, and notes about what was changed or left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from bayplan.framework.configuration.json_tree import JsonValue

Document: TypeAlias = "dict[str, JsonValue]"

Note: TypeAlias = Callable[[str, str], None]
"""Called with a path in the old document and what became of it."""

KIND = "KubeSchedulerConfiguration"


@dataclass
class Conversion:
    """A document on its way to v1.

    Attributes:
        source: what it was: ``kubescheduler.config.k8s.io/v1beta2``, ``Policy``.
        document: as v1.
        notes: what was changed or left out: path in the old document, and what became of it.
    """

    source: str
    document: Document = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def note(self, path: str, text: str) -> None:
        """Remember what became of something; the same is said once."""
        if (path, text) not in self.notes:
            self.notes.append((path, text))
