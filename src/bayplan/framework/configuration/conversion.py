"""The result of converting a configuration of an older release: a v1 document, and notes about changed settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from bayplan.base.go_text.durations import format_duration
from bayplan.formats.json_tree import JsonValue

Document: TypeAlias = "dict[str, JsonValue]"


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

    def add_extenders(self, extenders: JsonValue) -> None:
        """Add extenders in v1 form to the document, if they are a list."""
        if isinstance(extenders, list):
            converted = [
                self._extender(each, f"$.extenders[{n}]") for n, each in enumerate(extenders) if isinstance(each, dict)
            ]
            self.document["extenders"] = list[JsonValue](converted)

    def _extender(self, old: JsonValue, path: str) -> Document:
        new = {("enableHTTPS" if name == "enableHttps" else name): value for name, value in object_of(old).items()}
        timeout = new.get("httpTimeout")
        if isinstance(timeout, int):
            new["httpTimeout"] = format_duration(timeout)
            self.note(f"{path}.httpTimeout", f"{timeout} nanoseconds became {new['httpTimeout']}")
        if "apiVersion" in new:
            del new["apiVersion"]
            self.note(f"{path}.apiVersion", "left out: there is one version of the protocol")
        return new


def object_of(value: JsonValue) -> Document:
    """Return a value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def objects_in(value: JsonValue) -> list[Document]:
    """Return the objects in a list; empty if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
