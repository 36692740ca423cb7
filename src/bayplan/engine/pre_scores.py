"""Run the PreScore plugins of a profile for one plan, asking again only those whose answer can have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.base.errors import PluginError
from bayplan.engine.pre_filters import is_static
from bayplan.framework.plugin import Params, PreScorePlugin
from bayplan.framework.profile import Profile
from bayplan.framework.status import Code, Status, error
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState


class PreScoreOutcome:
    """What the PreScore plugins of a profile said together: params, who is skipped, and the Error that ended it.

    Attributes:
        renewed: who has other params than in the outcome before, where that is all that is different; else None.
    """

    __slots__ = ("_before", "failure", "params", "renewed", "skipped")

    def __init__(self, before: PreScoreOutcome | None = None) -> None:
        self.params: dict[str, Params] = {}
        self.skipped: set[str] = set()
        self.failure: Status | None = None
        self.renewed: frozenset[str] | None = None
        # Who asks what changed since it was there; outcomes don't hold on to all that went before.
        self._before = before
        if before is not None:
            before._before = None


class PreScores:
    """The PreScore plugins of a profile with their last answers for one plan's specs.

    Attributes:
        reads_feasible: whether some answer depends on which nodes are feasible.
    """

    def __init__(self, profile: Profile, specs: Mapping[str, Any], state: ClusterState) -> None:
        self._state = state
        # Where nothing is scored, nobody is asked to prepare for it.
        preparing = profile.pre_score if profile.score else ()
        self._plugins = [(plugin, specs[plugin.name]) for plugin in preparing]
        self._dynamic = [
            number for number, (plugin, spec) in enumerate(self._plugins) if not is_static(plugin.pre_score_reads(spec))
        ]
        self.reads_feasible = any(plugin.reads_feasible for plugin, _ in self._plugins)
        self._answers: list[Params | Status | None] = [None] * len(self._plugins)
        self._outcome: PreScoreOutcome | None = None
        self._node_position = -1
        self._said: tuple[PreScoreOutcome | None, tuple[tuple[str, Code], ...]] | None = None

    def run(self, feasible: Bools) -> PreScoreOutcome:
        """Return the outcome of this cycle: the same object as before where every answer is the same."""
        position = self._state.node_log.end
        outcome = self._outcome
        known_nodes = outcome is not None and position == self._node_position
        self._node_position = position
        changed = []
        alike = True
        for number in self._dynamic if known_nodes else range(len(self._plugins)):
            plugin, spec = self._plugins[number]
            answer = plugin.pre_score(spec, self._state, feasible)
            known = self._answers[number]
            if answer is not known and answer != known:
                self._answers[number] = answer
                changed.append(number)
                alike &= not isinstance(answer, Status) and not isinstance(known, Status)
        if outcome is None or not known_nodes or not alike:
            self._outcome = self._fold()
        elif changed:
            self._outcome = self._renewed(outcome, changed)
        assert self._outcome is not None
        return self._outcome

    def said(self) -> tuple[tuple[str, Code], ...]:
        """Return the code of each plugin that was asked in the last run, in order; the same object while the outcome is."""
        if self._said is None or self._said[0] is not self._outcome:
            found = []
            for (plugin, _), answer in zip(self._plugins, self._answers, strict=True):
                found.append((plugin.name, answer.code if isinstance(answer, Status) else Code.SUCCESS))
                if isinstance(answer, Status) and answer.code is not Code.SKIP:
                    break
            self._said = (self._outcome, tuple(found))
        return self._said[1]

    def _renewed(self, before: PreScoreOutcome, changed: Sequence[int]) -> PreScoreOutcome:
        """Return an outcome with other params of some plugins."""
        outcome = PreScoreOutcome(before)
        outcome.params, outcome.skipped, outcome.failure = before.params.copy(), before.skipped, before.failure
        for number in changed:
            answer = self._answers[number]
            assert not isinstance(answer, Status)
            outcome.params[self._plugins[number][0].name] = answer or ()
        outcome.renewed = frozenset([self._plugins[number][0].name for number in changed])
        return outcome

    def _fold(self) -> PreScoreOutcome:
        outcome = PreScoreOutcome()
        for (plugin, _), answer in zip(self._plugins, self._answers, strict=True):
            if not isinstance(answer, Status):
                outcome.params[plugin.name] = answer or ()
            elif answer.code is Code.SKIP:
                outcome.skipped.add(plugin.name)
            else:
                outcome.failure = failed_pre_score(plugin, answer)
                break
        return outcome


def failed_pre_score(plugin: PreScorePlugin[Any], answer: Status) -> Status:
    """Return the Error with which a PreScore plugin ends scoring.

    Raises:
        PluginError: it has not failed: such a plugin must return params.
    """
    if answer.ok:
        wanted = "params, or a Status that skips or fails"
        hint = "'return ()' where there are no params"
        raise PluginError(f"{plugin.name}.pre_score", got="a Status of Success", wanted=wanted, hint=hint)
    return error(f'running PreScore plugin "{plugin.name}": {answer.message}').by(plugin.name)
