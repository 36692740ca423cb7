"""The queueing hints that an event runs for rejected pods: the registrations of all plugins, looked up once per event.

The effect of an event depends on the pod's profile and the plugins that rejected it: few combinations, which are cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TypeAlias

from bayplan.engine.queued_pod import QueuedPod, Rejection, uid_of
from bayplan.engine.unschedulable_pods import RejectionGroup
from bayplan.framework.events import ClusterEvent, HintTable, ObjectChange, QueueingHint
from bayplan.objects.pod import Pod


class Strategy(IntEnum):
    """The effect of an event on a pod; if several apply, the highest counts."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


SKIP, AFTER_BACKOFF, IMMEDIATELY = Strategy.SKIP, Strategy.AFTER_BACKOFF, Strategy.IMMEDIATELY

Hints: TypeAlias = Sequence[tuple[Strategy, QueueingHint | None]]
"""The hints to run for a pod, in order: the first that returns true decides. None always does."""

_ALWAYS: Hints = ((AFTER_BACKOFF, None),)


class EventMatch:
    """The registrations that match one event.

    Attributes:
        of_interest: whether any plugin of any profile registered the event; always True for a wildcard.
        gating_plugins: the plugins of any profile that registered the event; a gated pod is considered only if its gate
            is one of them.
        label: the label of the event.
    """

    def __init__(self, event: ClusterEvent, table: HintTable) -> None:
        self.event, self.label = event, event.label
        self._matching = {
            profile: [(plugin, hint) for registered, plugin, hint in registrations if registered.matches(event)]
            for profile, registrations in table.items()
        }
        self.gating_plugins = frozenset(plugin for found in self._matching.values() for plugin, _ in found)
        self.of_interest = event.is_wildcard or bool(self.gating_plugins)
        self._hints: dict[Rejection, Hints] = {}

    def hints_for(self, rejection: Rejection) -> Hints:
        """Return the hints to run for pods with this rejection; empty if the event has no effect on them."""
        hints = self._hints.get(rejection)
        if hints is None:
            hints = self._hints[rejection] = self._find_hints(rejection)
        return hints

    def _find_hints(self, rejection: Rejection) -> Hints:
        profile, unschedulable, pending = rejection
        # Any event retries a pod that no plugin rejected, and any pod of a profile without registered hints.
        if not (unschedulable or pending):
            return _ALWAYS
        if self.event.is_wildcard:
            return ((AFTER_BACKOFF, _concerns),)
        matching = self._matching.get(profile)
        if matching is None:
            return _ALWAYS
        found = [
            (IMMEDIATELY if plugin in pending else AFTER_BACKOFF, hint)
            for plugin, hint in matching
            if plugin in pending or plugin in unschedulable
        ]
        return sorted(found, key=lambda each: (-each[0], each[1] is not None))

    def strategy(self, queued: QueuedPod, old: object | None, new: object | None) -> Strategy:
        """Return the effect of the event on a pod. `old` and `new` are the changed object."""
        for strategy, hint in self.hints_for(queued.rejection):
            if hint is None or hint(queued.pod, old, new):
                return strategy
        return SKIP

    def movers(self, group: RejectionGroup, old: object | None, new: object | None) -> list[tuple[QueuedPod, Strategy]]:
        """Return the pods of a group that the event has an effect on."""
        found: list[tuple[QueuedPod, Strategy]] = []
        hints = self.hints_for(group.rejection)
        # In a large cluster, one hint runs for thousands of pods.
        for queued in group.members.values() if hints else ():
            for strategy, hint in hints:
                if hint is None or hint(queued.pod, old, new):
                    found.append((queued, strategy))
                    break
        return found


def _concerns(pod: Pod, old: object | None, new: object | None) -> bool:
    """Return whether a wildcard event concerns a pod: with an object, it concerns that pod only."""
    return new is None or (isinstance(new, Pod) and uid_of(new) == uid_of(pod))


class HintIndex:
    """Looks up the registrations of all profiles that match an event, and caches them by event."""

    def __init__(self, table: HintTable) -> None:
        self._table = {profile: tuple(registrations) for profile, registrations in table.items()}
        self._matches: dict[ClusterEvent, EventMatch] = {}

    def match(self, event: ClusterEvent) -> EventMatch:
        """Return the registrations that match an event."""
        match = self._matches.get(event)
        if match is None:
            match = self._matches[event] = EventMatch(event, self._table)
        return match

    def strategy(self, queued: QueuedPod, happened: Iterable[ObjectChange]) -> Strategy:
        """Return the strongest effect of several events on a pod."""
        best = SKIP
        for each in happened:
            best = max(best, self.match(each.event).strategy(queued, each.old, each.new))
            # Without pending plugins, no better strategy is possible.
            if best is IMMEDIATELY or (best is AFTER_BACKOFF and not queued.pending_plugins):
                break
        return best
