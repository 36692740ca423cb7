"""Detection of pod updates that reduce requests, so that other pods may fit.

Source: KEP-1287 (resize) and the event UpdatePodScaleDown of kube-scheduler v1.36.3.
"""

from bayplan.objects.pod import Pod
from bayplan.objects.requests import DEFAULT_GATES, RequestGates, RequestOptions, pod_requests


def is_scaled_down(old: Pod, new: Pod, gates: RequestGates = DEFAULT_GATES) -> bool:
    """Return whether an update of a pod reduces or removes one of its requests (the event UpdatePodScaleDown)."""
    if not _is_resized(old) and not _is_resized(new) and old.spec == new.spec:
        return False
    options = RequestOptions(
        use_status_resources=gates.in_place_pod_vertical_scaling,
        pod_level_vertical_scaling=gates.in_place_pod_level_resources_vertical_scaling,
    )
    after = pod_requests(new, options)
    for name, quantity in pod_requests(old, options).items():
        if name not in after or quantity.milli_value() > after[name].milli_value():
            return True
    return False


def _is_resized(pod: Pod) -> bool:
    """Return whether a pod's status may affect its requests."""
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses) or status.resources is not None
