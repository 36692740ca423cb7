"""The clusters that this one follows: what a session of ``bayplan sync`` has written about itself into this cluster."""

from __future__ import annotations

from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.base.plain_data import Plain
from bayplan.sync.memory import MEMORY_NAMESPACE
from bayplan.sync.session import STATUS

COUNTS = ("created", "updated", "deleted", "waiting")


def sources_of(backend: Backend) -> list[Plain]:
    """Return the sources that are followed; there is one at most. On the loop thread."""
    item = backend.store.get("configmaps", (MEMORY_NAMESPACE, STATUS))
    data = decode_item(item).get("data") if item is not None else None
    if not isinstance(data, dict):
        return []
    told = {name: str(value) for name, value in data.items()}
    problems = [told.get(name, "") for name in ("problems", "source_problems")]
    return [
        {
            "name": told.get("source", ""),
            "kind": "sync",
            "address": told.get("source", ""),
            "state": told.get("state", ""),
            "position": None,
            "lag_seconds": _number(told.get("lag_seconds", "")),
            "policies": {},
            "counts": {name: _number(told.get(name, "")) for name in COUNTS},
            "message": "\n".join(text for text in problems if text),
            "left_out": [line for line in told.get("left_out", "").splitlines() if line],
        }
    ]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
