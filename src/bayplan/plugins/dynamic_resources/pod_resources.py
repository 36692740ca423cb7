"""Which extended resources of a pod devices may stand for; asked about every pod, so remembered per spec."""

from __future__ import annotations

from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.resource_names import is_dra_extended
from bayplan.plugins.dynamic_resources.extended_resources import asked_resources
from bayplan.state.device_classes import DeviceClassResolver
from bayplan.state.resource_table import FIRST_RESOURCES

REMEMBERED = 4096


class PodResources:
    """The extended resources of pods. `classes` is None if devices don't serve any (a feature gate)."""

    __slots__ = ("_classes", "_names")

    def __init__(self, classes: DeviceClassResolver | None) -> None:
        self._classes = classes
        # By the identity of the spec, which the entry holds, so that no address is reused while it is here.
        self._names: dict[int, tuple[PodSpec, tuple[str, ...]]] = {}

    def any_backed(self, pod: Pod) -> bool:
        """Return whether some device class serves a resource that the pod requests."""
        classes = self._classes
        spec = pod.spec
        if not classes or not asks_for_more(spec):
            return False
        entry = self._names.get(id(spec))
        if entry is None:
            if len(self._names) >= REMEMBERED:
                self._names.clear()
            entry = self._names[id(spec)] = (spec, _names(pod))
        return bool(entry[1]) and any(classes.get(name) is not None for name in entry[1])


def asks_for_more(spec: PodSpec) -> bool:
    """Return whether a pod requests more than the basic resources of nodes; nearly all don't."""
    for container in spec.containers:
        for name in container.resources.requests:
            if name not in FIRST_RESOURCES:
                return True
    return bool(spec.init_containers or spec.overhead or spec.resources is not None)


def _names(pod: Pod) -> tuple[str, ...]:
    """Return the extended resources of which a pod requests more than 0."""
    spec = pod.spec
    listed = [container.resources.requests for container in (*spec.init_containers, *spec.containers)]
    if spec.overhead:
        listed.append(spec.overhead)
    if spec.resources is not None:
        listed.append(spec.resources.requests)
    if not any(is_dra_extended(name) for requests in listed for name in requests):
        return ()
    return tuple(asked_resources(pod))
