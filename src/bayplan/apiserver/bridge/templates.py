"""The untyped form of objects that controllers create: the owner's whole template, with the controller's changes.

Typed templates contain only the fields that scheduling reads. A pod is therefore created from the stored template of
its owner, so that it also gets probes, volume sources, environment variables and unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec

from bayplan.apiserver.bridge.merging import merged
from bayplan.apiserver.bridge.revision_documents import REVISIONS, SETS, template_of, typed_template
from bayplan.apiserver.bridge.typed_store import TABLE_OF_KIND, TypedStore
from bayplan.apiserver.rest.backend import decode_item
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import Document, part, parts
from bayplan.controllers.job_indexes import INDEX_ANNOTATION
from bayplan.controllers.revisions import REVISION_LABEL
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim, ResourceClaimTemplate
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.objects.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

_TEMPLATE_OWNERS: dict[str, type[KubernetesObject]] = {
    struct.__name__: struct for struct in (DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet)
}
_SERVER_OWNED = ("uid", "resourceVersion", "creationTimestamp", "generation")
_MAX_SOURCES = 256
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


def plain(item: object) -> object:
    """Return typed data as plain data: lists instead of tuples, and without defaults."""
    return msgspec.json.decode(msgspec.json.encode(item))


class Templates:
    """Builds the untyped form of new objects.

    Args:
        typed: the typed objects.
        documents: the API's store.
    """

    def __init__(self, typed: TypedStore, documents: Store) -> None:
        self._typed = typed
        self._documents = documents
        self._sources: dict[tuple[str, str], tuple[Document, object, object]] = {}

    def document_of(self, item: KubernetesObject) -> Document:
        """Return the untyped form of a new object, without status."""
        document: Document = {"metadata": self._metadata(item)}
        if isinstance(item, Pod):
            document["spec"] = spec = self._spec_of_pod(item)
            if INDEX_ANNOTATION in item.metadata.annotations:
                document["spec"] = _with_index_variable(spec)
            return document
        document.update((name, value) for name, value in cast("Document", plain(item)).items() if name != "metadata")
        document.pop("status", None)
        if isinstance(item, ReplicaSet):
            self._fill_template(document, item)
        elif isinstance(item, Job):
            self._fill_job(document, item)
        elif isinstance(item, PersistentVolumeClaim):
            self._fill_claim(document, item)
        elif isinstance(item, ResourceClaim):
            self._fill_resource_claim(document, item)
        return document

    def _metadata(self, item: KubernetesObject) -> Document:
        metadata = cast("Document", plain(item.metadata))
        for name in _SERVER_OWNED:
            metadata.pop(name, None)
        return metadata

    # --- from the template of the owner -------------------------------------------------------------------------------

    def _spec_of_pod(self, pod: Pod) -> Document:
        source = self._older_template(pod) or self._template_of_owner(pod)
        if source is None:
            return cast("Document", plain(pod.spec))
        document, typed, before = source
        if pod.spec is typed:
            return document
        return cast("Document", merged(document, before, plain(pod.spec)))

    def _older_template(self, pod: Pod) -> tuple[Document, object, object] | None:
        """Return the stored template of the revision that a pod of a StatefulSet or DaemonSet is created from, or None.

        The result has the form of `_template_of_owner`.
        """
        reference, label = pod.metadata.controller(), pod.metadata.labels.get(REVISION_LABEL)
        kind = SETS.get(reference.kind) if reference is not None else None
        if reference is None or kind is None or not label:
            return None
        prefix = f"{reference.name}-"
        name = label if label.startswith(prefix) else prefix + label
        stored = self._documents.get(REVISIONS, (pod.metadata.namespace, name))
        if stored is None or reference.uid.encode() not in stored.raw:
            return None
        key = (stored.uid, str(stored.revision))
        if key not in self._sources:
            revision = decode_item(stored)
            typed = typed_template(revision, kind)
            if typed is None:
                return None
            document = part(template_of(revision), "spec")
            self._sources[key] = (document, typed.spec, plain(typed.spec))
        return self._sources[key]

    def _fill_template(self, document: Document, item: ReplicaSet) -> None:
        source = self._template_of_owner(item)
        if source is not None:
            inner = part(document, "spec", "template")
            inner["spec"] = merged(source[0], source[2], plain(item.spec.template.spec))

    def _template_of_owner(self, item: KubernetesObject) -> tuple[Document, object, object] | None:
        """Return the pod spec in the template of an object's owner, or None without an owner.

        Returns:
            The spec as stored, its typed form, and its typed form as plain data.
        """
        reference = item.metadata.controller()
        kind = _TEMPLATE_OWNERS.get(reference.kind) if reference is not None else None
        if reference is None or kind is None:
            return None
        owner = self._typed.get(kind, f"{item.metadata.namespace}/{reference.name}")
        if owner is None or owner.metadata.uid != reference.uid:
            return None

        def read(document: Document) -> tuple[Document, object]:
            template = getattr(owner.spec, "template", None)  # type: ignore[attr-defined]
            return part(document, "spec", "template", "spec"), getattr(template, "spec", None)

        return self._source(owner, read)

    def _source(
        self, owner: KubernetesObject, read: Callable[[Document], tuple[Document, object]]
    ) -> tuple[Document, object, object] | None:
        """Return the stored and the typed part that `read` returns for an owner, and the typed part as plain data.

        The result is cached until the owner changes. None if the owner does not exist.
        """
        metadata = owner.metadata
        key = (metadata.uid, metadata.resource_version)
        known = self._sources.get(key)
        if known is not None:
            return known
        stored = self._documents.get(TABLE_OF_KIND[type(owner)], (metadata.namespace, metadata.name))
        if stored is None:
            return None
        document, typed = read(decode_item(stored))
        if len(self._sources) >= _MAX_SOURCES:
            self._sources.clear()
        known = self._sources[key] = (document, typed, plain(typed))
        return known

    # --- Jobs of CronJobs, claims of StatefulSets and of pods ---------------------------------------------------------

    def _fill_job(self, document: Document, job: Job) -> None:
        """Copy the Job's spec from its CronJob unchanged: the API generates the selector and the labels."""
        reference = job.metadata.controller()
        owner = self._typed.get(CronJob, f"{job.metadata.namespace}/{reference.name}") if reference else None
        if owner is None:
            return
        template = owner.spec.job_template.spec
        source = self._source(owner, lambda found: (part(found, "spec", "jobTemplate", "spec"), template))
        if source is not None:
            document["spec"] = source[0]

    def _fill_claim(self, document: Document, claim: PersistentVolumeClaim) -> None:
        """Copy the spec from the stored claim template; the claim shares its typed spec with the typed template."""
        for owner in self._typed.all(StatefulSet):
            for index, template in enumerate(owner.spec.volume_claim_templates):
                if template.spec is claim.spec and owner.metadata.namespace == claim.metadata.namespace:
                    stored = self._documents.get("apps/statefulsets", (owner.metadata.namespace, owner.metadata.name))
                    found = parts(part(decode_item(stored), "spec"), "volumeClaimTemplates") if stored else []
                    if index < len(found):
                        document["spec"] = found[index].get("spec", {})
                    return

    def _fill_resource_claim(self, document: Document, claim: ResourceClaim) -> None:
        for template in self._typed.all(ResourceClaimTemplate):
            if template.spec.spec is claim.spec and template.metadata.namespace == claim.metadata.namespace:
                key = (template.metadata.namespace, template.metadata.name)
                stored = self._documents.get("resource.k8s.io/resourceclaimtemplates", key)
                if stored is not None:
                    document["spec"] = part(decode_item(stored), "spec", "spec")
                return


def _with_index_variable(spec: Document) -> Document:
    """Return the spec of a pod of an Indexed Job with the variable JOB_COMPLETION_INDEX in every container."""
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX_ANNOTATION}']"}}
    variable: Document = {"name": _INDEX_VARIABLE, "valueFrom": source}
    changed: Document = {}
    for name in ("initContainers", "containers"):
        changed[name] = [
            each
            if any(known.get("name") == _INDEX_VARIABLE for known in parts(each, "env"))
            else {**each, "env": [*parts(each, "env"), variable]}
            for each in parts(spec, name)
        ]
    return {**spec, **{name: containers for name, containers in changed.items() if containers}}
