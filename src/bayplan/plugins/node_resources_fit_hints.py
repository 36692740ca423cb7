"""The queueing hints of NodeResourcesFit: which events may make room for a pod. Source: KEP-4247."""

from __future__ import annotations

from bayplan.framework.events import HintAnswer, objects_of
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import RequestGates, RequestOptions, fit_requests, node_amounts, pod_amounts, pod_requests
from bayplan.objects.resource import DeviceClass
from bayplan.objects.resource_names import CPU, DEVICE_CLASS_PREFIX, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar
from bayplan.state.device_classes import DeviceClassResolver


class FitHints:
    """The hints, for the gates of a scheduler and the device classes of its cluster (None: they don't count)."""

    def __init__(self, gates: RequestGates, device_classes: DeviceClassResolver | None) -> None:
        self._gates = gates
        self._device_classes = device_classes

    def is_schedulable_after_pod_event(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue the pod if one with a node left, or one on a node asks for less of what the pod wants."""
        objects = objects_of(Pod, old, new)
        if objects is None:
            return HintAnswer.ERROR
        before, after = objects
        if before is None:
            return HintAnswer.ERROR
        if after is None:
            return HintAnswer(bool(before.spec.node_name or before.status.nominated_node_name))
        if not self._gates.in_place_pod_vertical_scaling:
            return HintAnswer.SKIP
        return HintAnswer(self._makes_room(pod, before, after))

    def _makes_room(self, pod: Pod, before: Pod, after: Pod) -> bool:
        """Return whether a pod that was scaled down is the waiting one, or frees something that it wants."""
        if after.metadata.uid == pod.metadata.uid:
            return True
        if not after.spec.node_name:
            return False
        options = RequestOptions(
            use_status_resources=self._gates.in_place_pod_vertical_scaling,
            pod_level_vertical_scaling=self._gates.in_place_pod_level_resources_vertical_scaling,
        )
        was, is_now = pod_amounts(before, options), pod_amounts(after, options)
        return any(
            max(0, was.get(name, 0)) > max(0, is_now.get(name, 0))
            for name, quantity in pod_requests(pod, options).items()
            if quantity.sign() != 0 and (name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name))
        )

    def is_schedulable_after_node_change(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue the pod if it fits on the node, were it empty, and the node came or offers more of what the pod wants."""
        objects = objects_of(Node, old, new)
        if objects is None:
            return HintAnswer.ERROR
        before, after = objects
        requests = fit_requests(pod, self._gates)
        if after is None or not self._fits(requests, after):
            return HintAnswer.SKIP
        return HintAnswer(before is None or self._has_grown(requests, before, after))

    def _fits(self, requests: dict[str, int], node: Node) -> bool:
        """Return whether a node without pods has room. Nothing is ignored here, whatever the arguments are."""
        offered = node_amounts(node.status.allocatable)
        if offered.get(PODS, 0) < 1:
            return False
        return all(
            amount <= offered.get(name, 0) or self._is_delegated(name, offered)
            for name, amount in requests.items()
            if amount > 0
        )

    def _has_grown(self, requests: dict[str, int], before: Node, after: Node) -> bool:
        """Return whether a node allows more pods, offers more of a required resource, or has one that devices serve."""
        offered, earlier = node_amounts(after.status.allocatable), node_amounts(before.status.allocatable)
        if offered.get(PODS, 0) > earlier.get(PODS, 0):
            return True
        return any(
            offered.get(name, 0) > earlier.get(name, 0) or self._is_delegated(name, offered)
            for name, amount in requests.items()
            if amount > 0
        )

    def _is_delegated(self, name: str, offered: dict[str, int]) -> bool:
        """Return whether devices provide a resource on a node that has none itself."""
        if self._device_classes is None or not is_scalar(name) or offered.get(name, 0) > 0:
            return False
        return self._device_classes.get(name) is not None

    def is_schedulable_after_device_class_event(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue the pod if it requests the resource that a class now serves."""
        objects = objects_of(DeviceClass, old, new)
        if objects is None:
            return HintAnswer.ERROR
        before, after = objects
        if after is None:
            return HintAnswer.ERROR
        requests = pod_requests(pod, RequestOptions())
        claimed = after.spec.extended_resource_name
        if before is not None:
            # The name, and with it the implicit resource, never changes.
            if (before.spec.extended_resource_name or "") == (claimed or ""):
                return HintAnswer.SKIP
        elif DEVICE_CLASS_PREFIX + after.metadata.name in requests:
            return HintAnswer.QUEUE
        return HintAnswer(claimed is not None and claimed in requests)
