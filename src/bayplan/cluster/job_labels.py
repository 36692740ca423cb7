"""The selector and labels that the API server sets on a new Job, which distinguish its pods from the pods of other Jobs."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.cluster.store import ObjectStore
from bayplan.objects.meta import LabelSelector
from bayplan.objects.workloads import Job

CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"


def label_job(job: Job, store: ObjectStore) -> Job:
    """Return a new Job with UID, generation, and the selector and labels that are generated from the UID.

    A Job with ``manualSelector``, or one that already has a selector (an import), keeps its labels.
    """
    metadata, spec = job.metadata, job.spec
    metadata = replace(metadata, uid=metadata.uid or store.new_uid(), generation=metadata.generation or 1)
    if spec.manual_selector or spec.selector is not None:
        return replace(job, metadata=metadata)
    template = spec.template
    labels = {
        **template.metadata.labels,
        CONTROLLER_UID_LABEL: metadata.uid,
        JOB_NAME_LABEL: metadata.name,
        # Labels without a prefix, which upstream still writes for compatibility.
        "controller-uid": metadata.uid,
        "job-name": metadata.name,
    }
    spec = replace(
        spec,
        selector=LabelSelector(match_labels={CONTROLLER_UID_LABEL: metadata.uid}),
        template=replace(template, metadata=replace(template.metadata, labels=labels)),
    )
    return replace(job, metadata=metadata, spec=spec)
