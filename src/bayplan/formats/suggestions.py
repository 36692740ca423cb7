"""Suggest corrections for the misspelt kinds and fields of a document."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.base.near_names import near_name
from bayplan.formats import schema
from bayplan.objects.kinds import KINDS

OPTIONS = {
    "Autoscaler": "simulate --autoscaler FILE",
    "DeschedulerPolicy": "simulate --descheduler FILE",
    "KubeSchedulerConfiguration": "--config FILE",
    "Scenario": "bayplan test FILE",
    "Workload": "simulate --workload FILE",
}
"""The option or command for files that are not manifests, by their kind."""

OWN_GROUP = "bayplan.io"


def suggest_field(document: Mapping[str, object], path: str) -> str:
    """Return the known field that an unknown field probably means, in quotes; "" if none is similar.

    Args:
        document: a document whose kind the pinned release serves.
        path: the path of the unknown field, from `bayplan.formats.schema.unknown_fields`.
    """
    close = near_name(path.rpartition(".")[2], schema.known_fields(document, path))
    return f"'{close}'" if close else ""


def suggest_kind(api_version: str, kind: str) -> str:
    """Return the apiVersion or kind that an unknown one probably means, as ``'kind: Pod'``; "" if none is similar.

    For a kind of file that is passed differently, return how.
    """
    group = api_version.rpartition("/")[0]
    if group in (OWN_GROUP, "descheduler", "kubescheduler.config.k8s.io") and kind in OPTIONS:
        return OPTIONS[kind]
    if group == OWN_GROUP:
        close = near_name(kind, ["Trace", *OPTIONS])
        return f"'kind: {close}'" if close and close != kind else ""
    names = [tuple(name.rsplit("/", 1)) for name in schema.schema().kinds]
    names += [(row.api_version, row.kind) for row in KINDS]
    versions = sorted({version for version, name in names if name == kind})
    if api_version and group not in {version.rpartition("/")[0] for version, _ in names}:
        # Groups of custom resources contain a dot; other groups are misspelt Kubernetes groups.
        close = near_name(api_version, versions) or (versions[0] if versions and "." not in group else "")
        return f"'apiVersion: {close}'" if close else ""
    if versions:
        same_group = [version for version in versions if version.rpartition("/")[0] == group]
        return f"'apiVersion: {(same_group or versions)[0]}'"
    close = near_name(kind, sorted({name for _, name in names}))
    return f"'kind: {close}'" if close else ""
