"""Stored ControllerRevisions of StatefulSets and DaemonSets: their templates, and the history of a set."""

from __future__ import annotations

import msgspec

from bayplan.apiserver.rest.backend import decode_item
from bayplan.apiserver.store.store import Store
from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part
from bayplan.controllers.revisions import Revision
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


def stored_revisions(documents: Store, item: StatefulSet | DaemonSet) -> list[Revision]:
    """Return the revisions of a set that the API stores, oldest first."""
    prefix = f"{item.metadata.name}-"
    found: list[tuple[int, Revision]] = []
    for each in documents.between(REVISIONS, item.metadata.namespace):
        if item.metadata.uid.encode() not in each.raw or not each.name.startswith(prefix):
            continue
        document = decode_item(each)
        template = typed_template(document, type(item))
        number = document.get("revision")
        if template is not None:
            revision = Revision(each.name.removeprefix(prefix), template)
            found.append((number if isinstance(number, int) else 0, revision))
    return [revision for _, revision in sorted(found, key=lambda entry: entry[0])]
