"""Find obstacles to draining a node by the rules of ``kubectl drain`` and of the eviction API.

Source: https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/, k8s.io/kubectl/pkg/drain/filters.go and
pkg/registry/core/pod/storage/eviction.go v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from bayplan.analysis.units import format_first
from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.cluster.owned_pods import is_ready
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodStatus
from bayplan.objects.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from bayplan.objects.selectors import NOTHING, Selector, SelectorError, compile_label_selector

CORDON_TAINT = "node.kubernetes.io/unschedulable"
"""The taint that the node controller adds to a cordoned node. NodeUnschedulable and TaintToleration both reject such a node."""


SHOWN = 3
"""Maximum number of pods and nodes to name in a sentence."""

_LISTED_FOR = {"--force": "no controller", "--delete-emptydir-data": "emptyDir volumes"}
"""Kinds of pods for which ``kubectl drain`` requires an option."""


class DrainOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``kubectl drain``. Pods of DaemonSets are always ignored.

    Attributes:
        force: whether to evict pods without a controller; in answers they are recreated as copies.
        delete_emptydir_data: whether to evict pods with emptyDir volumes.
        disable_eviction: whether to ignore disruption budgets.
    """

    force: bool = False
    delete_emptydir_data: bool = False
    disable_eviction: bool = False


class Obstacle(msgspec.Struct, frozen=True):
    """A reason why a node can't be drained.

    Attributes:
        pod: the key of the pod concerned.
        reason: the reason.
        flag: the option of ``kubectl drain`` without which it evicts no pod of the node; "" if it only waits for this one.
    """

    pod: str
    reason: str
    flag: str = ""


def uncordoned(node: Node) -> Node:
    """Return a node without its cordon and the taint of the cordon."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != CORDON_TAINT)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


class Budgets:
    """The disruption budgets of a cluster.

    Args:
        items: the budgets.
    """

    def __init__(self, items: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[tuple[Selector, PodDisruptionBudget]]] = {}
        for item in items:
            try:
                selector = compile_label_selector(item.spec.selector)
            except SelectorError:
                selector = NOTHING
            self._by_namespace.setdefault(item.metadata.namespace, []).append((selector, item))

    def _of(self, pod: Pod) -> list[PodDisruptionBudget]:
        return [
            item
            for selector, item in self._by_namespace.get(pod.metadata.namespace, ())
            if selector.matches(pod.metadata.labels)
        ]

    def selects(self, pod: Pod) -> bool:
        """Return whether any budget selects a pod."""
        return bool(self._of(pod))

    def budget_of(self, pod: Pod) -> PodDisruptionBudget | None:
        """Return the budget that an eviction of a pod counts against; None if there is none, or the pod has not started."""
        budgets = self._of(pod)
        return budgets[0] if budgets and pod.status.phase != "Pending" else None

    def eviction_problem(self, pod: Pod) -> str:
        """Return why the eviction API refuses a pod; "" if it can be evicted."""
        budgets = self._of(pod)
        # Pods that have not started do not count towards any budget.
        if not budgets or pod.status.phase == "Pending":
            return ""
        if len(budgets) > 1:
            names = ", ".join(sorted(item.metadata.name for item in budgets))
            return f"more than one disruption budget selects the pod: {names}"
        budget = budgets[0]
        status = budget.status
        if not is_ready(pod) and pod.status.conditions:
            policy = budget.spec.unhealthy_pod_eviction_policy
            if policy == "AlwaysAllow" or (status.desired_healthy and status.current_healthy >= status.desired_healthy):
                return ""
        if status.disruptions_allowed > 0:
            return ""
        if status == PodDisruptionBudgetStatus():
            return f"disruption budget {budget.metadata.name} has no status yet"
        return f"disruption budget {budget.metadata.name} allows no disruption"


class Disruptions:
    """Counts evictions at one moment, and limits them for each disruption budget to the number that it allows now.

    Args:
        budgets: the budgets of the cluster.
    """

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._used: dict[str, int] = {}

    def try_evict(self, pod: Pod) -> bool:
        """Return whether a pod may be evicted now; if so, count the eviction."""
        if self._budgets.eviction_problem(pod):
            return False
        budget = self._budgets.budget_of(pod)
        if budget is not None:
            used = self._used.get(budget.key, 0)
            # An unready pod may be evicted even if its budget allows no disruption.
            if used and used >= budget.status.disruptions_allowed:
                return False
            self._used[budget.key] = used + 1
        return True


def obstacles(pods: Sequence[Pod], budgets: Budgets, options: DrainOptions) -> list[Obstacle]:
    """Return the obstacles to draining a node with these pods."""
    found = []
    for pod in pods:
        if not is_recreated_elsewhere(pod):
            continue
        if pod.metadata.controller() is None and not options.force:
            found.append(Obstacle(pod.key, "the pod has no controller that would recreate it (--force)", "--force"))
        elif any(volume.empty_dir is not None for volume in pod.spec.volumes) and not options.delete_emptydir_data:
            flag = "--delete-emptydir-data"
            found.append(Obstacle(pod.key, f"the pod has emptyDir data ({flag})", flag))
        elif not options.disable_eviction and (refusal := budgets.eviction_problem(_started(pod))):
            found.append(Obstacle(pod.key, refusal))
    return found


def _started(pod: Pod) -> Pod:
    """Return a pod on a node as running if no kubelet has seen it yet, as in manifests and trials."""
    if pod.status.phase != "Pending" or pod.status.start_time is not None:
        return pod
    return replace(pod, status=PodStatus(phase="Running"))


def drain_notes(pods: Sequence[Pod], budgets: Budgets) -> list[str]:
    """Return sentences about the pods of drained nodes that ``kubectl drain`` would not evict at once without options."""
    node_of = {pod.key: pod.spec.node_name for pod in pods}
    keys_by_reason: dict[tuple[str, str], list[str]] = {}
    for each in obstacles(pods, budgets, DrainOptions()):
        keys_by_reason.setdefault((each.flag, each.reason), []).append(each.pod)
    notes = []
    for (flag, reason), keys in sorted(keys_by_reason.items()):
        if flag:
            nodes = format_first(list(dict.fromkeys(node_of[key] for key in keys)), SHOWN)
            have = f"{'has' if len(keys) == 1 else 'have'} {_LISTED_FOR[flag]}"
            notes.append(f"kubectl drain evicts no pod of {nodes} without {flag}: {format_first(keys, SHOWN)} {have}")
        else:
            notes.append(f"kubectl drain would wait for {format_first(keys, SHOWN)}: {reason}")
    return notes
