"""The compiled form of one pod template: its specs, the parts they need, and what is fused over them.

Pods with the same signature share a plan, so a workload of 10,000 pods compiles once. A plan answers three questions about the
cluster as it is now: which nodes are feasible (`feasible`), what each is worth (`total`), and what every plugin said
(the parts). `refresh` brings all three up to date, touching only rows that changed since this plan was last asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.engine.part import FEW_ROWS, FULL_SHARE, Changes, FilterPart, ScorePart
from bayplan.engine.part_store import PartStore
from bayplan.engine.pre_filters import PreFilterOutcome, PreFilters
from bayplan.engine.pre_scores import PreScoreOutcome, PreScores
from bayplan.engine.tie_set import BestRows, TieSet
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NormalizePlugin,
    Params,
    PreFilterPlugin,
    PreScorePlugin,
)
from bayplan.framework.profile import Profile
from bayplan.framework.status import ERROR_BIT, Status, error, verdict_code
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import Footprint, PodClass
from bayplan.state.views import Row, Rows


class Plan:
    """One pod template compiled for one profile.

    Attributes:
        pod: the first pod that was seen with this signature.
        pre: the outcome of PreFilter in the last cycle.
        filter_parts: the filters that take part, in order. score_parts: likewise, with their weights in `weights`.
        feasible: bool[capacity]; feasible_count: how many are.
        total: int64[capacity], the weighted sum of normalised scores; -1 where not feasible.
        history: free for the records: what they remember of this plan between its cycles.
        failure: the status that ended the last refresh early (an Error of a plugin), or None.
    """

    def __init__(self, profile: Profile, pod: Pod, state: ClusterState, parts: PartStore) -> None:
        self.profile = profile
        self.pod = pod
        self.state = state
        self.footprint: Footprint = state.footprint(pod)
        self.pod_class: PodClass = state.pod_class(pod)
        self.owned_counters = state.owned_counters(pod)
        self.priority = pod.spec.priority or 0
        self.specs: dict[str, Any] = {}
        for plugin in profile.compiling:
            self.specs[plugin.name] = plugin.compile(pod, state)
        self._parts = parts
        self._row_view = Row(state)
        self._pre_filters = PreFilters(profile, self.specs, state)
        self.pre = PreFilterOutcome()
        self._pre_seen: PreFilterOutcome | None = None
        self._pre_scores = PreScores(profile, self.specs, state)
        self._pre_score_seen: PreScoreOutcome | None = None
        self._filters_skipped: set[str] | None = None
        self._scores_skipped: set[str] | None = None
        self._narrowed_to: frozenset[str] | None = None
        self.filter_parts: list[FilterPart] = []
        self.score_parts: list[ScorePart] = []
        self.weights: list[int] = []
        self.scales: list[Params | None] = []
        self.failure: Status | None = None
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.feasible_count = 0
        self.total: Ints = np.zeros(0, dtype=np.int64)
        self._static_feasible: Bools = self.feasible
        # Per score part its weighted scores, and their sum; meaningful in feasible rows.
        self._weighted: list[Ints] = []
        self._sum: Ints = self.total
        self._uniform: dict[ScorePart, tuple[tuple[int, int], bool]] = {}
        self._ties = TieSet()
        self._stale_rows: dict[int, None] | None = None
        self._changes: Changes | None = None
        self.history: object | None = None
        self._recorded_rows: dict[int, None] | None = None
        self._has_errors = False
        self._has_custom_scores = False
        self._node_position = -1
        self._usage_position = -1
        self._ports_position = -1
        # The parts that placements can change, with their places among all.
        self._dynamic_filters: list[tuple[int, FilterPart]] = []
        self._dynamic_scores: list[tuple[int, ScorePart]] = []
        self._dynamic_scales: list[int] = []
        self._filter_epochs: list[int] = []
        self._score_epochs: list[int] = []

    def take_changes(self) -> dict[int, None] | None:
        """Return the rows whose verdicts or scores may have changed since the last call, or None for all; for records."""
        rows, self._recorded_rows = self._recorded_rows, {}
        return rows

    def keep_changes(self, rows: dict[int, None]) -> None:
        """Give rows back that `take_changes` returned, to be returned again."""
        if self._recorded_rows is not None:
            self._recorded_rows.update(rows)

    # PreFilter.

    def run_pre_filter_plugins(self, cycle_state: CycleState) -> PreFilterOutcome:
        """Ask the PreFilter plugins; the outcome is the same object as long as no plugin answers otherwise."""
        self.pre = self._pre_filters.run(cycle_state)
        return self.pre

    # Filter.

    def refresh_filters(self) -> None:
        """Bring `feasible` up to date with the cluster; PreFilter must have been run and must not have rejected."""
        state = self.state
        self.failure = None
        rows = self._changed_rows()
        self._changes = None if rows is None else Changes(state, rows, self._usage_position, self._ports_position)
        if self.pre.node_names != self._narrowed_to:
            self._narrowed_to = self.pre.node_names
            rows = None
        if self._refresh_filter_parts(rows) or rows is None:
            self._fuse_filters()
            self._stale_rows = None
            self._recorded_rows = None
        elif rows:
            if self._recorded_rows is not None:
                self._recorded_rows.update(dict.fromkeys(rows))
            flipped = self._fuse_filter_rows(rows)
            if flipped and not self._scales_hold():
                self._stale_rows = None
            elif self._stale_rows is not None:
                self._stale_rows.update(dict.fromkeys(rows))
        self._usage_position = state.usage_log.end
        self._node_position = state.node_log.end
        self._ports_position = state.ports_log.end
        if self._has_errors:
            self._find_filter_error()

    def _changed_rows(self) -> list[int] | None:
        """Return the rows that changed since the last refresh, or None for all."""
        state = self.state
        if self._node_position != state.node_log.end:
            return None
        usage = state.usage_log
        if self._ports_position == state.ports_log.end and self._usage_position >= usage.start:
            missed = usage.end - self._usage_position
            if missed <= 1:
                return usage.rows[-1:] if missed else []
        changed: dict[int, None] = {}
        for log, position in ((state.usage_log, self._usage_position), (state.ports_log, self._ports_position)):
            if position != log.end:
                rows = log.since(position)
                if rows is None:
                    return None
                changed.update(dict.fromkeys(rows))
        if len(changed) * FULL_SHARE > state.nodes.count + 64:
            return None
        return list(changed)

    def _refresh_filter_parts(self, rows: list[int] | None) -> bool:
        """Bring the filter parts up to date; return whether they must be fused anew as a whole."""
        state, pre = self.state, self.pre
        whole = rows is None
        skipped = pre.skipped
        if skipped != self._filters_skipped:
            self._filters_skipped = skipped
            wanted = (plugin for plugin in self.profile.filter if plugin.name not in skipped)
            self.filter_parts = [self._parts.filter_part(plugin, self.specs[plugin.name]) for plugin in wanted]
            self._dynamic_filters = [entry for entry in enumerate(self.filter_parts) if not entry[1].static]
            self._filter_epochs = [-1] * len(self.filter_parts)
            whole = True
        # Where no PreFilter answered otherwise and no node changed, only usage and ports can have changed verdicts.
        only_dynamic = pre is self._pre_seen and not whole
        self._pre_seen = pre
        few = self._changes if only_dynamic else None
        for number, part in self._dynamic_filters if only_dynamic else enumerate(self.filter_parts):
            if few is not None and part.follow(few, self._filter_epochs[number], self._row_view):
                continue
            part.bring_up_to_date(state, self.filter_params(part), self._row_view, self._changes)
            if part.epoch != self._filter_epochs[number]:
                self._filter_epochs[number] = part.epoch
                whole = True
        return whole

    def filter_params(self, part: FilterPart) -> Params | None:
        """Return what a filter gets as params now: None where the profile leaves out its PreFilter."""
        if part.name in self.profile.pre_filter_names:
            return self.pre.params.get(part.name, ())
        return None if isinstance(part.plugin, PreFilterPlugin) else part.plugin.observe(part.spec, self.state)

    def _fuse_filters(self) -> None:
        static = self.examined().copy()
        for part in self.filter_parts:
            if part.static:
                static &= part.values == 0
        feasible = static.copy()
        for part in self.filter_parts:
            if not part.static:
                feasible &= part.values == 0
        self._static_feasible = static
        self.feasible = feasible
        self.feasible_count = int(np.count_nonzero(feasible))
        self._has_errors = any(bool((part.values >= ERROR_BIT).any()) for part in self.filter_parts)

    def _fuse_filter_rows(self, rows: list[int]) -> bool:
        """Fuse just these rows; return whether any became or stopped being feasible."""
        feasible, static = self.feasible, self._static_feasible
        dynamic = [part.values for _, part in self._dynamic_filters]
        if len(rows) > FEW_ROWS and self._changes is not None:
            index = self._changes.view(self.state).row_numbers()
            fits = static.take(index)
            for values in dynamic:
                verdicts = values.take(index)
                if verdicts.any():
                    self._has_errors |= bool((verdicts >= ERROR_BIT).any())
                    fits &= verdicts == 0
            before = feasible.take(index)
            if (fits == before).all():
                return False
            self.feasible_count += int(np.count_nonzero(fits)) - int(np.count_nonzero(before))
            feasible[index] = fits
            return True
        flipped = False
        for row in rows:
            now = static.item(row)
            if now:
                for values in dynamic:
                    verdict = values.item(row)
                    if verdict:
                        now = False
                        self._has_errors |= verdict >= ERROR_BIT
                        break
            if now != feasible.item(row):
                feasible[row] = now
                self.feasible_count += 1 if now else -1
                flipped = True
        return flipped

    def _find_filter_error(self) -> None:
        """Set `failure` where a filter that was reached says Error; upstream ends the cycle with the first it meets."""
        state = self.state
        first, verdicts = self.first_failures()
        rows = np.flatnonzero((verdicts >= ERROR_BIT) & self.examined())
        if len(rows):
            row = min(rows.tolist(), key=lambda number: state.nodes.names[number] or "")
            self.failure = self.filter_error(int(first[row]), int(verdicts[row]))

    def filter_error(self, number: int, verdict: int) -> Status:
        """Return the Error with which a filter's verdict ends the cycle."""
        status = self.explain(number, verdict)
        return error(f'running "{status.plugin}" filter plugin: {status.message}').by(status.plugin)

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict of the filter part with this number."""
        part = self.filter_parts[number]
        return Status(verdict_code(verdict), part.plugin.reasons(part.spec, part.params, verdict), part.name)

    def examined(self) -> Bools:
        """Return bool[capacity]: the nodes that PreFilter left for the filters to look at."""
        if self.pre.node_names is None:
            return self.state.nodes.alive
        named = np.zeros_like(self.state.nodes.alive)
        row_of = self.state.nodes.row_of
        named[[row_of[name] for name in self.pre.node_names if name in row_of]] = True
        return named

    def all_pass_static(self, index: Index) -> bool:
        """Return whether rows (intp) were examined and pass every filter that placements leave alone."""
        return bool(self._static_feasible[index].all())

    def first_failures(self) -> tuple[Any, Any]:
        """Return per row the number of the first filter part that failed (intp, -1: none) and its verdict (uint16)."""
        capacity = self.state.nodes.capacity
        first = np.full(capacity, -1, dtype=np.intp)
        verdicts = np.zeros(capacity, dtype=np.uint16)
        for number, part in enumerate(self.filter_parts):
            rows = part.values.nonzero()[0]
            if len(rows):
                rows = rows[first[rows] < 0]
                first[rows] = number
                verdicts[rows] = part.values[rows]
        return first, verdicts

    def first_failures_of(self, index: Index) -> tuple[Index, Codes]:
        """Return the same for some rows (intp)."""
        first = np.full(len(index), -1, dtype=np.intp)
        verdicts = np.zeros(len(index), dtype=np.uint16)
        for number, part in enumerate(self.filter_parts):
            codes = part.values[index]
            fresh = (codes != 0) & (first < 0)
            first[fresh] = number
            verdicts[fresh] = codes[fresh]
        return first, verdicts

    # Score.

    def refresh_scores(self) -> None:
        """Bring `total` up to date; filters must be, and some node must be feasible."""
        state = self.state
        rows, self._stale_rows = self._stale_rows, {}
        if len(self.total) != state.nodes.capacity:
            rows = None
        outcome = self._pre_scores.run(self.feasible[: state.nodes.count])
        self.failure = outcome.failure
        if self.failure is None:
            self._choose_scores(outcome)
        if self.failure is not None:
            self._stale_rows = None
            return
        if outcome.skipped != self._scores_skipped:
            self._scores_skipped = outcome.skipped
            rows = None
        only_dynamic = outcome is self._pre_score_seen and rows is not None
        self._pre_score_seen = outcome
        renewed: list[int] = []
        few = self._changes if only_dynamic else None
        for number, part in self._dynamic_scores if only_dynamic else enumerate(self.score_parts):
            if few is not None and part.follow(few, self._score_epochs[number], self._row_view):
                continue
            part.bring_up_to_date(state, self._score_params(part), self._row_view, self._changes)
            if part.epoch != self._score_epochs[number]:
                self._score_epochs[number] = part.epoch
                renewed.append(number)
        if rows is None:
            self._fuse_scores()
        else:
            if rows:
                self._fuse_score_rows(rows)
            if self._dynamic_scales:
                renewed += [item for item in self._dynamic_scales if item not in renewed and self._scale_moved(item)]
            if renewed:
                self._fuse_renewed_scores(renewed)
        if renewed:
            self._recorded_rows = None
        if self._has_custom_scores or not state.small:
            self._check_scores()

    def _score_params(self, part: ScorePart) -> Params | None:
        outcome = self._pre_score_seen
        if outcome is not None and part.name in self.profile.pre_score_names:
            return outcome.params.get(part.name, ())
        return None if isinstance(part.plugin, PreScorePlugin) else part.plugin.observe(part.spec, self.state)

    def _choose_scores(self, outcome: PreScoreOutcome) -> None:
        """Take the parts of the plugins that PreScore left in; set `failure` where one of them can't score."""
        if outcome is self._pre_score_seen:
            return
        if outcome.skipped != self._scores_skipped:
            chosen = [entry for entry in self.profile.score if entry.plugin.name not in outcome.skipped]
            self.score_parts = [self._parts.score_part(entry.plugin, self.specs[entry.plugin.name]) for entry in chosen]
            self.weights = [entry.weight for entry in chosen]
            self._dynamic_scores = [entry for entry in enumerate(self.score_parts) if not entry[1].static]
            self._dynamic_scales = [
                number for number, part in self._dynamic_scores if isinstance(part.plugin, NormalizePlugin)
            ]
            self._score_epochs = [-1] * len(chosen)
            self.scales = [None] * len(chosen)
            self._has_custom_scores = any(not type(entry.plugin).__module__.startswith("bayplan.") for entry in chosen)
        before, self._pre_score_seen = self._pre_score_seen, outcome
        for part in self.score_parts:
            text = part.plugin.score_error(part.spec, self._score_params(part))
            if text:
                self.failure = error(f'running Score plugins: plugin "{part.name}" failed with: {text}').by(part.name)
                break
        self._pre_score_seen = before

    def scale_of(self, number: int, feasible: Bools) -> Params | None:
        """Return what a score part's normalising needs, over the given feasible rows; None where it has no NormalizeScore."""
        part = self.score_parts[number]
        if not isinstance(part.plugin, NormalizePlugin):
            return None
        count = self.state.nodes.count
        rows = Rows(self.state)
        return part.plugin.scale_over(part.spec, part.params, part.values[:count], feasible[:count], rows)

    def normalized(self, number: int, scale: Params | None) -> Ints:
        """Return the normalised scores of one part over all rows."""
        raw = self.score_parts[number].values[: self.state.nodes.count]
        return raw if scale is None else self.normalize_values(number, scale, raw)

    def normalize_values(self, number: int, scale: Params, raw: Ints) -> Ints:
        """Return raw scores of one part, normalised by a scale."""
        part = self.score_parts[number]
        assert isinstance(part.plugin, NormalizePlugin)
        return part.plugin.normalize(part.spec, scale, raw, Rows(self.state))

    def _scales_hold(self) -> bool:
        """Return whether normalising over the nodes that are feasible now gives what it gave when scores were last fused."""
        if not self._pre_scores.static or self.feasible_count == 0:
            return False
        return not any(self._scale_moved(number) for number in range(len(self.scales)) if not self._is_uniform(number))

    def _scale_moved(self, number: int) -> bool:
        scale = self.scales[number]
        return scale is not None and scale != self.scale_of(number, self.feasible)

    def totals_hold_for(self, sample: Bools) -> bool:
        """Return whether totals of some feasible nodes (bool[capacity]) would be the same if only these were feasible."""
        if not self._pre_scores.would_answer_alike(sample[: self.state.nodes.count]):
            return False
        for number, scale in enumerate(self.scales):
            if scale is not None and not self._is_uniform(number) and scale != self.scale_of(number, sample):
                return False
        return True

    def _is_uniform(self, number: int) -> bool:
        """Return whether a score part that placements leave alone is equal for all nodes: then any of them scale alike."""
        part = self.score_parts[number]
        if not part.static:
            return False
        stamp = (self.state.node_log.end, part.epoch)
        known = self._uniform.get(part)
        if known is None or known[0] != stamp:
            values = part.values[self.state.nodes.alive]
            known = self._uniform[part] = (stamp, bool((values == values[:1]).all()))
        return known[1]

    def _fuse_scores(self) -> None:
        """Fuse all scores over all rows."""
        count, capacity = self.state.nodes.count, self.state.nodes.capacity
        self._weighted = []
        self._sum = np.zeros(capacity, dtype=np.int64)
        if not self.profile.score:
            self._sum[:] = 1
        for number in range(len(self.score_parts)):
            scale = self.scales[number] = self.scale_of(number, self.feasible)
            weighted = self.weights[number] * self.normalized(number, scale)
            self._weighted.append(weighted)
            self._sum[:count] += weighted
        self.total = np.where(self.feasible, self._sum, -1)
        self._ties.forget()

    def _fuse_renewed_scores(self, numbers: list[int]) -> None:
        """Fuse some parts anew over all rows; the others are up to date."""
        count = self.state.nodes.count
        for number in numbers:
            scale = self.scales[number] = self.scale_of(number, self.feasible)
            weighted = self.weights[number] * self.normalized(number, scale)
            self._sum[:count] += weighted - self._weighted[number]
            self._weighted[number] = weighted
        self.total = np.where(self.feasible, self._sum, -1)
        self._ties.forget()

    def _fuse_score_rows(self, rows: dict[int, None]) -> None:
        """Fuse just these rows, of the parts that placements change."""
        total, feasible, sums = self.total, self.feasible, self._sum
        if len(rows) > FEW_ROWS:
            index = np.fromiter(rows, dtype=np.intp, count=len(rows))
            worths = sums.take(index)
            for number, part in self._dynamic_scores:
                weighted = self._normalized_rows(number, part, index)
                if self.weights[number] != 1:
                    weighted = self.weights[number] * weighted
                known = self._weighted[number]
                worths += weighted
                worths -= known.take(index)
                known[index] = weighted
            sums[index] = worths
            total[index] = np.where(feasible.take(index), worths, -1)
            self._ties.forget()
            return
        scales, weights, weighted_scores = self.scales, self.weights, self._weighted
        for row in rows:
            if not feasible.item(row):
                self._ties.move(row, total.item(row), -1)
                total[row] = -1
                continue
            worth = sums.item(row)
            for number, part in self._dynamic_scores:
                known = weighted_scores[number]
                score = part.values.item(row)
                if scales[number] is not None:
                    score = self._normalized_rows(number, part, np.array([row], dtype=np.intp)).item(0)
                weight = weights[number] * score
                worth += weight - known.item(row)
                known[row] = weight
            self._ties.move(row, total.item(row), worth)
            sums[row] = total[row] = worth

    def best(self) -> tuple[int, BestRows]:
        """Return the highest total and the rows that have it, ascending; -1 and none where nothing is feasible."""
        return self._ties.of(self.total, self.state.nodes.count)

    def _normalized_rows(self, number: int, part: ScorePart, index: Index) -> Ints:
        scale, raw = self.scales[number], part.values.take(index)
        if scale is None or not isinstance(part.plugin, NormalizePlugin):
            return raw
        return part.plugin.normalize(part.spec, scale, raw, Rows(self.state, index))

    def _check_scores(self) -> None:
        """Set `failure` where a normalised score of a feasible node is outside of 0 to 100."""
        feasible = self.feasible[: self.state.nodes.count]
        worst: tuple[str, str, int] | None = None
        for number, part in enumerate(self.score_parts):
            scores = self.normalized(number, self.scales[number])
            bad = np.flatnonzero(feasible & ((scores > MAX_NODE_SCORE) | (scores < MIN_NODE_SCORE)))
            for row in bad.tolist():
                name = self.state.nodes.names[row] or ""
                if worst is None or name < worst[0]:
                    worst = (name, part.name, int(scores[row]))
        if worst is not None:
            self.failure = error(
                f'applying score defaultWeights on Score plugins: plugin "{worst[1]}" returns an invalid score {worst[2]}, '
                f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
            ).by(worst[1])
