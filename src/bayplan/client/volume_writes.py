"""The requests of VolumeBinding at PreBind: write volumes and claims, then wait until the claims are bound.

The functions are generators; see `bayplan.client.request_steps`. They read the objects again and change
complete documents, because typed objects have only the fields that scheduling reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.base.plain_data import Document
from bayplan.client.pre_bind import PREEMPTED, PreBind
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import get_request, update_request
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import compile_node_selector
from bayplan.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.csi_migration import TranslationError, in_tree_plugin, translate_volume
from bayplan.plugins.pod_claims import BIND_COMPLETED, SELECTED_NODE
from bayplan.plugins.volume_binding.solve import MIGRATED_PLUGINS

FIRST_LOOK_SECONDS = 0.05
MAX_POLL_SECONDS = 1.0
"""Maximum interval between checks of claims, as in upstream.

The interval starts at `FIRST_LOOK_SECONDS`, and doubles each time.
"""


class WrittenItem(msgspec.Struct, gc=False):
    """A written volume or claim, and its resource version after the write."""

    item: KubernetesObject
    resource_version: int = 0


def write_item(written: WrittenItem, objects: ObjectLookup) -> RequestSteps[str]:
    """Write a volume's reference to its claim, or the annotation with the selected node of a claim.

    A conflict is a failure, as in upstream.
    """
    item = written.item
    response = yield get_request(item)
    if not response.ok:
        return response.message
    document = msgspec.json.decode(response.body, type=dict[str, object])
    metadata = member(document, "metadata")
    metadata["resourceVersion"] = item.metadata.resource_version
    metadata["annotations"] = dict(item.metadata.annotations)
    if isinstance(item, PersistentVolume):
        _refer_to_claim(member(document, "spec"), item, objects)
    response = yield update_request(item, document)
    if not response.ok:
        return response.message
    answer = msgspec.json.decode(response.body, type=dict[str, object])
    written.resource_version = _revision(str(member(answer, "metadata").get("resourceVersion", "")))
    return ""


def _refer_to_claim(spec: Document, volume: PersistentVolume, objects: ObjectLookup) -> None:
    reference = volume.spec.claim_ref
    if reference is None or member(spec, "claimRef").get("uid") == reference.uid:
        return
    document: Document = msgspec.to_builtins(reference)
    claim = objects.get(PersistentVolumeClaim, f"{reference.namespace}/{reference.name}")
    if claim is not None:
        document["resourceVersion"] = claim.metadata.resource_version
    spec["claimRef"] = document


def wait_for_claims(
    pod: Pod, node_name: str, written: Sequence[WrittenItem], objects: ObjectLookup, pre_bind: PreBind
) -> RequestSteps[str]:
    """Wait until the cluster's volume controller has bound the claims of the written objects, or PreBind is canceled."""
    pause, waited = FIRST_LOOK_SECONDS, 0.0
    while waited < pre_bind.limits.volume_seconds:
        yield pause
        waited += pause
        if pre_bind.is_canceled:
            return PREEMPTED
        pause = min(2 * pause, MAX_POLL_SECONDS)
        problem = check_claims(pod, node_name, written, objects)
        if problem is None:
            return ""
        if problem:
            return f"binding volumes: {problem}"
    return "binding volumes: context deadline exceeded"


def check_claims(pod: Pod, node_name: str, written: Sequence[WrittenItem], objects: ObjectLookup) -> str | None:
    """Return None if all claims are bound, "" if a claim is still pending, else the reason of the failure."""
    node = objects.get(Node, node_name)
    if node is None:
        return f'failed to get node "{node_name}": node "{node_name}" not found'
    if objects.get(Pod, pod.key) is None:
        return f'pod does not exist any more: pod "{pod.metadata.name}" not found'
    # As upstream, check all volumes before all claims, and stop at the first that is pending.
    for item in written:
        if isinstance(item.item, PersistentVolume):
            problem = _check_volume(item, node, objects)
        else:
            problem = _check_claim(item, node, objects)
        if problem is not None:
            return problem
    return None


def _check_volume(written: WrittenItem, node: Node, objects: ObjectLookup) -> str | None:
    name = written.item.metadata.name
    volume = objects.get(PersistentVolume, name)
    if volume is None:
        return f'failed to check binding: could not find v1.PersistentVolume "{name}"'
    if _revision(volume.metadata.resource_version) < written.resource_version:
        return ""
    problem = _affinity_problem(volume, node, objects)
    if problem:
        return problem
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        return f'ClaimRef got reset for pv "{name}"'
    key = f"{reference.namespace}/{reference.name}"
    claim = objects.get(PersistentVolumeClaim, key)
    if claim is None:
        return f'failed to check binding: could not find v1.PersistentVolumeClaim "{key}"'
    return None if _is_fully_bound(claim) else ""


def _check_claim(written: WrittenItem, node: Node, objects: ObjectLookup) -> str | None:
    key = written.item.key
    claim = objects.get(PersistentVolumeClaim, key)
    if claim is None:
        return f'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "{key}"'
    if _revision(claim.metadata.resource_version) < written.resource_version:
        return ""
    name, annotations = claim.metadata.name, claim.metadata.annotations
    if not annotations:
        return f'selectedNode annotation reset for PVC "{name}"'
    if annotations.get(SELECTED_NODE, "") != node.metadata.name:
        # A provisioner changes the annotation if it cannot create a volume for that node.
        return f'provisioning failed for PVC "{name}"'
    if claim.spec.volume_name:
        volume = objects.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return ""
        problem = _affinity_problem(volume, node, objects)
        if problem:
            return problem
    return None if _is_fully_bound(claim) else ""


def _affinity_problem(volume: PersistentVolume, node: Node, objects: ObjectLookup) -> str:
    """Return why a volume's node affinity excludes a node, or "".

    A migrated volume is first translated to its CSI form.
    """
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    plugin = in_tree_plugin(volume.spec)
    if plugin:
        csi_node = objects.get(CSINode, node.metadata.name)
        annotations = csi_node.metadata.annotations if csi_node is not None else {}
        if plugin in annotations.get(MIGRATED_PLUGINS, "").split(","):
            try:
                required = translate_volume(volume).node_affinity
            except TranslationError as problem:
                return f"failed to translate pv to csi: {problem}"
    if required is None or compile_node_selector(required).matches(node.metadata.labels, node.metadata.name):
        return ""
    return f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}": no matching NodeSelectorTerms'


def _is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _revision(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def member(document: Document, name: str) -> Document:
    """Return an object within a document, to be modified in place; create it if it is missing."""
    inner = document.get(name)
    if not isinstance(inner, dict):
        inner = {}
        document[name] = inner
    return inner
