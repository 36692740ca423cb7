"""The compiled form of one pod template: what its rules said about every node, and what each node is worth to it.

Pods with the same signature share a plan, so a workload of 10,000 pods is compiled once. Bringing a plan up to date costs what
changed since this plan was last asked: the log of changed rows names the rows, and each is asked once per rule.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayplan.engine.best_rows import BestRows
from bayplan.engine.invalid_scores import invalid_score
from bayplan.engine.pre_filters import PreFilterOutcome, PreFilters, PreFilterSaid
from bayplan.engine.pre_scores import PreScoreOutcome, PreScores
from bayplan.engine.rule_result import FilterResult, ScoreResult, bring_up_to_date
from bayplan.engine.rule_results import RuleResults
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Params, Plugin, PreFilterPlugin, PreScorePlugin
from bayplan.framework.profile import Profile
from bayplan.framework.status import ERROR_BIT, Code, Status, error, verdict_code
from bayplan.objects.pod import Pod
from bayplan.objects.requests import repeats_overhead
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import Footprint, PodClass

BLOCK = 256
"""Rows in a block of totals. A placement changes one row, and then the best of one block is looked for again, not of all rows."""


class Plan:
    """One pod template compiled for one profile.

    Args:
        profile: whose plugins are asked.
        pod: the first pod with this signature.
        state: the cluster.
        results: where results are shared.
        specs: by plugin what it compiled of a pod that agrees with this one in all that the plugin reads.

    Attributes:
        pre: the outcome of PreFilter in the last cycle.
        filter_parts: the filters that take part, in order. score_parts: likewise, the scorers; weights: theirs.
        scales: what each scorer's raw scores were normalised by; None if it has no NormalizeScore.
        feasible: bool[capacity]; feasible_count: how many are.
        total: int64[capacity], the weighted sum of normalised scores; -1 in rows that are not feasible.
        failure: the status that ended the last refresh early (an Error of a plugin), or None.
        history: for the records: what they remember of this plan between its cycles.
        nominated, dry_run: for the cycle and for preemption: what they cache of this plan; None until it is needed.
    """

    def __init__(
        self,
        profile: Profile,
        pod: Pod,
        state: ClusterState,
        results: RuleResults,
        specs: Mapping[str, Any] | None = None,
    ) -> None:
        known = specs if specs is not None else {}
        self.specs: dict[str, Any] = {
            plugin.name: known[plugin.name] if plugin.name in known else plugin.compile(pod, state)
            for plugin in profile.compiling
        }
        self.profile = profile
        self.pod = pod
        self.state = state
        self.columns = state.columns
        earlier_sums = profile.sums_before_binding if repeats_overhead(pod) else 0
        self.footprint: Footprint = state.footprint(pod, earlier_sums=earlier_sums)
        self.pod_class: PodClass = state.pod_class(pod)
        self.owned_counters = state.owned_counters(pod)
        self.priority = pod.spec.priority or 0
        self.pre = PreFilterOutcome()
        self.failure: Status | None = None
        self.history: object | None = None
        self.nominated: object | None = None
        self.dry_run: object | None = None
        self._results = results
        self._pre_filters = PreFilters(profile, self.specs, state)
        self._pre_scores = PreScores(profile, self.specs, state)
        self._node_log, self._usage_log, self._ports_log = state.node_log, state.usage_log, state.ports_log
        # Filters.
        self.filter_parts: list[FilterResult] = []
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.feasible_count = 0
        self._feasible: Any = None
        self._examined: Any = None
        # The filters that some row fails, while single rows are combined.
        self._failing: list[FilterResult] = []
        self._capacity = -1
        self._pre_seen: PreFilterOutcome | None = None
        self._filters_skipped: set[str] | None = None
        self._narrowed_to: frozenset[str] | None = None
        self._filter_params: list[Params | None] = []
        self._observing_filters: list[int] = []
        self._filter_epochs: list[int] = []
        self._has_errors = self._interrupted = False
        self._filter_node_position = self._filter_usage_position = self._filter_ports_position = -1
        # Scores.
        self.score_parts: list[ScoreResult] = []
        self.weights: list[int] = []
        self.scales: list[Any] = []
        self.total: Ints = np.zeros(0, dtype=np.int64)
        self._total: Any = None
        self._pre_score_seen: PreScoreOutcome | None = None
        self._scores_skipped: set[str] | None = None
        self._score_params: list[Params | None] = []
        self._observing_scores: list[int] = []
        self._score_epochs: list[int] = []
        self._has_custom_scores = False
        # The scorers that don't say the same of all nodes, with their numbers and weights; and what the others come to.
        self._varying: list[ScoreResult] = []
        self._varying_numbers: list[int] = []
        self._varying_weights: Any = np.zeros(0, dtype=np.int64)
        self._level = 0
        self._totals_stale = True
        self._scales_stale = True
        self._total_usage_position = self._total_ports_position = -1
        self._block_best: Any = None
        self._block_count: Any = None
        self._block_stale: Any = None
        self._all_blocks_stale = True
        self._scratch: Any = None
        # Records.
        self._recorded: tuple[int, int, int] | None = None
        self._recorded_epochs: list[int] = []

    # PreFilter.

    def pre_filters_said(self) -> tuple[PreFilterSaid, ...]:
        """Return what each PreFilter plugin said that was asked in the last cycle; for records."""
        return self._pre_filters.said()

    def run_pre_filter_plugins(self, cycle_state: CycleState) -> PreFilterOutcome:
        """Ask the PreFilter plugins; the outcome is the same object as long as no plugin answers otherwise."""
        self.pre = self._pre_filters.run(cycle_state)
        return self.pre

    # Filter.

    def refresh_filters(self) -> None:
        """Bring `feasible` up to date; PreFilter must have been run and must not have rejected."""
        self.failure = None
        # A plugin that raised leaves the rows that others changed uncombined.
        whole = self._interrupted
        self._interrupted = True
        if self._choose_filters():
            whole = True
        timer = self._results.timer
        for number in self._observing_filters:
            part = self.filter_parts[number]
            self._filter_params[number] = part.plugin.observe(part.spec, self.state)
        for number in range(len(self.filter_parts)):
            result = self.filter_parts[number]
            if timer is None:
                result.bring_up_to_date(self._filter_params[number])
            else:
                timer((result.name, "Filter"), bring_up_to_date, result, self._filter_params[number])
            if result.epoch != self._filter_epochs[number]:
                self._filter_epochs[number] = result.epoch
                whole = True
        usage_log, ports_log = self._usage_log, self._ports_log
        usage_start, ports_start = self._filter_usage_position, self._filter_ports_position
        if self._filter_node_position != self._node_log.end or self._capacity != self.columns.capacity:
            whole = True
        elif usage_start < usage_log.start or ports_start < ports_log.start:
            whole = True
        elif usage_log.end - usage_start + ports_log.end - ports_start >= self.columns.count:
            whole = True
        self._filter_node_position = self._node_log.end
        self._filter_usage_position, self._filter_ports_position = usage_log.end, ports_log.end
        if whole:
            self._combine_filters()
        elif usage_start != usage_log.end or ports_start != ports_log.end:
            self._failing = [result for result in self.filter_parts if result.failing]
            for position in range(usage_start, usage_log.end):
                self._combine_row(usage_log.at(position))
            for position in range(ports_start, ports_log.end):
                self._combine_row(ports_log.at(position))
        self._interrupted = False
        if self._has_errors:
            self._find_filter_error()

    def filter_stamp(self) -> tuple[int, ...]:
        """Return what moves when a filter has been asked about all rows again, or others take part."""
        return (id(self.filter_parts), *self._filter_epochs)

    def _choose_filters(self) -> bool:
        """Take the filters that PreFilter left in, and their params; return whether all rows must be combined again."""
        pre = self.pre
        if pre is self._pre_seen:
            return False
        self._pre_seen = pre
        whole = False
        if pre.skipped != self._filters_skipped:
            skipped = self._filters_skipped = pre.skipped
            chosen = [plugin for plugin in self.profile.filter if plugin.name not in skipped]
            self.filter_parts = [self._results.filter_result(plugin, self.specs[plugin.name]) for plugin in chosen]
            self._filter_epochs = [-1] * len(chosen)
            # A filter without PreFilter may observe the cluster instead.
            self._observing_filters = [
                number for number, plugin in enumerate(chosen) if type(plugin).observe is not Plugin.observe
            ]
            whole = True
        if pre.node_names != self._narrowed_to:
            self._narrowed_to = pre.node_names
            whole = True
        self._filter_params = [self.filter_params(part) for part in self.filter_parts]
        return whole

    def filter_params(self, part: FilterResult) -> Params | None:
        """Return what a filter gets as params now: None if the profile leaves out its PreFilter."""
        if part.name in self.profile.pre_filter_names:
            return self.pre.params.get(part.name, ())
        return None if isinstance(part.plugin, PreFilterPlugin) else part.plugin.observe(part.spec, self.state)

    def _combine_filters(self) -> None:
        """Find again which rows pass all filters."""
        columns = self.columns
        if self._capacity != columns.capacity:
            self._capacity = columns.capacity
            self.feasible = np.zeros(columns.capacity, dtype=np.bool_)
            self._feasible = self.feasible.view(np.uint8)
        self._examined = self.examined().view(np.uint8)
        feasible, examined = self._feasible, self._examined
        self._has_errors = False
        for row in range(columns.count):
            feasible[row] = examined[row]
        for number in range(len(self.filter_parts)):
            result = self.filter_parts[number]
            if result.failing:
                codes = result.codes
                self._has_errors = self._has_errors or result.has_errors
                for row in range(columns.count):
                    if codes[row]:
                        feasible[row] = 0
        count = 0
        for row in range(columns.count):
            if feasible[row]:
                count += 1
        self.feasible_count = count
        self._totals_stale = self._scales_stale = True

    def _combine_row(self, row: int) -> None:
        """Find again whether a row passes all filters."""
        passes = self._examined[row] != 0
        if passes:
            for number in range(len(self._failing)):
                result = self._failing[number]
                if result.codes[row]:
                    passes = False
                    if result.has_errors:
                        self._has_errors = True
                    break
        if passes != (self._feasible[row] != 0):
            self._feasible[row] = passes
            self.feasible_count += 1 if passes else -1
            self._scales_stale = True

    def _find_filter_error(self) -> None:
        """Set `failure` if a filter that was reached says Error; upstream ends the cycle with the first it meets."""
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
        """Return the status of a verdict of the filter with this number."""
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

    def first_failures(self) -> tuple[Index, Codes]:
        """Return per row the number of the first filter that failed (intp, -1: none) and its verdict (uint16)."""
        capacity = self.columns.capacity
        first = np.full(capacity, -1, dtype=np.intp)
        verdicts = np.zeros(capacity, dtype=np.uint16)
        for number, part in enumerate(self.filter_parts):
            if not part.failing:
                continue
            rows = part.values.nonzero()[0]
            rows = rows[first[rows] < 0]
            first[rows] = number
            verdicts[rows] = part.values[rows]
        return first, verdicts

    def first_failure_at(self, row: int) -> tuple[int, int]:
        """Return the number of the first filter that fails on a row (-1: none), and its verdict (0: none)."""
        for number in range(len(self.filter_parts)):
            result = self.filter_parts[number]
            if result.codes[row]:
                return number, result.codes[row]
        return -1, 0

    def first_failures_of(self, index: Index) -> tuple[Index, Codes]:
        """Return the same for some rows (intp), as columns: intp and uint16."""
        first = np.full(len(index), -1, dtype=np.intp)
        verdicts = np.zeros(len(index), dtype=np.uint16)
        for number, part in enumerate(self.filter_parts):
            codes = part.values[index]
            fresh = (codes != 0) & (first < 0)
            first[fresh] = number
            verdicts[fresh] = codes[fresh]
        return first, verdicts

    # Score.

    def pre_scores_said(self) -> tuple[tuple[str, Code], ...]:
        """Return what each PreScore plugin said that was asked when nodes were scored last; for records."""
        return self._pre_scores.said()

    def refresh_scores(self) -> None:
        """Bring `total` up to date; filters must be, and some node must be feasible."""
        if not self._choose_scores():
            self._totals_stale = True
            return
        whole = self._totals_stale or self._capacity != len(self.total)
        self._totals_stale = True
        moved, timer = False, self._results.timer
        for number in range(len(self.score_parts)):
            result = self.score_parts[number]
            if timer is None:
                self._ask_scorer(result, self._score_params[number])
            else:
                timer((result.name, "Score"), self._ask_scorer, result, self._score_params[number])
            if result.epoch != self._score_epochs[number]:
                self._score_epochs[number] = result.epoch
                moved = True
        usage_log, ports_log = self._usage_log, self._ports_log
        usage_start, ports_start = self._total_usage_position, self._total_ports_position
        if usage_start < usage_log.start or ports_start < ports_log.start:
            whole = True
        elif usage_log.end - usage_start + ports_log.end - ports_start >= self.columns.count:
            whole = True
        self._total_usage_position, self._total_ports_position = usage_log.end, ports_log.end
        whole = self._rescale(whole or moved) or whole or moved
        if whole:
            self._sum_up()
        else:
            for position in range(usage_start, usage_log.end):
                self._sum_row(usage_log.at(position))
            for position in range(ports_start, ports_log.end):
                self._sum_row(ports_log.at(position))
        self._totals_stale = self._scales_stale = False
        if self._has_custom_scores or not self.state.small:
            self._check_scores()

    def _ask_scorer(self, result: ScoreResult, params: Params | None) -> None:
        if result.score_rule.reads_feasible:
            result.ask_for(self._feasible)
        else:
            result.bring_up_to_date(params)

    def _choose_scores(self) -> bool:
        """Take the scorers that PreScore left in, and their params; return False, with `failure` set, if scoring ended there."""
        state = self.state
        outcome = self._pre_scores.run(self.feasible[: self.columns.count])
        if outcome is not self._pre_score_seen:
            self.failure = outcome.failure
            if self.failure is not None:
                self._pre_score_seen = None
                return False
            if outcome.skipped != self._scores_skipped:
                self._scores_skipped = outcome.skipped
                chosen = [entry for entry in self.profile.score if entry.plugin.name not in outcome.skipped]
                self.score_parts = [
                    self._results.score_result(entry.plugin, self.specs[entry.plugin.name]) for entry in chosen
                ]
                self.weights = [entry.weight for entry in chosen]
                self.scales = [None] * len(chosen)
                self._score_epochs = [-1] * len(chosen)
                self._has_custom_scores = any(
                    not type(entry.plugin).__module__.startswith("bayplan.") for entry in chosen
                )
                self._observing_scores = [
                    number
                    for number, entry in enumerate(chosen)
                    if type(entry.plugin).observe is not Plugin.observe
                    and entry.plugin.name not in self.profile.pre_score_names
                    and not isinstance(entry.plugin, PreScorePlugin)
                ]
                self._totals_stale = True
            self._score_params = [self._params_of(part, outcome) for part in self.score_parts]
            self._pre_score_seen = outcome
            for number, part in enumerate(self.score_parts):
                text = part.plugin.score_error(part.spec, self._score_params[number])
                if text:
                    self.failure = error(f'running Score plugins: plugin "{part.name}" failed with: {text}').by(
                        part.name
                    )
                    self._pre_score_seen = None
                    return False
        for number in self._observing_scores:
            part = self.score_parts[number]
            self._score_params[number] = part.plugin.observe(part.spec, state)
        return True

    def _params_of(self, part: ScoreResult, outcome: PreScoreOutcome) -> Params | None:
        if part.name in self.profile.pre_score_names:
            return outcome.params.get(part.name, ())
        return None if isinstance(part.plugin, PreScorePlugin) else part.plugin.observe(part.spec, self.state)

    def _rescale(self, whole: bool) -> bool:
        """Find what raw scores are normalised by over the feasible rows; return whether that moved for any scorer."""
        moved = False
        stale = whole or self._scales_stale
        for number in range(len(self.score_parts)):
            result = self.score_parts[number]
            if not result.score_rule.normalizes:
                continue
            if result.static and (not stale or (not whole and result.is_uniform())):
                continue
            scale = result.score_rule.scale(result.raw, self._feasible)
            if scale != self.scales[number]:
                self.scales[number] = scale
                moved = True
        return moved

    def _sum_up(self) -> None:
        """Sum up the scores of all rows."""
        columns, feasible = self.columns, self._feasible
        count = columns.count
        if len(self.total) != columns.capacity:
            self._allocate_totals(columns.capacity)
        total, scratch = self._total, self._scratch
        level = 0 if self.profile.score else 1
        self._varying, self._varying_numbers = [], []
        for number in range(len(self.score_parts)):
            result = self.score_parts[number]
            if result.is_uniform():
                level += self.weights[number] * self._normalized_level(result, self.scales[number])
            else:
                self._varying.append(result)
                self._varying_numbers.append(number)
        self._varying_weights = np.array([self.weights[number] for number in self._varying_numbers], dtype=np.int64)
        self._level = level
        for row in range(count):
            total[row] = level
        for number in range(len(self._varying)):
            result = self._varying[number]
            weight, values = self._varying_weights[number], result.raw
            if result.score_rule.normalizes:
                result.score_rule.normalize_all(self.scales[self._varying_numbers[number]], values, scratch)
                values = scratch
            for row in range(count):
                total[row] += weight * values[row]
        for row in range(count):
            if not feasible[row]:
                total[row] = -1
        self._all_blocks_stale = True

    def _normalized_level(self, result: ScoreResult, scale: Any) -> int:
        """Return the normalised score of all nodes, which have the same raw score."""
        alive = self.columns.alive
        for row in range(self.columns.count):
            if alive[row]:
                raw = result.raw[row]
                return int(result.score_rule.normalize(scale, raw, row) if result.score_rule.normalizes else raw)
        return 0

    def _allocate_totals(self, capacity: int) -> None:
        self.total = np.full(capacity, -1, dtype=np.int64)
        self._total = self.total
        self._scratch = np.zeros(capacity, dtype=np.int64)
        blocks = capacity // BLOCK + 1
        self._block_best = np.full(blocks, -1, dtype=np.int64)
        self._block_count = np.zeros(blocks, dtype=np.intp)
        self._block_stale = np.ones(blocks, dtype=np.uint8)

    def _sum_row(self, row: int) -> None:
        """Sum up the scores of one row."""
        worth = -1
        if self._feasible[row]:
            worth = self._level
            for number in range(len(self._varying)):
                result = self._varying[number]
                score = result.raw[row]
                if result.score_rule.normalizes:
                    scale = self.scales[self._varying_numbers[number]]
                    score = result.score_rule.normalize(scale, score, row)
                worth += self._varying_weights[number] * score
        before = self._total[row]
        if worth == before:
            return
        self._total[row] = worth
        block = row // BLOCK
        if worth > self._block_best[block]:
            self._block_best[block], self._block_count[block] = worth, 1
            return
        if worth == self._block_best[block]:
            self._block_count[block] += 1
        elif before == self._block_best[block]:
            self._block_count[block] -= 1
            if self._block_count[block] == 0:
                self._block_stale[block] = 1

    def _check_scores(self) -> None:
        """Set `failure` if a normalised score of a feasible node is outside of 0 to 100."""
        count = self.columns.count
        scores = ((part.name, self.normalized(number)[:count]) for number, part in enumerate(self.score_parts))
        failure = invalid_score(self.state, scores, self.feasible[:count])
        if failure is not None:
            self.failure = failure
            self._pre_score_seen = None

    def normalized(self, number: int) -> Ints:
        """Return int64[capacity], the normalised scores of one scorer."""
        result = self.score_parts[number]
        if not result.score_rule.normalizes:
            values: Ints = result.values
            return values
        found = np.zeros(self.columns.capacity, dtype=np.int64)
        result.score_rule.normalize_all(self.scales[number], result.raw, found)
        return found

    def best(self) -> tuple[int, BestRows]:
        """Return the highest total and the rows that have it; -1 and none if nothing is feasible."""
        blocks = self.columns.count // BLOCK + 1
        highest = -1
        for block in range(blocks):
            if self._all_blocks_stale or self._block_stale[block]:
                self._refresh_block(block)
            if self._block_best[block] > highest:
                highest = self._block_best[block]
        self._all_blocks_stale = False
        ties = 0
        if highest >= 0:
            for block in range(blocks):
                if self._block_best[block] == highest:
                    ties += self._block_count[block]
        return int(highest), BestRows(self, int(highest), int(ties))

    def _refresh_block(self, block: int) -> None:
        total, best, count = self._total, -1, 0
        start = block * BLOCK
        end = min(start + BLOCK, self.columns.count)
        for row in range(start, end):
            if total[row] > best:
                best = total[row]
        for row in range(start, end):
            if total[row] == best:
                count += 1
        self._block_best[block] = best
        self._block_count[block] = count
        self._block_stale[block] = 0

    def nth_best(self, highest: int, number: int) -> int:
        """Return the row with the highest total that comes after `number` others, in the order of rows; blocks are up to date."""
        for block in range(self.columns.count // BLOCK + 1):
            if self._block_best[block] != highest:
                continue
            if number >= self._block_count[block]:
                number -= self._block_count[block]
                continue
            for row in range(block * BLOCK, min((block + 1) * BLOCK, self.columns.count)):
                if self._total[row] == highest:
                    if number == 0:
                        return row
                    number -= 1
        raise IndexError("there are fewer best rows")

    @property
    def scores_samples(self) -> bool:
        """Return whether `score_sample` can be asked: PreScore must say the same whatever nodes are feasible."""
        return not self._pre_scores.reads_feasible and not self._has_custom_scores and self.state.small

    def score_sample(self, sample: Index) -> tuple[int, Index]:
        """Return the highest total of some feasible rows (intp), as if no others were feasible, and the rows that have it."""
        total, rows, count = self._total, sample, len(sample)
        if self.rescales_samples:
            total = self._totals_of_sample(sample)
        highest = -1
        best: list[int] = []
        for place in range(count):
            if total[rows[place]] > highest:
                highest = total[rows[place]]
        for place in range(count):
            if total[rows[place]] == highest:
                best.append(rows[place])
        best.sort()
        return int(highest), np.array(best, dtype=np.intp)

    @property
    def rescales_samples(self) -> bool:
        """Return whether some scorer scales a sample in another way than all feasible nodes."""
        return any([result.score_rule.normalizes for result in self._varying])

    def _totals_of_sample(self, sample: Index) -> Any:
        """Return int64[capacity] with the totals of some rows, scaled over these rows alone."""
        capacity, count = self.columns.capacity, len(sample)
        mask = np.zeros(capacity, dtype=np.uint8)
        mask[sample] = 1
        totals = np.zeros(capacity, dtype=np.int64)
        found, rows, chosen, raw = totals, sample, mask, self._scratch
        for place in range(count):
            found[rows[place]] = self._level
        for number in range(len(self._varying)):
            result = self._varying[number]
            rule, weight, values = result.score_rule, self._varying_weights[number], result.raw
            if rule.reads_feasible:
                rule.prepare(chosen)
                for place in range(count):
                    raw[rows[place]] = rule.score(rows[place])
                values = raw
            if not rule.normalizes:
                for place in range(count):
                    found[rows[place]] += weight * values[rows[place]]
                continue
            scale = rule.scale(values, chosen)
            for place in range(count):
                row = rows[place]
                found[row] += weight * rule.normalize(scale, values[row], row)
        return found

    # Records.

    def take_changes(self) -> list[int] | None:
        """Return the rows whose verdicts or scores may have changed since the last call, or None for all; for records."""
        epochs = [part.epoch for part in (*self.filter_parts, *self.score_parts)]
        known, self._recorded = self._recorded, (self._usage_log.end, self._ports_log.end, self._node_log.end)
        same = epochs == self._recorded_epochs
        self._recorded_epochs = epochs
        if known is None or not same or known[2] != self._node_log.end:
            return None
        usage, ports = self._usage_log.since(known[0]), self._ports_log.since(known[1])
        if usage is None or ports is None:
            return None
        return list(dict.fromkeys(usage + ports))

    def keep_changes(self, rows: list[int]) -> None:
        """Return rows that `take_changes` returned with the next call again."""
        self._recorded = None

    def values_at(self, rows: list[int], numbers: Sequence[int]) -> array[int]:
        """Return what results say of rows, row by row, as numbers of 64 bits; results by number, filters first, then scorers."""
        parts = [*self.filter_parts, *self.score_parts]
        values = np.empty((len(rows), len(numbers)), dtype=np.int64)
        for place, number in enumerate(numbers):
            values[:, place] = parts[number].values[rows]
        return array("q", values.tobytes())
