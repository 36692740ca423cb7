"""The surroundings of decisions that a trial makes: its objects, pods and free amounts, and what its source could not read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from bayplan.answers.trial import Trial
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT
from bayplan.state.resource_table import PODS

T = TypeVar("T", bound=KubernetesObject)


class TrialSurroundings:
    """The cluster of a trial as it is now; see `bayplan.analysis.surroundings.Surroundings`.

    Args:
        trial: the cluster.
        pod: the pod whose profile decides.
    """

    def __init__(self, trial: Trial, pod: Pod) -> None:
        self._trial = trial
        self._pod = pod

    @property
    def added_affinity(self) -> NodeSelector | None:
        """See `Surroundings`."""
        profile = self._trial.scheduler.profiles.get(self._pod.spec.scheduler_name)
        filters = profile.filter if profile is not None else ()
        return next((plugin.added_required for plugin in filters if isinstance(plugin, NodeAffinity)), None)

    @property
    def unread(self) -> Collection[str]:
        """See `Surroundings`."""
        return self._trial.unread

    def get(self, kind: type[T], key: str) -> T | None:
        """See `Surroundings`."""
        return self._trial.catalog.get(kind, key)

    def placed(self) -> Iterator[tuple[Pod, str]]:
        """See `Surroundings`."""
        names = self._trial.state.nodes.names
        for info in self._trial.state.pods.values():
            yield info.pod, names[info.row] or ""

    def free(self, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """See `Surroundings`."""
        state, found = self._trial.state, dict[str, Amounts]()
        table, usage = state.nodes, state.usage
        for name in nodes:
            row = table.row_of.get(name)
            if row is None:
                continue
            amounts = {
                resource: table.allocatable.item(place, row) - usage.item(FIRST_RESOURCE + place, row)
                for place, resource in enumerate(table.resources.names)
            }
            amounts[PODS] = table.allowed_pods.item(row) - usage.item(POD_COUNT, row)
            found[name] = amounts
        return found
