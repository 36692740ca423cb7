"""Runs custom plugins in trials (forks, remedies): a call ends at its deadline, and the first that is cut off ends the trial.

Each trial has a runner of its own: what goes wrong in it counts neither as a failure of the scheduler that runs nor against it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bayplan.base.errors import BayplanError, PluginFailure
from bayplan.framework.registry import Registry
from bayplan.live.plugin_guard import GuardedRegistry
from bayplan.live.plugin_runner import DEFAULT_DEADLINE_SECONDS, PluginRunner

T = TypeVar("T")


class TrialEnded(BayplanError):
    """A trial can't go on: a plugin had to be cut off, or nobody wants it any more."""


class TrialRunner(PluginRunner):
    """Calls plugins' code in one trial.

    Args:
        deadline_seconds: how long one call may take.
        is_wanted: says whether the trial is still wanted.

    Attributes:
        over: whether the trial is: then failures are told, and nothing is ended.
    """

    def __init__(self, deadline_seconds: float, is_wanted: Callable[[], bool] = lambda: True) -> None:
        super().__init__(deadline_seconds)
        self.over = False
        self._is_wanted = is_wanted
        self._ended_by = ""

    def call(self, plugin: str, point: str, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a plugin's function returns.

        Raises:
            PluginFailure: it raised.
            TrialEnded: it took too long, or another call did before; or the trial is not wanted.
        """
        if self.over:
            return super().call(plugin, point, function, *arguments)
        if self._ended_by:
            raise TrialEnded(self._ended_by)
        if not self._is_wanted():
            raise TrialEnded("ended before it was done")
        try:
            return super().call(plugin, point, function, *arguments)
        except PluginFailure as failure:
            incidents = self.incidents()
            if not incidents or not incidents[-1].overran:
                raise
            self._ended_by = str(failure)
            raise TrialEnded(self._ended_by) from failure

    @property
    def ended_by(self) -> str:
        """What was cut off, or the empty text."""
        return self._ended_by


def deadline_of(registry: Registry) -> float:
    """Return how long a call of a custom plugin may take where the scheduler runs, in seconds."""
    if isinstance(registry, GuardedRegistry):
        return registry.runner.deadline_seconds
    return DEFAULT_DEADLINE_SECONDS
