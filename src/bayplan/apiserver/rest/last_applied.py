"""The annotation in which kubectl's client-side apply stores its configuration, when kubectl applies on the server's side."""

from __future__ import annotations

from bayplan.apiserver.codec.bodies import BodyError, parse_json
from bayplan.apiserver.fields.compare import KeylessItemError, compare, fields_of
from bayplan.apiserver.fields.field_declarations import configuration_problem
from bayplan.apiserver.fields.field_set import difference, paths
from bayplan.apiserver.fields.managed import ApplyConflict, bare
from bayplan.apiserver.model.object_meta import MAX_ANNOTATIONS_BYTES
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.body_types import target_of
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part

KUBECTL = "kubectl"
"""The only field manager whose applies use and update the annotation."""
_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def check_conflicts(resource: Resource, live: Document, problem: ApplyConflict) -> None:
    """Raise a conflict of kubectl again, unless it is only about values that its last client-side apply set.

    Args:
        resource: the resource of the object.
        live: the object.
        problem: the conflict.

    Raises:
        ApplyConflict: the conflicts about other values. All of them if the annotation is missing, or is not a valid
            configuration in the version of the request.
    """
    own = _own_paths(resource, live)
    left = [each for each in problem.conflicts if each[1] not in own]
    if left:
        raise ApplyConflict(left) from problem


def _own_paths(resource: Resource, live: Document) -> set[str]:
    """Return the paths of the configuration in the annotation whose values are still those of the object."""
    try:
        config = parse_json(_annotations(live).get(_ANNOTATION, "").encode()).value
    except BodyError:
        return set()
    target = target_of(resource)
    if not isinstance(config, dict) or (config.get("apiVersion"), config.get("kind")) != (
        target.api_version,
        target.kind,
    ):
        return set()
    if configuration_problem(target.type_name, resource.fields, config):
        return set()
    try:
        changes = compare(resource.fields, config, bare(live))
        fields = fields_of(resource.fields, config)
    except KeylessItemError:
        return set()
    for changed in changes:
        fields = difference(fields, changed)
    return set(paths(fields))


def updated(merged: Document, config: Document) -> Document:
    """Return the result of an apply of kubectl, with the configuration in the annotation if it has one.

    Args:
        merged: the object with the configuration applied.
        config: the configuration.
    """
    annotations = _annotations(merged)
    if not annotations.get(_ANNOTATION):
        return merged
    metadata = dict(part(config, "metadata"))
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {name: value for name, value in _annotations(config).items() if name != _ANNOTATION}
    else:
        metadata.pop("annotations", None)
    annotations[_ANNOTATION] = json_text(_in_order({**config, "metadata": metadata})) + "\n"
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        del annotations[_ANNOTATION]
    return {**merged, "metadata": {**part(merged, "metadata"), "annotations": annotations}}


def _annotations(document: Document) -> dict[str, str]:
    """Return a copy of the annotations; null is the empty string."""
    return {
        name: value if isinstance(value, str) else ""
        for name, value in part(document, "metadata", "annotations").items()
    }


def _in_order(value: object) -> object:
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value
