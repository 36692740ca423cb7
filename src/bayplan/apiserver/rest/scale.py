"""Paths of the scale subresource's fields in an object: replicas, and the selector of its pods."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.apiserver.kinds.strategy import part
from bayplan.apiserver.model.resources import Resource
from bayplan.base.plain_data import Document


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths of a kind, as lists of names."""

    spec_path: tuple[str, ...] = ("spec", "replicas")
    status_path: tuple[str, ...] = ("status", "replicas")
    selector_path: tuple[str, ...] = ("spec", "selector")

    def spec_replicas(self, document: Document) -> int:
        """Return how many replicas are asked for."""
        return _number(document, self.spec_path)

    def status_replicas(self, document: Document) -> int:
        """Return how many replicas there are."""
        return _number(document, self.status_path)

    def selector(self, document: Document) -> object:
        """Return the selector: a LabelSelector, a map of labels wrapped into one, or a text."""
        if not self.selector_path:
            return ""
        found = part(document, *self.selector_path[:-1]).get(self.selector_path[-1])
        if isinstance(found, dict) and not {"matchLabels", "matchExpressions"} & found.keys():
            return {"matchLabels": found}
        return found or ""

    def with_replicas(self, document: Document, replicas: int) -> Document:
        """Return a document that asks for another number of replicas."""
        return _with(document, self.spec_path, replicas)


def _number(document: Document, path: tuple[str, ...]) -> int:
    found = part(document, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) else 0


def _with(document: Document, path: tuple[str, ...], value: object) -> Document:
    if len(path) == 1:
        return {**document, path[0]: value}
    return {**document, path[0]: _with(part(document, path[0]), path[1:], value)}


def scale_paths(resource: Resource) -> Scale:
    """Return the paths of a resource; those of custom resources are in their definition."""
    if resource.custom is None:
        return Scale()
    declared = part(resource.custom, "subresources", "scale")
    paths = [
        tuple(str(declared.get(name) or "").strip(".").split("."))
        for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    ]
    return Scale(paths[0], paths[1], paths[2] if declared.get("labelSelectorPath") else ())
