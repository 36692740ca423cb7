"""Run custom plugins in trials (forks, questions): each call has a time limit, and the first that exceeds it ends the trial.

Each trial has a separate runner, so its failures do not count as failures of the running scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bayplan.base.errors import BayplanError, PluginFailure
from bayplan.live.plugin_runner import DEFAULT_DEADLINE_SECONDS, PluginRunner

T = TypeVar("T")


class TrialEnded(BayplanError):
    """A trial can't continue: a plugin call took too long, or the result is no longer needed."""


class TrialRunner(PluginRunner):
    """Calls plugin code in one trial.

    Args:
        deadline_seconds: the time limit for one call.
        is_wanted: returns whether the result is still needed.

    Attributes:
        over: whether the trial is over. Failures then only raise PluginFailure.
    """

    def __init__(self, deadline_seconds: float, is_wanted: Callable[[], bool] = lambda: True) -> None:
        super().__init__(deadline_seconds)
        self.over = False
        self._is_wanted = is_wanted
        self._ended_by = ""

    def call(self, plugin: str, point: str, function: Callable[..., T], *arguments: Any) -> T:
        """Call a plugin's function, and return its result.

        Raises:
            PluginFailure: the function raised an exception.
            TrialEnded: this or an earlier call took too long, or the result is no longer needed.
        """
        if self.over:
            return super().call(plugin, point, function, *arguments)
        if self._ended_by:
            raise TrialEnded(self._ended_by)
        if not self._is_wanted():
            raise TrialEnded("stopped before it was done")
        try:
            return super().call(plugin, point, function, *arguments)
        except PluginFailure as failure:
            incidents = self.incidents()
            if not incidents or not incidents[-1].overran:
                raise
            self._ended_by = str(failure)
            raise TrialEnded(self._ended_by) from failure


def deadline_of(runner: PluginRunner | None) -> float:
    """Return the time limit for a call of a custom plugin in the running scheduler, in seconds."""
    return DEFAULT_DEADLINE_SECONDS if runner is None else runner.deadline_seconds
