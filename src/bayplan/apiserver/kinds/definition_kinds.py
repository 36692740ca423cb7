"""The strategy of CustomResourceDefinitions: names that follow from others, and the status that says they are served."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Context, Strategy, part, parts, texts
from bayplan.base.plain_data import Document

MANAGER = "kube-apiserver"
"""Owns the status of definitions."""


class DefinitionStrategy(Strategy):
    """Definitions: a new one is accepted by a write of its own, as by upstream's controllers, but at once."""

    counts_generations = True
    unconditional_update = False

    def prepare_create(self, context: Context, document: Document) -> None:
        """Fill in names, and say that they are accepted."""
        super().prepare_create(context, document)
        _fill_in(document)
        document["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": _stored(document),
        }

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Keep the status in step with names and versions."""
        super().prepare_update(context, new, old)
        _fill_in(new)
        status = {**part(new, "status")}
        before = texts(status, "storedVersions")
        status["acceptedNames"] = dict(part(new, "spec", "names"))
        status["storedVersions"] = before + [name for name in _stored(new) if name not in before]
        new["status"] = status


def accepted_status(definition: Document, now: str) -> Document | None:
    """Return the status of a definition that is accepted; None if it says so already."""
    status = part(definition, "status")
    if any(each.get("type") == "Established" for each in parts(status, "conditions")):
        return None
    return {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": dict(part(definition, "spec", "names")),
        "storedVersions": texts(status, "storedVersions") or _stored(definition),
    }


def _fill_in(document: Document) -> None:
    names = part(document, "spec", "names")
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"


def _stored(document: Document) -> list[str]:
    return [str(version.get("name")) for version in parts(part(document, "spec"), "versions") if version.get("storage")]


def _condition(name: str, reason: str, message: str, now: str) -> Document:
    return {"type": name, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
