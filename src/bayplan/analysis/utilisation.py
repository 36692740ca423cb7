"""Utilisation of the cluster: requested divided by allocatable, at the end, at the peak and as the mean over time."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.sim.result import ResourceUsage


class UtilisationFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One resource, in the whole cluster or in one zone. Amounts are in units of the state: milli-CPU, bytes, counts.

    Attributes:
        resource: the resource's name; ``pods`` is the number of pods that nodes may run.
        zone: the zone, "" for nodes without a zone, None for the whole cluster.
        nodes, allocatable, requested: at the end of the run.
        share, mean_share, peak_share: requested divided by allocatable at the end, as the mean over time, and at the peak.
        peak_requested, peak_ns: the highest requested amount, and when it was first reached.
    """

    resource: str
    zone: str | None
    nodes: int
    allocatable: int
    requested: int
    share: float
    mean_share: float
    peak_share: float
    peak_requested: int
    peak_ns: int


def utilisation(usages: Iterable[ResourceUsage]) -> list[UtilisationFacts]:
    """Return the utilisation of every resource, in the order of the usages: the cluster, then zones by name."""
    return [
        UtilisationFacts(
            resource=usage.resource,
            zone=usage.zone,
            nodes=usage.nodes,
            allocatable=usage.allocatable,
            requested=usage.requested,
            share=stable(usage.share),
            mean_share=stable(usage.mean_share),
            peak_share=stable(usage.peak_share),
            peak_requested=usage.peak_requested,
            peak_ns=usage.peak_ns,
        )
        for usage in usages
    ]


def stable(share: float) -> float:
    """Round a share to six decimals, so that machines that add numbers in different orders agree."""
    return round(share, 6)
