"""The surroundings of a scheduler's next decision, read from its current state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace as replace_field
from typing import TypeVar

from msgspec.structs import replace

from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.profile import Profile
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts, accounted_requests
from bayplan.objects.resource import ResourceClaim, ResourceClaimStatus
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT
from bayplan.state.resource_table import PODS
from bayplan.state.views import Rows

T = TypeVar("T", bound=KubernetesObject)


def added_affinity(profile: Profile) -> NodeSelector | None:
    """Return the required node affinity that a profile adds to all pods, or None."""
    return next((plugin.added_required for plugin in profile.filter if isinstance(plugin, NodeAffinity)), None)


def nominated_amounts(scheduler: Scheduler, pod: Pod, node: str) -> Amounts:
    """Return the amounts on a node that filters leave to other nominated pods: those of at least the priority of `pod`."""
    found: Amounts = {}
    for key in scheduler.queue.nominator.on_node(node).values():
        other = scheduler.pods.get(key)
        if other is None or key == pod.key or (other.spec.priority or 0) < (pod.spec.priority or 0):
            continue
        requests = accounted_requests(other, scheduler.state.request_gates).requests
        for resource, amount in {**requests, PODS: 1}.items():
            found[resource] = found.get(resource, 0) + amount
    return found


class SchedulerSurroundings:
    """The current cluster of a scheduler, as `bayplan.analysis.surroundings.Surroundings`.

    Args:
        scheduler: the scheduler.
        pod: the pod to schedule; selects the profile.
        unread: the kinds whose objects are unknown.
    """

    def __init__(self, scheduler: Scheduler, pod: Pod, unread: Collection[str] = ()) -> None:
        self._scheduler, self._pod = scheduler, pod
        self._state = scheduler.state
        self._profile = scheduler.profiles.get(pod.spec.scheduler_name)
        self.unread = unread

    @property
    def added_affinity(self) -> NodeSelector | None:
        """Return the required node affinity that the pod's profile adds to all pods, or None."""
        return None if self._profile is None else added_affinity(self._profile)

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object of the catalog, or None."""
        return self._state.catalog.get(kind, key)

    def keys(self, kind: type[KubernetesObject]) -> Collection[str]:
        """Return the keys of all objects of a kind in the catalog."""
        return self._state.catalog.keys(kind)

    def placed(self) -> Iterator[tuple[Pod, str]]:
        """Yield the pods on nodes, each with the name of its node."""
        names = self._state.nodes.names
        for info in self._state.pods.values():
            yield info.pod, names[info.row] or ""

    def free(self, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Return the free amounts of nodes that are not left to nominated pods, by node and resource."""
        state, found = self._state, dict[str, Amounts]()
        table, usage = state.nodes, state.usage
        for name in nodes:
            row = table.row_of.get(name)
            if row is None:
                continue
            amounts = {
                resource: table.allocatable.item(place, row) - usage.item(FIRST_RESOURCE + place, row)
                for place, resource in enumerate(table.resources)
            }
            amounts[PODS] = table.allowed_pods.item(row) - usage.item(POD_COUNT, row)
            for resource, amount in nominated_amounts(self._scheduler, self._pod, name).items():
                amounts[resource] = amounts.get(resource, 0) - amount
            found[name] = amounts
        return found

    def nodes_with_devices(self) -> list[str] | None:
        """Return the nodes whose devices, free or taken, match all resource claims of the pod; None without the plugin."""
        filters = () if self._profile is None else self._profile.filter
        plugin = next((each for each in filters if isinstance(each, DynamicResources)), None)
        if plugin is None:
            return None
        # Devices depend on nodes and objects alone: a fork would account for each pod again.
        state = self._state.without_pods_and_images()
        state.catalog = self._state.catalog.copy()
        empty = ResourceClaimStatus()
        for claim in [each for each in state.catalog.all(ResourceClaim) if each.status != empty]:
            state.catalog.put(claim.key, replace(claim, status=empty))
        trial = DynamicResources(plugin.arguments, replace_field(plugin.handle, cluster=state))
        spec = trial.compile(self._pod, state)
        answer = trial.pre_filter(spec, state, CycleState())
        if not isinstance(answer, PreFilterResult):
            return None
        verdicts = trial.filter(spec, answer.params, Rows(state))
        return [
            name for name, verdict in zip(state.nodes.names, verdicts.tolist(), strict=False) if name and not verdict
        ]
