"""What people read in a status and typed objects do not hold: images of containers, times at which conditions were written."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import part, parts
from bayplan.base.plain_data import Document
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.workloads import Deployment, Job

# By kind, what says when a condition was written last, whether its status changed or not.
_WRITTEN = {Deployment: "lastUpdateTime", Job: "lastProbeTime"}


def complete_status(
    item: KubernetesObject, document: Document, status: Document, before: list[Document], now: str
) -> None:
    """Add to the status that is being written what its kind shows beside.

    Args:
        item: the typed object as it shall be.
        document: as it is stored.
        status: that is written; changed in place, but nothing inside that it has from the document.
        before: the conditions as they are stored.
        now: the time.
    """
    if isinstance(item, Pod):
        _name_images(document, status)
    if isinstance(item, PodDisruptionBudget):
        # Pods that evictions have marked until somebody counts again; they have been deleted in the same step.
        status.pop("disruptedPods", None)
    field = _WRITTEN.get(type(item))
    if field is not None and "conditions" in status:
        status["conditions"] = [
            each if each in before else {**each, field: now} for each in parts(status, "conditions")
        ]


def _name_images(pod: Document, status: Document) -> None:
    """Say which image each container of a status runs."""
    images = {each.get("name"): each.get("image") for each in parts(part(pod, "spec"), "containers")}
    containers = [
        each if each.get("image") else {**each, "image": images.get(each.get("name"), "")}
        for each in parts(status, "containerStatuses")
    ]
    if containers:
        status["containerStatuses"] = containers
