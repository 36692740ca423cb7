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
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NormalizePlugin,
    Params,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
)
from bayplan.framework.profile import Profile
from bayplan.framework.status import ERROR_BIT, Code, Status, error, unresolvable, verdict_code
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import Footprint, PodClass
from bayplan.state.views import Row, Rows


class PreFilterOutcome:
    """What the PreFilter plugins of a profile said together (upstream's RunPreFilterPlugins)."""

    __slots__ = ("narrowed_by", "node_names", "params", "skipped", "status")

    def __init__(self) -> None:
        self.status: Status | None = None
        self.node_names: frozenset[str] | None = None
        self.narrowed_by: list[str] = []
        self.params: dict[str, Params] = {}
        self.skipped: set[str] = set()


class Plan:
    """One pod template compiled for one profile.

    Attributes:
        pod: the first pod that was seen with this signature.
        pre: the outcome of PreFilter in the last cycle.
        filter_parts: the filters that take part, in order. score_parts: likewise, with their weights in `weights`.
        feasible: bool[capacity]; feasible_count: how many are.
        total: int64[capacity], the weighted sum of normalised scores; -1 where not feasible.
        keyframe: free for the records: what they last wrote whole of this plan.
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
        self.pre = PreFilterOutcome()
        self._pre_static = all(_is_static(item.pre_filter_reads(self.specs[item.name])) for item in profile.pre_filter)
        self._pre_score_static = all(
            _is_static(item.pre_score_reads(self.specs[item.name])) for item in profile.pre_score
        )
        self._filters_skipped: set[str] | None = None
        self._scores_skipped: set[str] | None = None
        self._narrowed_to: frozenset[str] | None = None
        self.filter_parts: list[FilterPart] = []
        self.score_parts: list[ScorePart] = []
        self.weights: list[int] = []
        self.pre_score_params: dict[str, Params] = {}
        self.pre_score_skipped: set[str] = set()
        self.scales: list[Params | None] = []
        self.failure: Status | None = None
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.feasible_count = 0
        self.total: Ints = np.zeros(0, dtype=np.int64)
        self._static_feasible: Bools = self.feasible
        self._base: Ints = self.total
        self._stale_rows: dict[int, None] | None = None
        self._changes: Changes | None = None
        self.keyframe: object | None = None
        self._recorded_rows: dict[int, None] | None = None
        self._has_errors = False
        self._has_custom_scores = False
        self._has_dynamic_scales = False
        self._node_position = -1
        self._usage_position = -1
        self._ports_position = -1
        # The parts that placements can change, with their places among all.
        self._dynamic_filters: list[tuple[int, FilterPart]] = []
        self._dynamic_scores: list[tuple[int, ScorePart]] = []
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
        """Ask every PreFilter plugin, as upstream does: the last Unschedulable wins, UnschedulableAndUnresolvable stops at once."""
        if self._pre_static and self._node_position == self.state.node_log.end:
            return self.pre
        outcome = PreFilterOutcome()
        for plugin in self.profile.pre_filter:
            if not self._take(outcome, plugin, plugin.pre_filter(self.specs[plugin.name], self.state, cycle_state)):
                break
        self.pre = outcome
        return outcome

    def _take(self, outcome: PreFilterOutcome, plugin: PreFilterPlugin[Any], answer: PreFilterResult | Status) -> bool:
        """Fold one PreFilter answer into the outcome; return whether the next plugin is to be asked."""
        if isinstance(answer, Status):
            if answer.code is Code.SKIP:
                outcome.skipped.add(plugin.name)
                return True
            if answer.code.rejects:
                outcome.status = answer.by(plugin.name)
                return answer.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            outcome.status = error(f'running PreFilter plugin "{plugin.name}": {answer.message}').by(plugin.name)
            return False
        outcome.params[plugin.name] = answer.params
        if answer.node_names is None:
            return True
        outcome.narrowed_by.append(plugin.name)
        known = outcome.node_names
        outcome.node_names = answer.node_names if known is None else known & answer.node_names
        if outcome.node_names:
            return True
        names = sorted(outcome.narrowed_by)
        text = f"node(s) didn't satisfy plugin {names[0]}"
        if len(names) > 1:
            text = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
        outcome.status = unresolvable(text)
        return False

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
            missed = usage.start + len(usage.rows) - self._usage_position
            if missed <= 1:
                return usage.rows[-1:] if missed else []
        changed: dict[int, None] = {}
        for log, position in ((state.usage_log, self._usage_position), (state.ports_log, self._ports_position)):
            if position != log.start + len(log.rows):
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
        only_dynamic = self._pre_static and not whole
        for number, part in self._dynamic_filters if only_dynamic else enumerate(self.filter_parts):
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
        if len(rows) > FEW_ROWS:
            index = np.array(rows, dtype=np.intp)
            fits = static[index]
            for values in dynamic:
                verdicts = values[index]
                self._has_errors |= bool((verdicts >= ERROR_BIT).any())
                fits &= verdicts == 0
            changed = int(np.count_nonzero(fits)) - int(np.count_nonzero(feasible[index]))
            flipped = not np.array_equal(fits, feasible[index])
            feasible[index] = fits
            self.feasible_count += changed
            return flipped
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

    def first_failures(self) -> tuple[Any, Any]:
        """Return per row the number of the first filter part that failed (intp, -1: none) and its verdict (uint16)."""
        capacity = self.state.nodes.capacity
        first = np.full(capacity, -1, dtype=np.intp)
        verdicts = np.zeros(capacity, dtype=np.uint16)
        for number, part in enumerate(self.filter_parts):
            fresh = (part.values != 0) & (first < 0)
            first[fresh] = number
            verdicts[fresh] = part.values[fresh]
        return first, verdicts

    # Score.

    def refresh_scores(self) -> None:
        """Bring `total` up to date; filters must be, and some node must be feasible."""
        state = self.state
        rows, self._stale_rows = self._stale_rows, {}
        whole = rows is None or len(self.total) != state.nodes.capacity
        if whole or not self._pre_score_static:
            self._run_pre_score_plugins()
            if self.failure is not None:
                self._stale_rows = None
                return
        only_dynamic = self._pre_score_static and not whole
        for number, part in self._dynamic_scores if only_dynamic else enumerate(self.score_parts):
            part.bring_up_to_date(state, self._score_params(part), self._row_view, self._changes)
            if part.epoch != self._score_epochs[number]:
                self._score_epochs[number] = part.epoch
                self._recorded_rows = None
                whole = True
        if whole or rows is None or (self._has_dynamic_scales and not self._scales_hold()):
            self._fuse_scores()
        elif rows:
            self._fuse_score_rows(rows)
        if self._has_custom_scores or not state.small:
            self._check_scores()

    def _score_params(self, part: ScorePart) -> Params | None:
        if part.name in self.profile.pre_score_names:
            return self.pre_score_params.get(part.name, ())
        return None if isinstance(part.plugin, PreScorePlugin) else part.plugin.observe(part.spec, self.state)

    def _run_pre_score_plugins(self) -> None:
        self.pre_score_params = {}
        self.pre_score_skipped = set()
        feasible = self.feasible[: self.state.nodes.count]
        for plugin in self.profile.pre_score:
            answer = plugin.pre_score(self.specs[plugin.name], self.state, feasible)
            if not isinstance(answer, Status):
                self.pre_score_params[plugin.name] = answer
            elif answer.code is Code.SKIP:
                self.pre_score_skipped.add(plugin.name)
            else:
                self.failure = error(f'running PreScore plugin "{plugin.name}": {answer.message}').by(plugin.name)
                return
        if self.pre_score_skipped != self._scores_skipped:
            self._scores_skipped = self.pre_score_skipped
            chosen = [entry for entry in self.profile.score if entry.plugin.name not in self.pre_score_skipped]
            self.score_parts = [self._parts.score_part(entry.plugin, self.specs[entry.plugin.name]) for entry in chosen]
            self.weights = [entry.weight for entry in chosen]
            self._dynamic_scores = [entry for entry in enumerate(self.score_parts) if not entry[1].static]
            self._score_epochs = [-1] * len(chosen)
            self.scales = [None] * len(chosen)
            self._has_custom_scores = any(not type(entry.plugin).__module__.startswith("bayplan.") for entry in chosen)
            self._has_dynamic_scales = any(
                not part.static and isinstance(part.plugin, NormalizePlugin) for part in self.score_parts
            )
        for part in self.score_parts:
            text = part.plugin.score_error(part.spec, self._score_params(part))
            if text:
                self.failure = error(f'running Score plugins: plugin "{part.name}" failed with: {text}').by(part.name)
                return

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
        if not self._pre_score_static or self.feasible_count == 0:
            return False
        return all(
            scale is None or scale == self.scale_of(number, self.feasible) for number, scale in enumerate(self.scales)
        )

    def _fuse_scores(self) -> None:
        state = self.state
        count, capacity = state.nodes.count, state.nodes.capacity
        base = np.zeros(capacity, dtype=np.int64)
        if not self.profile.score:
            base[:] = 1
        total = base.copy()
        for number, part in enumerate(self.score_parts):
            scale = self.scales[number] = self.scale_of(number, self.feasible)
            weighted = self.weights[number] * self.normalized(number, scale)
            total[:count] += weighted
            if part.static:
                base[:count] += weighted
        total[~self.feasible] = -1
        self._base = base
        self.total = total

    def _fuse_score_rows(self, rows: dict[int, None]) -> None:
        total, base, feasible = self.total, self._base, self.feasible
        scales, weights = self.scales, self.weights
        if len(rows) > FEW_ROWS:
            index = np.fromiter(rows, dtype=np.intp, count=len(rows))
            worths = base[index]
            for number, part in self._dynamic_scores:
                scores = part.values[index]
                scale = scales[number]
                if scale is not None and isinstance(part.plugin, NormalizePlugin):
                    scores = part.plugin.normalize(part.spec, scale, scores, Rows(self.state, index))
                worths += weights[number] * scores
            total[index] = np.where(feasible[index], worths, -1)
            return
        for row in rows:
            if not feasible.item(row):
                total[row] = -1
                continue
            worth = base.item(row)
            for number, part in self._dynamic_scores:
                score = part.values.item(row)
                scale, weight = scales[number], weights[number]
                if scale is not None and isinstance(part.plugin, NormalizePlugin):
                    index = np.array([row], dtype=np.intp)
                    one = part.values[index]
                    score = part.plugin.normalize(part.spec, scale, one, Rows(self.state, index)).item(0)
                worth += weight * score
            total[row] = worth

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


def _is_static(reads: Reads) -> bool:
    return reads is Reads.NOTHING or reads is Reads.NODES
