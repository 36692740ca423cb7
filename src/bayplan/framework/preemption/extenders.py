"""Preemption and extenders: let them remove candidates, and change their victims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayplan.framework.extender import Extender, ExtenderFailure, Victims
from bayplan.framework.preemption.shortlist import Shortlist, shortlist_of
from bayplan.framework.status import Status, error
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo


def call_extenders(
    extenders: Sequence[Extender], pod: Pod, shortlist: Shortlist, cluster: ClusterState
) -> Shortlist | Status:
    """Call the extenders with a preempt verb in order; return the remaining candidates, or the Error of one that fails.

    Args:
        extenders: the extenders in calling order.
        pod: the preemptor.
        shortlist: the candidates found by dry runs; never empty.
        cluster: the state.
    """
    names = cluster.nodes.names
    victims: Mapping[str, Victims] = {
        names[row] or "": Victims(
            tuple(info.pod for info in shortlist.victims_at(number)), shortlist.violations_at(number)
        )
        for number, row in enumerate(shortlist.rows.tolist())
    }
    interested = [extender for extender in extenders if extender.is_interested(pod)]
    if not interested:
        return shortlist

    for extender in interested:
        found = extender.process_preemption(pod, victims, lambda name: pods_on(name, cluster))
        if isinstance(found, ExtenderFailure):
            if extender.ignorable:
                continue
            return error(found.message)
        empty = [name for name, left in found.items() if not left.pods]
        if empty and not extender.ignorable:
            return error(f'expected at least one victim pod on node "{empty[0]}"')
        victims = {name: left for name, left in found.items() if left.pods}
        if not victims:
            break
    return shortlist_of([_entry(cluster, name, left) for name, left in victims.items()])


def pods_on(name: str, cluster: ClusterState) -> Sequence[Pod] | None:
    """Return the pods on the node with this name, or None if there is no such node."""
    row = cluster.nodes.row_of.get(name)
    return None if row is None else [info.pod for info in cluster.pods_on[row].values()]


def _entry(cluster: ClusterState, name: str, victims: Victims) -> tuple[int, list[PodInfo], int]:
    row = cluster.nodes.row_of[name]
    infos = [cluster.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] for pod in victims.pods]
    return row, infos, victims.num_pdb_violations
