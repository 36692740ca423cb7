"""Patches of a pod's status contain only the difference, as a strategic merge patch."""

from __future__ import annotations

import pytest

from bayplan.client.pod_status import disruption_condition, status_patch, unscheduled_condition
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod, PodCondition, PodSpec, PodStatus

NOW_NS = 1_800_000_000_000_000_000
NOW, EARLIER = "2027-01-15T08:00:00Z", "2027-01-15T07:00:00Z"
WAITS = PodCondition(
    type="PodScheduled", status="False", reason="Unschedulable", message="no room", observed_generation=2,
    last_transition_time=EARLIER,
)  # fmt: skip
READY = PodCondition(type="Ready", status="True", last_transition_time=EARLIER)
WHOLE = {
    "lastProbeTime": None, "lastTransitionTime": NOW, "message": "no room", "observedGeneration": 2, "reason": "Unschedulable",
    "status": "False", "type": "PodScheduled",
}  # fmt: skip
ORDER = "$setElementOrder/conditions"


def pod(*conditions: PodCondition, nominated: str = "") -> Pod:
    status = PodStatus(conditions=conditions, nominated_node_name=nominated)
    return Pod(metadata=ObjectMeta(name="p", namespace="n", generation=2), spec=PodSpec(), status=status)


@pytest.mark.parametrize(
    ("before", "reason", "message", "nominated", "want"),
    [
        pytest.param(pod(), "Unschedulable", "no room", None, {"conditions": [WHOLE]}, id="the first condition is sent whole"),
        pytest.param(
            pod(READY), "Unschedulable", "no room", None,
            {ORDER: [{"type": "Ready"}, {"type": "PodScheduled"}], "conditions": [WHOLE]},
            id="a further condition is sent with the order of all",
        ),
        pytest.param(pod(WAITS), "Unschedulable", "no room", None, None, id="an equal condition changes nothing"),
        pytest.param(
            pod(WAITS), "Unschedulable", "still none", None,
            {ORDER: [{"type": "PodScheduled"}], "conditions": [{"message": "still none", "type": "PodScheduled"}]},
            id="another message leaves the time of the transition",
        ),
        pytest.param(
            pod(WAITS), "SchedulerError", "", None,
            {
                ORDER: [{"type": "PodScheduled"}],
                "conditions": [{"message": None, "reason": "SchedulerError", "type": "PodScheduled"}],
            },
            id="an empty field is removed",
        ),
        pytest.param(
            pod(WAITS), "Unschedulable", "no room", "n1", {"nominatedNodeName": "n1"}, id="a nomination is sent alone"
        ),
        pytest.param(
            pod(nominated="n1"), "Unschedulable", "no room", "", {"conditions": [WHOLE], "nominatedNodeName": None},
            id="both in one patch, the nomination cleared",
        ),
        pytest.param(pod(WAITS, nominated="n1"), "Unschedulable", "no room", "n1", None, id="both are already set"),
    ],
)  # fmt: skip
def test_a_status_patch_contains_only_the_difference(
    before: Pod, reason: str, message: str, nominated: str | None, want: object
) -> None:
    condition = unscheduled_condition(before, reason, message)
    found = status_patch(before, NOW_NS, condition=condition, nominated_node_name=nominated)
    assert found == (None if want is None else {"status": want})


def test_a_changed_condition_status_updates_last_transition_time() -> None:
    bound = PodCondition(type="PodScheduled", status="True", last_transition_time=EARLIER)
    patch = status_patch(pod(bound), NOW_NS, condition=unscheduled_condition(pod(), "Unschedulable", "no room"))
    change = {name: value for name, value in WHOLE.items() if name != "lastProbeTime"}
    assert patch == {"status": {ORDER: [{"type": "PodScheduled"}], "conditions": [change]}}


def test_a_changed_generation_alone_is_not_patched() -> None:
    newer = Pod(metadata=ObjectMeta(name="p", namespace="n", generation=3), status=PodStatus(conditions=(WAITS,)))
    assert status_patch(newer, NOW_NS, condition=unscheduled_condition(newer, "Unschedulable", "no room")) is None


def test_the_disruption_condition_of_a_victim_names_the_scheduler_and_reason() -> None:
    preemptor = Pod(spec=PodSpec(scheduler_name="second"))
    condition = disruption_condition(pod(), preemptor)
    assert condition.message == "second: preempting to accommodate a higher priority pod"
    assert (condition.type, condition.status, condition.reason) == ("DisruptionTarget", "True", "PreemptionByScheduler")
