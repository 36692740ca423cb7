"""Status fields that typed objects lack: images, IDs, lists of addresses, times of conditions."""

from __future__ import annotations

from hashlib import sha256

from bayplan.apiserver.bridge.network import with_lists
from bayplan.apiserver.bridge.node_facts import with_identity
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.workloads import Deployment, Job

# The name of the container list, by the name of the status list.
_CONTAINERS_OF = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}
# The time field that every write to a condition sets, even if the status of the condition stays the same; by kind.
_WRITTEN = {Deployment: "lastUpdateTime", Job: "lastProbeTime"}


def complete_status(
    item: KubernetesObject, document: Document, status: Document, before: list[Document], now: str
) -> None:
    """Add the fields that typed objects lack to a status.

    Args:
        item: the new typed object.
        document: the stored object.
        status: the status to write; changed in place, except values that it shares with the stored object.
        before: the stored conditions.
        now: the current time as a timestamp.
    """
    if isinstance(item, Pod):
        for statuses in _CONTAINERS_OF:
            _describe_containers(document, status, statuses)
        status.update(with_lists(status))
    if isinstance(item, Job):
        # Upstream stores it with the first status. It stays empty here, because finished pods are counted in one write.
        status.setdefault("uncountedTerminatedPods", {})
    if isinstance(item, Node):
        status.update(with_identity(document, status))
    if isinstance(item, PodDisruptionBudget):
        # An eviction lists its pod here and deletes it in the same step, so the new count already includes it.
        status.pop("disruptedPods", None)
    field = _WRITTEN.get(type(item))
    if field is not None and "conditions" in status:
        status["conditions"] = [
            each if each in before else {**each, field: now} for each in parts(status, "conditions")
        ]


def _describe_containers(pod: Document, status: Document, field: str) -> None:
    """Set the image of each container status, and the IDs of containers that were started."""
    images = {each.get("name"): each.get("image") for each in parts(part(pod, "spec"), _CONTAINERS_OF[field])}
    uid = str(part(pod, "metadata").get("uid") or "")
    found = parts(status, field)
    if found:
        status[field] = [_described(each, str(images.get(each.get("name")) or ""), uid) for each in found]


def _described(status: Document, image: str, uid: str) -> Document:
    shown = {**status, "image": status.get("image") or image, "restartCount": status.get("restartCount", 0)}
    if shown["image"] and not shown.get("imageID"):
        shown["imageID"] = _image_id(str(shown["image"]))
    if not shown.get("containerID") and "waiting" not in part(shown, "state"):
        shown["containerID"] = f"bayplan://{_digest(uid + '/' + str(shown.get('name')))}"
    return shown


def _image_id(image: str) -> str:
    """Return an image ID derived from the image's name, because no image is pulled."""
    if "@" in image:
        return image
    repository, _, tag = image.rpartition(":")
    return f"{repository if repository and '/' not in tag else image}@sha256:{_digest(image)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
