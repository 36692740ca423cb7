"""Runs the PreFilter and PreScore plugins of a profile for one plan, but only those whose result may have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bayplan.base.errors import PluginError
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Params, PreFilterPlugin, PreFilterResult, PreScorePlugin, Reads
from bayplan.framework.profile import Profile
from bayplan.framework.status import Code, Status, error, unresolvable
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState

_SUCCESS, _SKIP = Code.SUCCESS, Code.SKIP
_UNSCHEDULABLE, _UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_NODES, _COUNTERS, _CATALOG = Reads.NODES.value, Reads.COUNTERS.value, Reads.CATALOG.value
_ALWAYS = (Reads.USAGE | Reads.PORTS | Reads.OBJECTS).value
"""Data whose changes can't be detected cheaply: plugins that read it run in every cycle."""


class PreFilterRecord(NamedTuple):
    """The result of one PreFilter plugin, for records. `node_names`: the only nodes left; None for all."""

    plugin: str
    code: Code
    message: str
    node_names: frozenset[str] | None


class PreFilterOutcome:
    """The combined result of a profile's PreFilter plugins (upstream's RunPreFilterPlugins).

    Attributes:
        status: the rejection or error that ends the cycle, or None.
        node_names: the only nodes left; None for all.
        narrowed_by: the names of the plugins that restricted the nodes, in order.
    """

    def __init__(self) -> None:
        self.status: Status | None = None
        self.node_names: frozenset[str] | None = None
        self.narrowed_by: list[str] = []
        self.params: dict[str, Params] = {}
        self.skipped: set[str] = set()


class PreparedPlugins:
    """The plugins of one extension point, with their last results for one plan's specs.

    The base of `PreFilters` and `PreScores`. `reads` is the name of the plugins' method that returns what they read.
    """

    def __init__(self, plugins: Sequence[Any], specs: Mapping[str, Any], state: ClusterState, reads: str) -> None:
        self._state = state
        self._reads_method = reads
        self._node_log = state.node_log
        self._columns = state.columns
        self._catalog = state.catalog
        self._plugins = [(plugin, specs[plugin.name]) for plugin in plugins]
        self._answers: list[Any] = [None] * len(self._plugins)
        # `_stale`: the numbers of the plugins with a new spec. `_reads`: for each plugin, the data that it reads,
        # except NODES.
        self._stale: list[int] = []
        self._reads = [self._reads_of(plugin, spec) for plugin, spec in self._plugins]
        self._sum_reads()
        # Versions at the last run: of the node log, of other objects, and of pods that counters count.
        self._node_position = self._writes = self._counted = -1

    def adapt(self, specs: Mapping[str, Any]) -> None:
        """Change to other specs; only plugins with a different spec run again."""
        for number, (plugin, before) in enumerate(self._plugins):
            spec = specs[plugin.name]
            if spec is not before:
                self._plugins[number] = (plugin, spec)
                self._stale.append(number)
                self._reads[number] = self._reads_of(plugin, spec)
        self._sum_reads()

    def _reads_of(self, plugin: Any, spec: Any) -> int:
        return getattr(plugin, self._reads_method)(spec).value & ~_NODES

    def _sum_reads(self) -> None:
        self._all_reads = 0
        for reads in self._reads:
            self._all_reads |= reads

    def _changes(self) -> int:
        """Return which data has changed since the last call, as bits of `Reads`; with NODES, all plugins run again."""
        changes = _ALWAYS
        if self._node_log.end != self._node_position:
            self._node_position = self._node_log.end
            changes |= _NODES
        if self._all_reads & _COUNTERS and self._columns.counted != self._counted:
            self._counted = self._columns.counted
            changes |= _COUNTERS
        if self._all_reads & _CATALOG and self._catalog.writes != self._writes:
            self._writes = self._catalog.writes
            changes |= _CATALOG
        return changes


class PreFilters(PreparedPlugins):
    """The PreFilter plugins of a profile."""

    def __init__(self, profile: Profile, specs: Mapping[str, Any], state: ClusterState) -> None:
        super().__init__(profile.pre_filter, specs, state, "pre_filter_reads")
        self._outcome = PreFilterOutcome()
        # Number of plugins that ran last time; -1 if there was no run.
        self._run_count = -1
        self._recorded: tuple[PreFilterOutcome, tuple[PreFilterRecord, ...]] | None = None

    def run(self, cycle_state: CycleState) -> PreFilterOutcome:
        """Return the outcome of this cycle: the same object as before if no result changed."""
        outcome = self._refresh(cycle_state)
        if outcome.status is not None:
            cycle_state.unreached_pre_filters = tuple([plugin.name for plugin, _ in self._plugins[self._run_count :]])
        return outcome

    def recorded_results(self) -> tuple[PreFilterRecord, ...]:
        """Return the result of each plugin that ran last time, in order: the same tuple until the outcome changes."""
        if self._recorded is None or self._recorded[0] is not self._outcome:
            ran = zip(self._plugins[: self._run_count], self._answers, strict=False)
            self._recorded = (self._outcome, tuple(_record_of(plugin.name, answer) for (plugin, _), answer in ran))
        return self._recorded[1]

    def _refresh(self, cycle_state: CycleState) -> PreFilterOutcome:
        changes = self._changes()
        if changes & _NODES or self._run_count < 0:
            self._answers = [None] * len(self._plugins)
            return self._fold(0, cycle_state)
        if not changes & self._all_reads and not self._stale:
            return self._outcome
        self._run_count, run_count = -1, self._run_count
        for number in range(run_count):
            if not changes & self._reads[number] and number not in self._stale:
                continue
            plugin, spec = self._plugins[number]
            answer = plugin.pre_filter(spec, self._state, cycle_state)
            known = self._answers[number]
            # If the spec changed, replace even an equal result: equality compares only the data that decides about
            # rows.
            if answer is not known and (number in self._stale or answer != known):
                self._answers[number] = answer
                return self._fold(number + 1, cycle_state)
        self._run_count = run_count
        self._drop_stale(run_count)
        return self._outcome

    def _drop_stale(self, first: int) -> None:
        """Drop the results of stale plugins numbered `first` or higher: they come from a former spec."""
        for number in self._stale:
            if number >= first:
                self._answers[number] = None
        self._stale = []

    def _fold(self, known: int, cycle_state: CycleState) -> PreFilterOutcome:
        """Combine the results in order; from number `known` on, run the plugins whose result may have changed.

        As upstream: the last Unschedulable wins; UnschedulableAndUnresolvable, an error and an empty set of nodes stop
        immediately, and later plugins don't run.
        """
        self._drop_stale(known)
        outcome, run_count = PreFilterOutcome(), 0
        for number, (plugin, spec) in enumerate(self._plugins):
            answer = self._answers[number]
            if answer is None or (number >= known and self._reads[number]):
                answer = self._answers[number] = plugin.pre_filter(spec, self._state, cycle_state)
            run_count = number + 1
            if not _merge(outcome, plugin, answer):
                break
        # If a plugin raises, all run again the next time.
        self._outcome, self._run_count = outcome, run_count
        return outcome


def _record_of(plugin: str, answer: PreFilterResult | Status | None) -> PreFilterRecord:
    if isinstance(answer, Status):
        return PreFilterRecord(plugin, answer.code, answer.message, None)
    return PreFilterRecord(plugin, Code.SUCCESS, "", None if answer is None else answer.node_names)


def _merge(outcome: PreFilterOutcome, plugin: PreFilterPlugin[Any], answer: PreFilterResult | Status) -> bool:
    """Merge one result into the outcome; return whether the next plugin runs."""
    if isinstance(answer, Status):
        if answer.code is _SKIP:
            outcome.skipped.add(plugin.name)
            return True
        if answer.code is _UNSCHEDULABLE or answer.code is _UNRESOLVABLE:
            outcome.status = answer.by(plugin.name)
            return answer.code is not _UNRESOLVABLE
        if answer.ok:
            raise _no_answer(plugin, "a Status of Success")
        outcome.status = error(f'running PreFilter plugin "{plugin.name}": {answer.message}').by(plugin.name)
        return False
    if not isinstance(answer, PreFilterResult):
        raise _no_answer(plugin, repr(answer))
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


def _no_answer(plugin: PreFilterPlugin[Any], got: str) -> PluginError:
    wanted = "a PreFilterResult, or a Status that skips or rejects"
    hint = "'return PROCEED' (bayplan.framework.plugin) if the pod may proceed"
    return PluginError(f"{plugin.name}.pre_filter", got=got, wanted=wanted, hint=hint)


def is_static(reads: Reads) -> bool:
    """Return whether a rule that reads this depends only on the spec and on the descriptions of nodes."""
    return reads is Reads.NOTHING or reads is Reads.NODES


class PreScoreOutcome:
    """The outcome of a profile's PreScore plugins: params, skipped plugins, and the Error that ended it, or None."""

    def __init__(self) -> None:
        self.params: dict[str, Params] = {}
        self.skipped: set[str] = set()
        self.failure: Status | None = None


class PreScores(PreparedPlugins):
    """The PreScore plugins of a profile.

    Attributes:
        reads_feasible: whether some result depends on which nodes are feasible.
    """

    def __init__(self, profile: Profile, specs: Mapping[str, Any], state: ClusterState) -> None:
        # Without score plugins, no PreScore plugin runs.
        super().__init__(profile.pre_score if profile.score else (), specs, state, "pre_score_reads")
        self.reads_feasible = any(plugin.reads_feasible for plugin, _ in self._plugins)
        self._outcome: PreScoreOutcome | None = None
        self._recorded: tuple[PreScoreOutcome | None, tuple[tuple[str, Code], ...]] | None = None

    def run(self, feasible: Bools) -> PreScoreOutcome:
        """Return the outcome of this cycle; the same object as before if no result changed.

        `feasible` is bool[capacity].
        """
        changes, outcome = self._changes(), self._outcome
        if outcome is not None and not changes & (self._all_reads | _NODES) and not self._stale:
            return outcome
        # If a plugin raises, all run again the next time.
        self._outcome = None
        changed = outcome is None
        for number in range(len(self._plugins)):
            if outcome is not None and not changes & (self._reads[number] | _NODES) and number not in self._stale:
                continue
            plugin, spec = self._plugins[number]
            answer = plugin.pre_score(spec, self._state, feasible[: self._columns.count])
            before = self._answers[number]
            if answer is not before and (number in self._stale or answer != before):
                self._answers[number] = answer
                changed = True
        self._stale = []
        self._outcome = self._fold() if outcome is None or changed else outcome
        return self._outcome

    def recorded_results(self) -> tuple[tuple[str, Code], ...]:
        """Return the code of each plugin that ran last time, in order: the same tuple until the outcome changes."""
        if self._recorded is None or self._recorded[0] is not self._outcome:
            found = []
            for (plugin, _), answer in zip(self._plugins, self._answers, strict=True):
                found.append((plugin.name, answer.code if isinstance(answer, Status) else Code.SUCCESS))
                if isinstance(answer, Status) and answer.code is not Code.SKIP:
                    break
            self._recorded = (self._outcome, tuple(found))
        return self._recorded[1]

    def _fold(self) -> PreScoreOutcome:
        outcome = PreScoreOutcome()
        for (plugin, _), answer in zip(self._plugins, self._answers, strict=True):
            if not isinstance(answer, Status):
                outcome.params[plugin.name] = answer or ()
            elif answer.code is _SKIP:
                outcome.skipped.add(plugin.name)
            else:
                outcome.failure = failed_pre_score(plugin, answer)
                break
        return outcome


def failed_pre_score(plugin: PreScorePlugin[Any], answer: Status) -> Status:
    """Return the Error with which a PreScore plugin ends scoring.

    Raises:
        PluginError: the status is Success; a plugin that succeeds must return params.
    """
    if answer.ok:
        wanted = "params, or a Status that skips or fails"
        hint = "'return ()' if there are no params"
        raise PluginError(f"{plugin.name}.pre_score", got="a Status of Success", wanted=wanted, hint=hint)
    return error(f'running PreScore plugin "{plugin.name}": {answer.message}').by(plugin.name)
