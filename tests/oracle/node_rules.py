"""Naive rules of the plugins that read only the node's own object, for one node at a time on the typed objects."""

from collections.abc import Sequence

from bayplan.objects.affinity import NodeAffinity, NodeSelector, Toleration
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from tests.oracle.selectors import matches_node


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration (without Gt and Lt) tolerates a taint."""
    fits = toleration.effect in ("", taint.effect) and toleration.key in ("", taint.key)
    return fits and (toleration.operator == "Exists" or toleration.value == taint.value)


def is_tolerated(taint: Taint, pod: Pod) -> bool:
    """Return whether one of a pod's tolerations tolerates a taint."""
    return any(tolerates(toleration, taint) for toleration in pod.spec.tolerations)


def passes_taints(pod: Pod, node: Node) -> bool:
    """Return whether a pod tolerates all taints with the effects NoSchedule and NoExecute."""
    return all(is_tolerated(taint, pod) for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute"))


def count_soft_taints(pod: Pod, node: Node) -> int:
    """Return the number of PreferNoSchedule taints that a pod does not tolerate."""
    soft = [taint for taint in node.spec.taints if taint.effect == "PreferNoSchedule"]
    return len([taint for taint in soft if not is_tolerated(taint, pod)])


def passes_cordon(pod: Pod, node: Node) -> bool:
    """Return whether a node is schedulable, or the pod tolerates the taint of unschedulable nodes."""
    stand_in = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    return not node.spec.unschedulable or is_tolerated(stand_in, pod)


def _affinity(pod: Pod) -> NodeAffinity:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    return affinity or NodeAffinity()


def passes_affinity(pod: Pod, node: Node) -> bool:
    """Return whether the pod's node selector and required node affinity match a node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    required = _affinity(pod).required_during_scheduling_ignored_during_execution
    return required is None or matches_node(required, labels, node.metadata.name)


def preference(pod: Pod, node: Node) -> int:
    """Return the sum of the weights of the preferred terms that match a node."""
    terms = _affinity(pod).preferred_during_scheduling_ignored_during_execution or ()
    return sum(
        term.weight
        for term in terms
        if matches_node(NodeSelector(node_selector_terms=(term.preference,)), node.metadata.labels, node.metadata.name)
    )


def passes_ports(pod: Pod, pods_on_node: Sequence[Pod]) -> bool:
    """Return whether no port that a pod requests is in use on the node."""
    held = [port for other in pods_on_node for port in _ports(other)]
    for ip, protocol, number in _ports(pod):
        for held_ip, held_protocol, held_number in held:
            same_address = ip == held_ip or "0.0.0.0" in (ip, held_ip)
            if number == held_number and protocol == held_protocol and same_address:
                return False
    return True


def _ports(pod: Pod) -> list[tuple[str, str, int]]:
    return [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    ]


def image_score(pod: Pod, node: Node, nodes: Sequence[Node]) -> int:
    """Return the score of a node for the images that it has. The size of an image is that on the first node with it."""
    total = 0
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        name = container.image
        if ":" not in name.rsplit("/", 1)[-1]:
            name += ":latest"
        holders = [other for other in nodes if any(name in image.names for image in other.status.images)]
        if node in holders:
            size = next(image.size_bytes for image in holders[0].status.images if name in image.names)
            total += int(size * (len(holders) / len(nodes)))
    containers = len(pod.spec.init_containers) + len(pod.spec.containers)
    low, high = 23 * 2**20, 1000 * 2**20 * containers
    return 100 * (min(max(total, low), high) - low) // (high - low)
