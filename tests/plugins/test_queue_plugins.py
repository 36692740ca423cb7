"""PrioritySort, SchedulingGates and DefaultBinder: results for a single pod."""

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import HintAnswer
from bayplan.framework.status import SUCCESS, Status, unresolvable
from bayplan.objects.pod import Pod
from bayplan.plugins.default_binder import DefaultBinder
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.plugins.scheduling_gates import SchedulingGates
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state


@pytest.mark.parametrize(
    ("queued", "want"),
    [
        pytest.param([("a", 1, 5), ("b", 2, 9)], "ba", id="the higher priority is first, even if it was added later"),
        pytest.param([("a", 1, 5), ("b", 1, 4)], "ba", id="among equals the pod that was queued first"),
        pytest.param([("a", None, 1), ("b", 0, 0)], "ba", id="no priority counts as 0"),
        pytest.param([("a", -1, 0), ("b", None, 9)], "ba", id="negative priorities are last"),
    ],
)
def test_pods_are_sorted_by_priority_then_time(queued: list[tuple[str, int | None, int]], want: str) -> None:
    plugin = make_plugin(PrioritySort, make_state([]))
    keys = {name: plugin.sort_key(make_pod(name, priority=priority), time) for name, priority, time in queued}
    assert "".join(sorted(keys, key=lambda name: keys[name])) == want


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        pytest.param([], SUCCESS, id="a pod without gates may enter"),
        pytest.param(["a"], unresolvable("waiting for scheduling gates: [a]"), id="one gate keeps it out"),
        pytest.param(
            ["b", "a"], unresolvable("waiting for scheduling gates: [b a]"), id="all gates are named in order"
        ),
    ],
)
def test_pre_enqueue_rejects_pods_with_scheduling_gates(gates: list[str], want: Status) -> None:
    pod = make_pod(schedulingGates=[{"name": gate} for gate in gates])
    assert make_plugin(SchedulingGates, make_state([])).pre_enqueue(pod) == want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(make_pod("p"), HintAnswer.QUEUE, id="its own gates were removed"),
        pytest.param(make_pod("other"), HintAnswer.SKIP, id="another pod's gates were removed"),
        pytest.param(make_node("n"), HintAnswer.ERROR, id="not a pod"),
        pytest.param(None, HintAnswer.ERROR, id="nothing new"),
    ],
)
def test_gates_hint_queues_only_the_pod_without_its_gates(new: object, want: HintAnswer) -> None:
    ((_, hint),) = make_plugin(SchedulingGates, make_state([])).events_to_register()
    assert hint is not None
    assert hint(make_pod("p"), make_pod("p"), new) is want


def test_default_binder_binds_every_pod() -> None:
    pod: Pod = make_pod()
    assert make_plugin(DefaultBinder, make_state([])).bind(CycleState(), pod, "n1") == SUCCESS
