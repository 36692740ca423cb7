"""The resources that a score weighs: their columns, and what the pod adds to them. Not a plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bayplan.framework.configuration.plugin_arguments import ResourceSpec
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from bayplan.state.cluster_state import ClusterState

DEFAULT_RESOURCES = (ResourceSpec(CPU, 1), ResourceSpec(MEMORY, 1))
"""What is weighed where the configuration says nothing."""


@dataclass(frozen=True, slots=True)
class ScoredResource:
    """A resource that counts for a score.

    Attributes:
        number: its number in the state.
        weight: how much it counts.
        request: what the pod adds (milli for cpu).
    """

    number: int
    weight: int
    request: int


def scored_resources(
    specs: Iterable[ResourceSpec], requests: Mapping[str, int], cluster: ClusterState
) -> tuple[ScoredResource, ...]:
    """Return the resources that count for a pod, in the order of the configuration.

    CPU, memory and ephemeral storage count always, scalar resources where the pod asks for them, other names never, since no
    node counts them.
    """
    found = []
    for spec in specs:
        request = requests.get(spec.name, 0)
        if spec.name in (CPU, MEMORY, EPHEMERAL_STORAGE) or (request != 0 and is_scalar(spec.name)):
            cluster.admit(request)
            found.append(ScoredResource(cluster.register_resource(spec.name), spec.weight, request))
    return tuple(found)
