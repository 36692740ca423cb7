"""Convert an extender of an older version, or of a Policy, to v1."""

from __future__ import annotations

from bayplan.base.go_text.durations import format_duration
from bayplan.framework.configuration.conversion import Document, Note


def convert_extender(old: Document, path: str, note: Note) -> Document:
    """Return an extender as v1; `path` is its position, for notes."""
    new: Document = {("enableHTTPS" if name == "enableHttps" else name): value for name, value in old.items()}
    timeout = new.get("httpTimeout")
    if isinstance(timeout, int):
        new["httpTimeout"] = format_duration(timeout)
        note(f"{path}.httpTimeout", f"{timeout} nanoseconds became {new['httpTimeout']}")
    if "apiVersion" in new:
        del new["apiVersion"]
        note(f"{path}.apiVersion", "left out: there is one version of the protocol")
    return new
