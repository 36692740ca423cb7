"""The compiled form of one pod template: its specs, the parts they need, and what is fused over them.

Pods with the same signature share a plan, so a workload of 10,000 pods compiles once. A plan answers three questions about the
cluster as it is now: which nodes are feasible (`feasible`), what each is worth (`total`), and what every plugin said
(the parts). `refresh` brings all three up to date, touching only rows that changed since this plan was last asked.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.engine.convoy import Convoy
from bayplan.engine.part import FEW_ROWS, Part
from bayplan.engine.part_store import PartStore
from bayplan.engine.plan_filters import PlanFilters
from bayplan.engine.plan_progress import united
from bayplan.engine.pre_filters import PreFilterOutcome, PreFilters, PreFilterSaid
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreFilterPlugin, PreScorePlugin, ScorePlugin
from bayplan.framework.profile import Profile
from bayplan.objects.pod import Pod
from bayplan.objects.requests import repeats_overhead
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import Footprint, PodClass
from bayplan.state.views import GatheredRows


class Plan(PlanFilters):
    """One pod template compiled for one profile.

    Attributes:
        pod: the first pod that was seen with this signature.
        history: free for the records: what they remember of this plan between its cycles.
    """

    def __init__(self, profile: Profile, pod: Pod, state: ClusterState, parts: PartStore) -> None:
        super().__init__(profile, pod, state, parts)
        self.pod = pod
        earlier_sums = profile.sums_before_binding if repeats_overhead(pod) else 0
        self.footprint: Footprint = state.footprint(pod, earlier_sums=earlier_sums)
        self.pod_class: PodClass = state.pod_class(pod)
        self.owned_counters = state.owned_counters(pod)
        self.priority = pod.spec.priority or 0
        self._pre_filters = PreFilters(profile, self.specs, state)
        self.history: object | None = None

    def with_other_requests(self, pod: Pod) -> Plan | None:
        """Return the plan of a pod that differs from this plan's in what containers request, and in nothing else.

        It shares with this plan whatever does not depend on requests, as it is now. None where this plan has not come so far as to
        score, or where a plugin that looks at requests would answer otherwise before it comes to filter or score.
        """
        if (
            self._pre_score_seen is None
            or self.pre is not self._pre_seen
            or self.failure is not None
            or self._has_errors
        ):
            return None
        state, changed = self.state, dict[str, Any]()
        feasible = self.feasible[: state.nodes.count]
        for plugin in self.profile.compiling_requests:
            spec: Any = plugin.compile(pod, state)
            if spec.key == self.specs[plugin.name].key:
                continue
            if isinstance(plugin, PreFilterPlugin) and not self._pre_filters.answers_alike(plugin, spec):
                return None
            if isinstance(plugin, PreScorePlugin) and not self._pre_scores.answers_alike(plugin, spec, feasible):
                return None
            if isinstance(plugin, ScorePlugin) and plugin.score_error(spec, ()):
                return None
            changed[plugin.name] = spec
        other = Plan.__new__(Plan)
        other.__dict__.update(self.__dict__)
        other.pod = pod
        other.footprint = state.footprint(pod)
        other.history = None
        other._ports_position = -1
        other._begin_with(changed)
        filters, other._filter_epochs = self._filter_parts.copy(), self._filter_epochs.copy()
        for number, part in enumerate(filters):
            if part.name in changed:
                filters[number], other._filter_epochs[number] = part.with_spec(changed[part.name]), -1
        other._filter_parts = filters
        other.dynamic_filters = [(number, part) for number, part in enumerate(filters) if not part.static]
        other._row_filters = other.dynamic_filters
        return other

    def take_changes(self) -> list[int] | None:
        """Return the rows whose verdicts or scores may have changed since the last call, or None for all; for records."""
        rows, self._recorded_rows = self._recorded_rows, []
        return rows

    def keep_changes(self, rows: list[int]) -> None:
        """Give rows back that `take_changes` returned, to be returned again."""
        if self._recorded_rows is not None:
            self._recorded_rows = united(self._recorded_rows, rows)

    def values_at(self, rows: list[int], numbers: Sequence[int]) -> array[int]:
        """Return what parts say of rows, row by row, as numbers of 64 bits; parts by number, filters first, then scorers."""
        state = self.state
        # Scores that are kept class by class are not kept row by row, unless somebody reads them.
        parts: list[Part] = [
            *self._filter_parts,
            *(self.score_parts if self.board is not None else self._score_parts),
        ]
        chosen = [parts[number] for number in numbers]
        if len(rows) > FEW_ROWS or not state.small:
            convoy = self.convoy
            # What it found before this plan joined is not there; nothing of that is left to record one cycle later.
            if convoy is not None and convoy.results and state.small and self._joined_at != state.usage_log.end:
                return self._values_in_convoy(convoy, rows, chosen)
            view = GatheredRows(state, np.array(rows, dtype=np.intp))
            values = np.empty((len(rows), len(chosen)), dtype=np.int64)
            for place, part in enumerate(chosen):
                kept = not part.loose or part.is_up_to_date()
                values[:, place] = part.values.take(view.row_numbers()) if kept else part.evaluate(view)
            return array("q", values.tobytes())
        found, row_view = array("q"), self._row_view
        fresh = [(part, part.loose and not part.is_up_to_date()) for part in chosen]
        for row in rows:
            row_view.number = row
            found.extend([part.evaluate(row_view) if again else part.values.item(row) for part, again in fresh])
        return found

    def _values_in_convoy(self, convoy: Convoy, rows: list[int], chosen: Sequence[Part]) -> array[int]:
        """Return the same, as far as it was found for all plans together; rows that changed since then are asked about again."""
        index = np.array(rows, dtype=np.intp)
        ruled = [part for _, part in (*self.dynamic_filters, *self.dynamic_scores)]
        values = np.empty((len(rows), len(chosen)), dtype=np.int64)
        for place, part in enumerate(chosen):
            column = convoy.results[ruled.index(part)][self.place] if part in ruled else part.values
            values[:, place] = column.take(index)
        recent = self.state.usage_log.since(convoy.position)
        places = {row: place for place, row in enumerate(rows)}
        for row in dict.fromkeys(recent if recent is not None else rows):
            self._row_view.number = row
            if row in places:
                values[places[row]] = [
                    part.evaluate(self._row_view) if part in ruled else part.values.item(row) for part in chosen
                ]
        return array("q", values.tobytes())

    # PreFilter.

    def pre_filters_said(self) -> tuple[PreFilterSaid, ...]:
        """Return what each PreFilter plugin said that was asked in the last cycle; for records."""
        return self._pre_filters.said()

    def run_pre_filter_plugins(self, cycle_state: CycleState) -> PreFilterOutcome:
        """Ask the PreFilter plugins; the outcome is the same object as long as no plugin answers otherwise."""
        self.pre = self._pre_filters.run(cycle_state)
        return self.pre
