"""Agents: programs beside the control plane that watch a simulated cluster and change it, such as an autoscaler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bayplan.sim.operations import Operation


class Agent(Protocol):
    """A program that looks at the cluster at times of its own; it reads the simulator that it was made with."""

    def next_wakeup_ns(self, changes: int) -> int | None:
        """Return when it wants to act; None: never, unless the cluster changes.

        Args:
            changes: grows with every change that could alter a decision.
        """
        ...

    def act(self, now_ns: int, changes: int) -> Sequence[tuple[int, Operation]]:
        """Return what it does, with times, now or later. Called once the cluster is at rest at that instant."""
        ...


class Agents:
    """The agents of a simulation, in the order in which they act."""

    def __init__(self) -> None:
        self._agents: list[Agent] = []

    def add(self, agent: Agent) -> None:
        """Add an agent."""
        self._agents.append(agent)

    def earlier(self, instant_ns: int | None, changes: int, now_ns: int) -> int | None:
        """Return when the next agent acts, not before now, if that is earlier than an instant; else the instant."""
        for agent in self._agents:
            wakeup_ns = agent.next_wakeup_ns(changes)
            if wakeup_ns is not None and (instant_ns is None or wakeup_ns < instant_ns):
                instant_ns = max(wakeup_ns, now_ns)
        return instant_ns

    def act(self, now_ns: int, changes: int) -> list[tuple[int, Operation]]:
        """Let the agents act whose time has come; return what they do."""
        found: list[tuple[int, Operation]] = []
        for agent in self._agents:
            wakeup_ns = agent.next_wakeup_ns(changes)
            if wakeup_ns is not None and wakeup_ns <= now_ns:
                found += agent.act(now_ns, changes)
        return found
