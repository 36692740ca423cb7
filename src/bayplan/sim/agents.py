"""Agents: programs such as an autoscaler that watch a simulated cluster and change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bayplan.sim.operations import Operation


class Agent(Protocol):
    """A program that the simulator runs at the times that the program chooses."""

    def next_wakeup_ns(self, changes: int) -> int | None:
        """Return the time of its next action, or None if it has nothing to do until the cluster changes.

        Args:
            changes: the number of changes so far that could affect a decision.
        """
        ...

    def act(self, now_ns: int, changes: int) -> Sequence[tuple[int, Operation]]:
        """Return its actions and their times, now or later. Called when nothing else is left to do at that instant."""
        ...

    def endless_reason(self, given_ns: int) -> str:
        """Return why the agent would act forever; "" if it may stop.

        Args:
            given_ns: the time of the last operation that no agent has added.
        """
        ...


class Agents:
    """The agents of a simulation; they act in the order in which they were added."""

    def __init__(self) -> None:
        self._agents: list[Agent] = []

    def add(self, agent: Agent) -> None:
        """Add an agent."""
        self._agents.append(agent)

    def earlier(self, instant_ns: int | None, changes: int, now_ns: int) -> int | None:
        """Return the given instant, or when an agent acts next if that is earlier; never a time before now."""
        for agent in self._agents:
            wakeup_ns = agent.next_wakeup_ns(changes)
            if wakeup_ns is not None and (instant_ns is None or wakeup_ns < instant_ns):
                instant_ns = max(wakeup_ns, now_ns)
        return instant_ns

    def endless_reason(self, given_ns: int) -> str:
        """Return why one of the agents would act forever; "" if all may stop. See `Agent.endless_reason`."""
        return next((why for agent in self._agents if (why := agent.endless_reason(given_ns))), "")

    def act(self, now_ns: int, changes: int) -> list[tuple[int, Operation]]:
        """Run the agents whose time has come; return their actions."""
        found: list[tuple[int, Operation]] = []
        for agent in self._agents:
            wakeup_ns = agent.next_wakeup_ns(changes)
            if wakeup_ns is not None and wakeup_ns <= now_ns:
                found += agent.act(now_ns, changes)
        return found
