"""The queueing hints that an event runs for rejected pods: the registrations of all plugins, looked up once per event.

The effect of an event depends on the pod's profile and the plugins that rejected it: few combinations, which are cached.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from bayplan.engine.queued_pod import QueuedPod, Rejection, uid_of
from bayplan.framework.events import ClusterEvent, HintTable, QueueingHint
from bayplan.objects.pod import Pod


class Strategy(IntEnum):
    """The effect of an event on a pod; if several apply, the highest counts."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


SKIP, AFTER_BACKOFF, IMMEDIATELY = Strategy.SKIP, Strategy.AFTER_BACKOFF, Strategy.IMMEDIATELY


class Interest(NamedTuple):
    """The hints that an event runs for pods with one rejection.

    Attributes:
        pending: hints of the plugins that returned Pending for the pod.
        others: hints of the other plugins that rejected the pod.
        at_least: the minimum strategy, whatever the hints return: a plugin that registers an event without a hint
            function always wakes the pod.
    """

    pending: tuple[QueueingHint, ...]
    others: tuple[QueueingHint, ...]
    at_least: Strategy

    def evaluate(self, pod: Pod, old: object | None, new: object | None) -> Strategy:
        """Run the hints for a pod, and return the effect of the event on it. `old` and `new`: the changed object."""
        if self.at_least is IMMEDIATELY:
            return IMMEDIATELY
        for hint in self.pending:
            if hint(pod, old, new):
                return IMMEDIATELY
        if self.at_least is AFTER_BACKOFF:
            return AFTER_BACKOFF
        for hint in self.others:
            if hint(pod, old, new):
                return AFTER_BACKOFF
        return SKIP


ALL_AFTER_BACKOFF = Interest((), (), AFTER_BACKOFF)


class EventMatch:
    """The registrations that match one event.

    Attributes:
        of_interest: whether any plugin of any profile registered the event; always True for a wildcard.
        wildcard: whether the event concerns all pods.
        gating_plugins: the plugins of any profile that registered the event; a gated pod is considered only if its gate
            is one of them.
    """

    __slots__ = ("_hints", "_interests", "event", "gating_plugins", "of_interest", "wildcard")

    def __init__(self, event: ClusterEvent, table: HintTable) -> None:
        self.event = event
        self.wildcard = event.is_wildcard
        self._hints: dict[str, dict[str, list[QueueingHint | None]]] = {profile: {} for profile in table}
        for profile, registrations in table.items():
            for registered, plugin, hint in registrations:
                if registered.matches(event):
                    self._hints[profile].setdefault(plugin, []).append(hint)
        self.gating_plugins = frozenset(plugin for hints in self._hints.values() for plugin in hints)
        self.of_interest = self.wildcard or bool(self.gating_plugins)
        self._interests: dict[Rejection, Interest | None] = {}

    def interest(self, rejection: Rejection) -> Interest | None:
        """Return the hints to run for pods with this rejection; None if the event has no effect on them.

        A wildcard may concern only one pod; `strategy` checks that.
        """
        if rejection not in self._interests:
            self._interests[rejection] = self._find_interest(rejection)
        return self._interests[rejection]

    def _find_interest(self, rejection: Rejection) -> Interest | None:
        profile, unschedulable, pending = rejection
        hints = self._hints.get(profile)
        # Any event retries a pod that no plugin rejected, and any pod of a profile without registered hints.
        if self.wildcard or hints is None or not (unschedulable or pending):
            return ALL_AFTER_BACKOFF
        pending_hints = [hint for plugin, found in hints.items() if plugin in pending for hint in found]
        other_hints = [
            hint
            for plugin, found in hints.items()
            if plugin in unschedulable and plugin not in pending
            for hint in found
        ]
        if not pending_hints and not other_hints:
            return None
        at_least = IMMEDIATELY if None in pending_hints else AFTER_BACKOFF if None in other_hints else SKIP
        return Interest(
            tuple(hint for hint in pending_hints if hint is not None),
            tuple(hint for hint in other_hints if hint is not None),
            at_least,
        )

    def strategy(self, queued: QueuedPod, old: object | None, new: object | None) -> Strategy:
        """Return the effect of the event on a pod."""
        if self.wildcard and new is not None and not queued.failed_by_error:
            # A wildcard with an object concerns that pod only.
            return AFTER_BACKOFF if isinstance(new, Pod) and uid_of(new) == queued.uid else SKIP
        interest = self.interest(queued.rejection)
        return SKIP if interest is None else interest.evaluate(queued.pod, old, new)


class HintIndex:
    """Looks up the registrations of all profiles that match an event, and caches them by event."""

    __slots__ = ("_matches", "_table")

    def __init__(self, table: HintTable) -> None:
        self._table = {profile: tuple(registrations) for profile, registrations in table.items()}
        self._matches: dict[ClusterEvent, EventMatch] = {}

    def match(self, event: ClusterEvent) -> EventMatch:
        """Return the registrations that match an event."""
        match = self._matches.get(event)
        if match is None:
            match = self._matches[event] = EventMatch(event, self._table)
        return match
