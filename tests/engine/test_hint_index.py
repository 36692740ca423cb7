"""Which hints an event calls for which rejected pods, and the effects of their results."""

from __future__ import annotations

import pytest

from bayplan.engine.hint_index import AFTER_BACKOFF, IMMEDIATELY, SKIP, HintIndex, Strategy
from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.events import ASSIGNED_POD_DELETE, FORCE_ACTIVATE, NODE_ADD, HintAnswer, QueueingHint
from bayplan.objects.pod import Pod
from tests.engine.queue_pods import NODE_LABEL, PROFILE, pod


def saying(answer: HintAnswer | bool) -> QueueingHint:
    return lambda pod, old, new: answer


SAYS: dict[str, list[QueueingHint | None]] = {
    "skips": [saying(False)],
    "queues": [saying(True)],
    "can't tell": [saying(HintAnswer.ERROR)],
    "has no hint": [None],
    "queues in the end": [saying(HintAnswer.SKIP), saying(HintAnswer.QUEUE)],
}
INDEX = HintIndex({PROFILE: [(NODE_ADD, plugin, hint) for plugin, hints in SAYS.items() for hint in hints]})


def strategy(
    *, rejecting: tuple[str, ...] = (), pending: tuple[str, ...] = (), event: object = NODE_ADD, new: Pod | None = None
) -> Strategy:
    queued = QueuedPod(pod("a"), "default/a", "uid-a", 0, 0)
    queued.unschedulable_plugins, queued.pending_plugins = frozenset(rejecting), frozenset(pending)
    assert event in (NODE_ADD, FORCE_ACTIVATE)
    return INDEX.match(NODE_ADD if event == NODE_ADD else FORCE_ACTIVATE).strategy(queued, None, new)


STRATEGIES: list[tuple[str, tuple[str, ...], tuple[str, ...], Strategy]] = [
    ("no plugin rejected the pod", (), (), AFTER_BACKOFF),
    ("its plugin skips", ("skips",), (), SKIP),
    ("its plugin queues", ("queues",), (), AFTER_BACKOFF),
    ("its plugin can't tell", ("can't tell",), (), AFTER_BACKOFF),
    ("its plugin has no hint", ("has no hint",), (), AFTER_BACKOFF),
    ("the second hint of its plugin queues", ("queues in the end",), (), AFTER_BACKOFF),
    ("its plugin did not register the event", ("another",), (), SKIP),
    ("one of two queues", ("skips", "queues"), (), AFTER_BACKOFF),
    ("it is pending, and its plugin skips", (), ("skips",), SKIP),
    ("it is pending, and its plugin queues", (), ("queues",), IMMEDIATELY),
    ("it is pending, and its plugin has no hint", (), ("has no hint",), IMMEDIATELY),
    ("it is pending for one that skips, another queues", ("queues",), ("skips",), AFTER_BACKOFF),
    ("it is pending for one that queues, another skips", ("skips",), ("queues",), IMMEDIATELY),
    ("rejected and pending by the same plugin", ("queues",), ("queues",), IMMEDIATELY),
]


@pytest.mark.parametrize(
    ("rejecting", "pending", "want"), [row[1:] for row in STRATEGIES], ids=[row[0] for row in STRATEGIES]
)
def test_hints_of_the_rejecting_plugins_choose_the_strategy(
    rejecting: tuple[str, ...], pending: tuple[str, ...], want: Strategy
) -> None:
    assert strategy(rejecting=rejecting, pending=pending) is want


WILDCARDS: list[tuple[str, Pod | None, Strategy]] = [
    ("meant for all", None, AFTER_BACKOFF),
    ("meant for the pod", pod("a"), AFTER_BACKOFF),
    ("meant for another pod", pod("b"), SKIP),
    ("meant for a pod of the same name", pod("a", uid="other"), SKIP),
]


@pytest.mark.parametrize(("new", "want"), [row[1:] for row in WILDCARDS], ids=[row[0] for row in WILDCARDS])
def test_a_wildcard_event_calls_no_hint(new: Pod | None, want: Strategy) -> None:
    assert strategy(pending=("skips",), event=FORCE_ACTIVATE, new=new) is want


def test_an_event_is_of_interest_if_any_profile_registered_it() -> None:
    index = HintIndex({PROFILE: [], "other": [(NODE_ADD, "P", None)]})
    events = (NODE_ADD, NODE_LABEL, ASSIGNED_POD_DELETE, FORCE_ACTIVATE)
    assert [index.match(event).of_interest for event in events] == [True, False, False, True]
    assert index.match(NODE_ADD).gating_plugins == {"P"}
    assert not index.match(NODE_ADD).hints_for((PROFILE, frozenset("P"), frozenset()))
