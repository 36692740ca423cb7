"""The templates in stored ControllerRevisions of StatefulSets and DaemonSets, untyped and typed."""

from __future__ import annotations

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.objects.workloads import DaemonSet, PodTemplateSpec, StatefulSet

REVISIONS = "apps/controllerrevisions"

SETS: dict[str, type[StatefulSet | DaemonSet]] = {"StatefulSet": StatefulSet, "DaemonSet": DaemonSet}
"""The kinds that have ControllerRevisions, by name."""

_decoder = ObjectDecoder()


def template_of(revision: Document) -> Document:
    """Return the whole pod template in a ControllerRevision."""
    return part(revision, "data", "spec", "template")


def typed_template(revision: Document, kind: type[StatefulSet | DaemonSet]) -> PodTemplateSpec | None:
    """Return the typed pod template in a ControllerRevision, or None if it cannot be decoded."""
    whole: Document = {"metadata": {"name": "set"}, "spec": {"template": template_of(revision)}}
    try:
        return _decoder.decode(msgspec.json.encode(whole), kind).spec.template
    except InputError:
        return None
