"""Conversion of a patched object if the patch changes its apiVersion to a version that is no longer served."""

from __future__ import annotations

from bayplan.base.plain_data import Document, part

_OLDER_DEPLOYMENTS = ("apps/v1beta1", "extensions/v1beta1")
_ROLLBACK = "deprecated.deployment.rollback.to"


def of_older_version(value: Document) -> Document:
    """Return an object after a JSON or merge patch, with what upstream converts in a Deployment of an older version.

    Older versions default the labels from the template, have a field that is now an annotation, and other defaults.
    """
    if value.get("kind") != "Deployment" or value.get("apiVersion") not in _OLDER_DEPLOYMENTS:
        return value
    metadata, spec = dict(part(value, "metadata")), dict(part(value, "spec"))
    metadata["labels"] = part(metadata, "labels") or part(spec, "template", "metadata", "labels")
    annotations = {key: text for key, text in part(metadata, "annotations").items() if key != _ROLLBACK}
    if value["apiVersion"] == "extensions/v1beta1" and not spec.get("strategy"):
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}
    rollback = spec.pop("rollbackTo", None)
    if isinstance(rollback, dict):
        annotations[_ROLLBACK] = str(rollback.get("revision") or 0)
    return {**value, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
