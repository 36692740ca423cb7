"""Runs the PreFilter and PreScore plugins of a profile for one plan, but only those whose result may have changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bayplan.framework.plugin import Params, Plugin, PreFilterPlugin, PreFilterResult, PreScorePlugin, Reads
from bayplan.framework.profile import Profile
from bayplan.framework.status import Code, Status, error, unresolvable
from bayplan.state.cluster_state import ClusterState

_SKIP = Code.SKIP
_UNSCHEDULABLE, _UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_NODES, _COUNTERS, _CATALOG = Reads.NODES.value, Reads.COUNTERS.value, Reads.CATALOG.value
_NEW_SPEC = Reads.EVERYTHING.value + 1
"""Added to the data that a plugin reads if its last result belongs to an earlier spec."""

_ALWAYS = (Reads.USAGE | Reads.PORTS | Reads.OBJECTS).value | _NEW_SPEC
"""Data whose changes can't be detected cheaply: plugins that read it run in every cycle."""

_UNKNOWN = object()


class PreFilterRecord(NamedTuple):
    """The result of one PreFilter plugin, for records. `node_names`: the only nodes left; None for all."""

    plugin: str
    code: Code
    message: str
    node_names: frozenset[str] | None


class PreparationOutcome:
    """The combined results of the plugins of PreFilter (upstream's RunPreFilterPlugins) or PreScore.

    Attributes:
        status: the rejection or error that ends the cycle, or None.
        params, skipped: the params of the plugins that returned some, and the names of those that returned Skip.
        node_names: the only nodes left by PreFilter; None for all.
        narrowed_by: the names of the plugins that restricted the nodes, in order.
        unreached: the names of the plugins that did not run, because an earlier plugin ended the extension point.
        records: the result of each plugin that ran, in order; None until someone asks for it.
    """

    def __init__(self) -> None:
        self.status: Status | None = None
        self.params: dict[str, Params] = {}
        self.skipped: set[str] = set()
        self.node_names: frozenset[str] | None = None
        self.narrowed_by: list[str] = []
        self.unreached: tuple[str, ...] = ()
        self.records: tuple[Any, ...] | None = None


class PreparedPlugins:
    """The plugins of one extension point, with their last results for one plan's specs.

    The base of `PreFilters` and `PreScores`. `observers` are filters or scorers without a PreFilter or PreScore; their
    `observe` runs last, and is not recorded. `reads` is the name of the method of `plugins` that returns what they read.
    """

    def __init__(
        self, plugins: Sequence[Any], observers: list[Any], reads: str, specs: Mapping[str, Any], state: ClusterState
    ) -> None:
        self._state = state
        self._node_log = state.node_log
        self._columns = state.columns
        self._catalog = state.catalog
        self._plugins = [*plugins, *observers]
        self._first_observer = len(plugins)
        self._reads_of = reads
        count = len(self._plugins)
        # By plugin: its spec, its last result (`_UNKNOWN` if it must run), and the data that it reads, except NODES.
        self._specs: list[Any] = [None] * count
        self._answers: list[Any] = [_UNKNOWN] * count
        self._reads = [0] * count
        self._all_reads = 0
        # The outcome, and the number of plugins that ran for it.
        self._outcome: PreparationOutcome | None = None
        self._run_count = 0
        # Versions at the last run: of the node log, of other objects, and of pods that counters count.
        self._node_position = self._writes = self._counted = -1
        self.adapt(specs)

    def adapt(self, specs: Mapping[str, Any]) -> None:
        """Change to other specs; only plugins with a different spec run again."""
        self._all_reads = 0
        for number in range(len(self._plugins)):
            plugin = self._plugins[number]
            spec = specs[plugin.name]
            if spec is not self._specs[number]:
                self._specs[number] = spec
                observes = number >= self._first_observer
                reads = plugin.pre_reads if observes else getattr(plugin, self._reads_of)(spec)
                # `_value_` skips the property `value`, which takes ten times as long.
                self._reads[number] = reads._value_ & ~_NODES | _NEW_SPEC
            self._all_reads |= self._reads[number]

    def refresh(self, argument: Any) -> PreparationOutcome:
        """Return the outcome of this cycle: the same object as before if no result changed.

        `argument` is the last argument of the plugins' method.
        """
        # The data that has changed since the last cycle, as bits of `Reads`; with NODES, all plugins run again.
        changes, known = _ALWAYS, self._outcome
        if self._node_log.end != self._node_position:
            self._node_position = self._node_log.end
            changes |= _NODES
        if self._all_reads & _COUNTERS and self._columns.counted != self._counted:
            self._counted = self._columns.counted
            changes |= _COUNTERS
        if self._all_reads & _CATALOG and self._catalog.writes != self._writes:
            self._writes = self._catalog.writes
            changes |= _CATALOG
        if known is None or changes & _NODES:
            self._answers = [_UNKNOWN] * len(self._plugins)
        elif not changes & self._all_reads:
            return known
        # If a plugin raises, all run again the next time.
        self._outcome = None
        changed = self._first_changed(changes, argument)
        outcome = known if known is not None and changed < 0 else self._combine(changed + 1, changes, argument)
        self._all_reads &= ~_NEW_SPEC
        self._outcome = outcome
        return outcome

    def _first_changed(self, changes: int, argument: Any) -> int:
        """Run plugins again, as far as they ran before, until the result of one changes; return its number, or -1."""
        for number in range(self._run_count):
            before, reads = self._answers[number], self._reads[number]
            if before is _UNKNOWN or changes & reads:
                answer = self._run(number, argument)
                self._reads[number] = reads & ~_NEW_SPEC
                # Params for another spec replace the last ones even if they are equal.
                if answer is not before and (before is _UNKNOWN or reads & _NEW_SPEC or answer != before):
                    self._answers[number] = answer
                    return number
        return -1

    def _combine(self, first: int, changes: int, argument: Any) -> PreparationOutcome:
        """Combine the results in order; from number `first` on, run the plugins whose result may have changed."""
        outcome, run_count = PreparationOutcome(), 0
        for number in range(len(self._plugins)):
            reads = self._reads[number]
            if self._answers[number] is _UNKNOWN or (number >= first and changes & reads):
                self._answers[number] = self._run(number, argument)
                self._reads[number] = reads & ~_NEW_SPEC
            run_count = number + 1
            if not self._merge(outcome, self._plugins[number], self._answers[number]):
                break
        # Changes of what the other plugins read go unnoticed until they run again.
        for number in range(run_count, len(self._plugins)):
            outcome.unreached += (self._plugins[number].name,)
            self._answers[number] = _UNKNOWN
        self._run_count = run_count
        return outcome

    def recorded_results(self) -> tuple[Any, ...]:
        """Return the result of each plugin that ran last time, in order: the same tuple until the outcome changes."""
        outcome = self._outcome
        if outcome is None:
            return ()
        if outcome.records is None:
            ran = zip(self._plugins[: self._first_observer], self._answers, strict=False)
            outcome.records = tuple(
                [self._record_of(plugin, answer) for plugin, answer in ran if answer is not _UNKNOWN]
            )
        return outcome.records

    # The extension points differ in these methods.

    def _run(self, number: int, argument: Any) -> Any:
        """Run a plugin; `argument` is that of `refresh`."""
        raise TypeError(f"{type(self).__name__} lacks _run()")

    def _merge(self, outcome: PreparationOutcome, plugin: Any, answer: Any) -> bool:
        """Merge one result into the outcome; return whether the next plugin runs."""
        raise TypeError(f"{type(self).__name__} lacks _merge()")

    def _record_of(self, plugin: Any, answer: Any) -> Any:
        """Return the record of one result."""
        raise TypeError(f"{type(self).__name__} lacks _record_of()")


class PreFilters(PreparedPlugins):
    """The PreFilter plugins of a profile."""

    def __init__(self, profile: Profile, specs: Mapping[str, Any], state: ClusterState) -> None:
        observers = _observers(profile.filter, PreFilterPlugin)
        super().__init__(profile.pre_filter, observers, "pre_filter_reads", specs, state)

    def _run(self, number: int, argument: Any) -> Any:
        plugin, spec = self._plugins[number], self._specs[number]
        if number >= self._first_observer:
            return PreFilterResult(plugin.observe(spec, self._state))
        return plugin.pre_filter(spec, self._state, argument)

    def _merge(self, outcome: PreparationOutcome, plugin: Any, answer: Any) -> bool:
        """Merge one result into the outcome; return whether the next plugin runs.

        As upstream: the last Unschedulable wins; UnschedulableAndUnresolvable, an error and an empty set of nodes stop
        immediately, and later plugins don't run.
        """
        if isinstance(answer, Status):
            if answer.code is _SKIP:
                outcome.skipped.add(plugin.name)
                return True
            if answer.code is _UNSCHEDULABLE or answer.code is _UNRESOLVABLE:
                outcome.status = answer.by(plugin.name)
                return answer.code is not _UNRESOLVABLE
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

    def _record_of(self, plugin: Any, answer: Any) -> PreFilterRecord:
        if isinstance(answer, Status):
            return PreFilterRecord(plugin.name, answer.code, answer.message, None)
        return PreFilterRecord(plugin.name, Code.SUCCESS, "", answer.node_names)


def _observers(plugins: Iterable[Plugin[Any]], point: type[Plugin[Any]]) -> list[Plugin[Any]]:
    """Return the plugins that observe the cluster: a plugin of the extension point reads it there instead."""
    return [it for it in plugins if type(it).observe is not Plugin.observe and not isinstance(it, point)]


class PreScores(PreparedPlugins):
    """The PreScore plugins of a profile.

    Attributes:
        reads_feasible: whether some result depends on which nodes are feasible.
    """

    def __init__(self, profile: Profile, specs: Mapping[str, Any], state: ClusterState) -> None:
        # Without score plugins, no PreScore plugin runs.
        plugins = profile.pre_score if profile.score else ()
        observers = _observers([entry.plugin for entry in profile.score], PreScorePlugin)
        super().__init__(plugins, observers, "pre_score_reads", specs, state)
        self.reads_feasible = any(plugin.reads_feasible for plugin in plugins)

    def _run(self, number: int, argument: Any) -> Any:
        """Run a plugin; `argument` is bool[capacity], the feasible rows."""
        plugin, spec = self._plugins[number], self._specs[number]
        if number >= self._first_observer:
            return plugin.observe(spec, self._state)
        return plugin.pre_score(spec, self._state, argument[: self._columns.count])

    def _merge(self, outcome: PreparationOutcome, plugin: Any, answer: Any) -> bool:
        if not isinstance(answer, Status):
            outcome.params[plugin.name] = answer or ()
        elif answer.code is _SKIP:
            outcome.skipped.add(plugin.name)
        else:
            outcome.status = error(f'running PreScore plugin "{plugin.name}": {answer.message}').by(plugin.name)
            return False
        return True

    def _record_of(self, plugin: Any, answer: Any) -> tuple[str, Code]:
        return (plugin.name, answer.code if isinstance(answer, Status) else Code.SUCCESS)
