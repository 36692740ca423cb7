"""Steps that change which domains a topology spread constraint counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from bayplan.answers.steps import Step, StepKind
from bayplan.objects.affinity import TopologySpreadConstraint
from bayplan.objects.pod import Pod
from bayplan.plugins.spread_constraints import HONOR


def counted_domains(place: int, constraint: TopologySpreadConstraint) -> Iterator[Step]:
    """Yield a step for each inclusion policy that is not Honor: with Honor, only domains that the pod can use are counted."""
    for name, policy, is_set in (
        ("node_affinity_policy", "nodeAffinityPolicy", constraint.node_affinity_policy in (None, HONOR)),
        ("node_taints_policy", "nodeTaintsPolicy", constraint.node_taints_policy == HONOR),
    ):
        if not is_set:
            yield Step(
                StepKind.COUNT_DOMAINS,
                f"set {policy}: Honor for the spread over {constraint.topology_key}",
                "PodTopologySpread",
                edit_pod=partial(_with_policy, place, name),
            )


def _with_policy(place: int, name: str, pod: Pod) -> Pod:
    constraints = [*pod.spec.topology_spread_constraints]
    constraints[place] = replace(constraints[place], **{name: HONOR})
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=tuple(constraints)))
