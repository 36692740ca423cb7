"""One pod template compiled for one profile: which nodes pass its filters, and the score of each node.

Pods with the same signature share a plan, so a workload of 10,000 pods is compiled once. The cost of updating a plan is
proportional to the changes since its last use: the change logs name the rows, and each rule runs once on each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from bayplan.engine.filtered_rows import FilteredRows
from bayplan.engine.preparation import PreFilters, PreparationOutcome, PreScores
from bayplan.engine.rule_result import FilterResult, R, RuleResults, ScoreResult
from bayplan.engine.select_host import Sample
from bayplan.engine.totals import Totals
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    Plugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
)
from bayplan.framework.profile import Profile
from bayplan.framework.status import Status, error, verdict_code
from bayplan.objects.pod import Pod
from bayplan.objects.requests import repeats_overhead
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import Footprint, PodClass

P = TypeVar("P", bound=Plugin[Any])

NO_SPECS: Mapping[str, Any] = MappingProxyType({})


class Plan:
    """The plugins of a profile, compiled for the pods of one signature.

    Args:
        profile: the profile with the plugins.
        pod: the first pod with this signature.
        state: the cluster.
        shared: the results shared between plans.
        known: specs to reuse, by plugin name; the other plugins compile the pod.

    Attributes:
        footprint, pod_class, owned_counters, priority: the data with which the cluster state counts a pod of this plan
            on a node.
        pre: the outcome of PreFilter in the last cycle.
        reserve, pre_bind: the Reserve and PreBind plugins that must run for such pods.
        filtered, totals: the filters with the rows that pass them, and the scorers with the total scores.
        failure: the Error of a plugin that ended the last scoring, or None.
        signature, signing, signed: the key in the cache of plans, the plugins that may sign such pods, and whether one
            did.
        histories, first_failed, dry_run: data of full records, the cycle and preemption for this plan.
    """

    def __init__(
        self,
        profile: Profile,
        pod: Pod,
        state: ClusterState,
        shared: RuleResults,
        known: Mapping[str, Any] = NO_SPECS,
    ) -> None:
        self.specs: dict[str, Any] = {}
        for plugin in profile.compiling:
            spec = known.get(plugin.name)
            self.specs[plugin.name] = plugin.compile(pod, state) if spec is None else spec
        self.profile = profile
        self.pod = pod
        self.state = state
        self.footprint = self._footprint_of(pod)
        self.pod_class: PodClass = state.pod_class(pod)
        self.owned_counters = state.owned_counters(pod)
        self.priority = pod.spec.priority or 0
        self.pre = PreparationOutcome()
        self.reserve: tuple[ReservePlugin[Any], ...] = profile.reserve
        self.pre_bind: tuple[PreBindPlugin[Any], ...] = profile.pre_bind
        self.pre_filters = PreFilters(profile, self.specs, state)
        self.pre_scores = PreScores(profile, self.specs, state)
        self.filtered = FilteredRows(state, shared)
        self.totals = Totals(state, shared, self.filtered, floor=0 if profile.score else 1)
        self.failure: Status | None = None
        self.signature = b""
        self.signing: tuple[Plugin[object], ...] = ()
        self.signed = False
        self.histories: dict[str, Any] = {}
        self.first_failed: object | None = None
        self.dry_run: object | None = None
        self._shared = shared
        self._pre_seen: PreparationOutcome | None = None
        self._pre_score_seen: PreparationOutcome | None = None
        self._filters_skipped: set[str] | None = None
        self._scores_skipped: set[str] | None = None
        self._has_custom_scores = False

    def adapt(self, pod: Pod, stale: Collection[str], keeps_footprint: bool) -> None:
        """Reuse this plan for another pod: compile the specs of the `stale` plugins again, and keep all other results.

        `keeps_footprint`: whether both pods have the same footprint.
        """
        self.pod = pod
        for plugin in self.profile.compiling:
            if plugin.name in stale:
                self.specs[plugin.name] = plugin.compile(pod, self.state)
        if not keeps_footprint:
            self.footprint = self._footprint_of(pod)
        self.pre_filters.adapt(self.specs)
        self.pre_scores.adapt(self.specs)
        filters, scorers = self.filtered.results, self.totals.results
        self.filtered.rules.choose([self._for_current_spec(it) if it.name in stale else it for it in filters])
        scorers = [self._for_current_spec(it) if it.name in stale else it for it in scorers]
        self.totals.choose(scorers, self.totals.weights)
        # A scorer's error may depend on its spec.
        self._pre_score_seen = None
        self.failure = self.first_failed = self.dry_run = None
        self.histories = {}

    def share_results(self) -> None:
        """Share the results of this plan, which is never adapted again, with other plans."""
        for result in (*self.filtered.results, *self.totals.results):
            self._shared.share(result)

    def _footprint_of(self, pod: Pod) -> Footprint:
        earlier_sums = self.profile.sums_before_binding if repeats_overhead(pod) else 0
        return self.state.footprint(pod, earlier_sums)

    def _for_current_spec(self, result: R) -> R:
        """Return a plugin's result for the plan's current spec.

        This is a shared result if there is one, a new one if other plans may use this one, or else this one, adapted.
        """
        spec = self.specs[result.name]
        if spec.key == result.spec.key:
            return result
        known = self._shared.get(type(result), result.plugin, spec)
        if known is None and result.shared:
            known = type(result)(result.plugin, spec, self.state)
        if known is not None:
            return known
        result.adapt(spec)
        self._shared.adapted += 1
        return result

    # PreFilter and Filter.

    def run_pre_filter_plugins(self, cycle_state: CycleState) -> PreparationOutcome:
        """Run the PreFilter plugins; return the outcome, which is the same object until a plugin's result changes."""
        self.pre = self.pre_filters.refresh(cycle_state)
        cycle_state.unreached_pre_filters = self.pre.unreached
        return self.pre

    def refresh_filters(self) -> None:
        """Update `filtered`; PreFilter must have been run and must not have rejected the pod."""
        self.failure = None
        if self.pre is not self._pre_seen:
            self._choose_filters()
        self.filtered.refresh(self.pre.node_names)

    def _choose_filters(self) -> None:
        """Select the filters that PreFilter did not skip, and their params: None if the profile disables a PreFilter."""
        pre, filtered = self.pre, self.filtered
        self._pre_seen = None
        if pre.skipped != self._filters_skipped:
            chosen = [plugin for plugin in self.profile.filter if plugin.name not in pre.skipped]
            results = [self._shared.result(FilterResult, plugin, self.specs[plugin.name]) for plugin in chosen]
            filtered.rules.choose(results)
            self.reserve = self._binding(self.profile.reserve)
            self.pre_bind = self._binding(self.profile.pre_bind)
            self._filters_skipped = pre.skipped
        filtered.rules.params = [
            pre.params.get(result.name, None if isinstance(result.plugin, PreFilterPlugin) else ())
            for result in filtered.results
        ]
        self._pre_seen = pre

    def _binding(self, plugins: tuple[P, ...]) -> tuple[P, ...]:
        """Return the Reserve or PreBind plugins without those that have nothing to do, because PreFilter skipped them."""
        skipped = self.pre.skipped
        return tuple([plugin for plugin in plugins if plugin.binds_skipped_pods or plugin.name not in skipped])

    def filter_error(self, failure: int) -> Status:
        """Return the Error with which a failure (``number << 16 | verdict``) ends the cycle."""
        status = self.status_of(failure)
        return error(f'running "{status.plugin}" filter plugin: {status.message}').by(status.plugin)

    def status_of(self, failure: int) -> Status:
        """Return the status of a failure (``number << 16 | verdict``)."""
        return self.explain(failure >> 16, failure & 0xFFFF)

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict of the filter with this number."""
        result = self.filtered.results[number]
        return Status(verdict_code(verdict), result.plugin.reasons(result.spec, result.params, verdict), result.name)

    # PreScore and Score.

    def refresh_scores(self, sample: Sample | None = None) -> None:
        """Update `totals`; filters must be up to date, and some node feasible. For `sample` see `Totals.refresh`.

        A sample is scored only if PreScore does not depend on which nodes are feasible.
        """
        outcome = self.pre_scores.refresh(self.filtered.feasible)
        if outcome is not self._pre_score_seen and not self._choose_scores(outcome):
            return
        self.totals.refresh(sample)
        if self._has_custom_scores or not self.state.small:
            totals, count = self.totals, self.state.nodes.count
            scores = [(result.name, totals.normalized(number)[:count]) for number, result in enumerate(totals.results)]
            feasible = self.filtered.feasible[:count]
            if sample is not None:
                feasible = np.zeros(count, dtype=np.bool_)
                feasible[sample.array()] = True
            failure = _invalid_score(self.state, scores, feasible)
            if failure is not None:
                self.failure = failure
                self._pre_score_seen = None

    def _choose_scores(self, outcome: PreparationOutcome) -> bool:
        """Select the scorers that PreScore did not skip, with their params; return False if PreScore or a scorer failed."""
        totals = self.totals
        self._pre_score_seen = None
        self.failure = outcome.status
        if self.failure is not None:
            return False
        if outcome.skipped != self._scores_skipped:
            chosen = [entry for entry in self.profile.score if entry.plugin.name not in outcome.skipped]
            results = [
                self._shared.result(ScoreResult, entry.plugin, self.specs[entry.plugin.name]) for entry in chosen
            ]
            totals.choose(results, [entry.weight for entry in chosen])
            custom = [entry for entry in chosen if not type(entry.plugin).__module__.startswith("bayplan.")]
            self._has_custom_scores = bool(custom)
            self._scores_skipped = outcome.skipped
        totals.rules.params = [
            outcome.params.get(result.name, None if isinstance(result.plugin, PreScorePlugin) else ())
            for result in totals.results
        ]
        for result, params in zip(totals.results, totals.rules.params, strict=True):
            text = result.plugin.score_error(result.spec, params)
            if text:
                text = f'running Score plugins: plugin "{result.name}" failed with: {text}'
                self.failure = error(text).by(result.name)
                return False
        self._pre_score_seen = outcome
        return True


def score_over(plan: Plan, feasible: Bools, *, bare: bool = False) -> Plan:
    """Return a new plan of the same pod and specs that has scored these rows (bool[rows], at least one true).

    It shares no results with `plan`. With `bare`, Score plugins see nodes without pods and images (see
    `ClusterState.without_pods_and_images`); PreScore plugins still see all, because upstream's read the snapshot.
    """
    state = plan.state.without_pods_and_images() if bare else plan.state
    scoring = Plan(plan.profile, plan.pod, state, RuleResults(state), plan.specs)
    if bare:
        scoring.pre_scores = PreScores(plan.profile, plan.specs, plan.state)
    chosen = np.zeros(state.nodes.capacity, dtype=np.bool_)
    chosen[: len(feasible)] = feasible
    scoring.filtered.feasible, scoring.filtered.flags = chosen, chosen.view(np.uint8)
    scoring.refresh_scores()
    return scoring


def _invalid_score(state: ClusterState, scores: Iterable[tuple[str, Ints]], feasible: Bools) -> Status | None:
    """Return the Error for the first feasible node, by name, with an invalid score; None if all are valid.

    `scores` has int64[rows in use] per plugin, in order; `feasible` is bool[rows in use].
    """
    worst: tuple[str, str, int] | None = None
    names = state.nodes.names
    for plugin, normalized in scores:
        bad = np.flatnonzero(feasible & ((normalized > MAX_NODE_SCORE) | (normalized < MIN_NODE_SCORE)))
        for row in bad.tolist():
            name = names[row] or ""
            if worst is None or name < worst[0]:
                worst = (name, plugin, int(normalized[row]))
    if worst is None:
        return None
    return error(
        f'applying score defaultWeights on Score plugins: plugin "{worst[1]}" returns an invalid score {worst[2]}, '
        f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    ).by(worst[1])
