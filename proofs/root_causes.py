"""Root causes checked by disabling filters: those that reject every node, and those without which the pod would fit."""

from __future__ import annotations

from itertools import islice

from bayplan.answers.pod_diagnosis import diagnose_pod
from bayplan.engine.records import Outcome, RecordLevel
from bayplan.framework.configuration.loading import default_configuration
from bayplan.library import Cluster
from proofs.proof import Proof
from proofs.waiting_pods import WaitingPod, waiting_pods

FILTERS = tuple(plugin.name for plugin in default_configuration().profiles[0].plugins["filter"])


def prove(cases: int, seed: int) -> Proof:
    """Check `cases` pending pods and return the results."""
    proof = Proof()
    for case in islice(waiting_pods(seed), cases):
        proof.cases += 1
        check(case, proof)
    return proof


def check(case: WaitingPod, proof: Proof) -> None:
    """Compare the root cause of one pending pod with the effects of disabling filters one by one."""
    cluster = Cluster([*case.objects, case.pod], record_level=RecordLevel.OFF)
    diagnosis = diagnose_pod(cluster.trial(), case.pod)
    if (
        diagnosis.decision is None
        or diagnosis.decision.record.outcome is Outcome.ERROR
        or not cluster.state.nodes.row_of
    ):
        proof.counts["an error, or no nodes"] += 1
        return
    proof.counts[diagnosis.cause.plugin or "several filters"] += 1
    everywhere = {plugin for plugin in diagnosis.cause.everywhere if plugin in FILTERS}
    sole = {each.plugin for each in diagnosis.cause.sole if each.plugin in FILTERS}
    # A gate keeps the pod from all filters, so it is removed to run them.
    gates = set(diagnosis.matrix.whole) - set(FILTERS)
    want_everywhere = {plugin for plugin in FILTERS if not _fits(cluster, case, {*FILTERS, *gates} - {plugin})}
    want_sole = {plugin for plugin in FILTERS if _fits(cluster, case, {plugin})}
    if everywhere != want_everywhere:
        proof.failures.append(f"{case.name}: reject every node: {sorted(everywhere)}, want {sorted(want_everywhere)}")
    if sole != want_sole:
        proof.failures.append(f"{case.name}: alone in the way: {sorted(sole)}, want {sorted(want_sole)}")


def _fits(cluster: Cluster, case: WaitingPod, without: set[str]) -> bool:
    """Return whether a node passes all filters in a new fork with some filters disabled.

    Scores may be wrong without these filters.
    """
    decision = cluster.trial().decide(case.pod, without)
    return decision is not None and decision.pre_filter is None and bool(decision.feasible.any())
