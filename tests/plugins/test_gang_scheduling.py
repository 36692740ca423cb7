"""GangScheduling: pods wait for their group, and events that may complete it wake them."""

import pytest

from bayplan.engine.assemble import assemble_scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import HintAnswer
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.status import SUCCESS, Status, unresolvable
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodGroup
from bayplan.plugins.gang_scheduling import GangScheduling
from bayplan.plugins.registry import in_tree_registry
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state

GATES = {"GenericWorkload": True, "GangScheduling": True}
WAITING = 'waiting for pods\'s pod group "g" to appear in scheduling queue'


def member(name: str = "p", group: str = "g") -> Pod:
    return make_pod(name, schedulingGroup={"podGroupName": group})


def pod_group(name: str = "g", namespace: str = "default") -> PodGroup:
    return PodGroup(metadata=ObjectMeta(name=name, namespace=namespace))


@pytest.mark.parametrize(
    ("pod", "groups", "want"),
    [
        pytest.param(make_pod(), [], SUCCESS, id="a pod without group may enter"),
        pytest.param(member(), [], unresolvable(WAITING), id="a missing group keeps it out"),
        pytest.param(member(), [pod_group()], SUCCESS, id="its group lets it in"),
        pytest.param(member(), [pod_group("h")], unresolvable(WAITING), id="another group does not"),
        pytest.param(
            member(),
            [pod_group("g", "other")],
            unresolvable(WAITING),
            id="a group of another namespace does not let it in",
        ),
    ],
)
def test_pre_enqueue_rejects_a_pod_until_its_group_exists(pod: Pod, groups: list[PodGroup], want: Status) -> None:
    state = make_state([])
    for group in groups:
        state.catalog.put(group.key, group)
    assert make_plugin(GangScheduling, state, **GATES).pre_enqueue(pod) == want


@pytest.mark.parametrize(
    ("pod", "new", "want"),
    [
        pytest.param(member(), member("q"), HintAnswer.QUEUE, id="a pod of the same group was added"),
        pytest.param(member(), member("q", "h"), HintAnswer.SKIP, id="a pod of another group was added"),
        pytest.param(member(), make_pod("q"), HintAnswer.SKIP, id="a pod without group was added"),
        pytest.param(make_pod(), make_pod("q"), HintAnswer.SKIP, id="two pods without group have none in common"),
        pytest.param(member(), make_node(), HintAnswer.ERROR, id="not a pod"),
        pytest.param(member(), None, HintAnswer.ERROR, id="nothing new"),
    ],
)
def test_pod_hint_queues_members_of_the_added_pods_group(pod: Pod, new: object, want: HintAnswer) -> None:
    (_, hint), _ = make_plugin(GangScheduling, make_state([]), **GATES).events_to_register()
    assert hint is not None
    assert hint(pod, None, new) is want


@pytest.mark.parametrize(
    ("pod", "new", "want"),
    [
        pytest.param(member(), pod_group(), HintAnswer.QUEUE, id="the group was added"),
        pytest.param(member(), pod_group("h"), HintAnswer.SKIP, id="another group was added"),
        pytest.param(member(), pod_group("g", "other"), HintAnswer.SKIP, id="a group of another namespace was added"),
        pytest.param(make_pod(), pod_group(), HintAnswer.SKIP, id="the pod waits for no group"),
        pytest.param(member(), make_pod(), HintAnswer.ERROR, id="not a group"),
        pytest.param(member(), None, HintAnswer.ERROR, id="no new object"),
    ],
)
def test_pod_group_hint_queues_members_of_the_added_group(pod: Pod, new: object, want: HintAnswer) -> None:
    _, (_, hint) = make_plugin(GangScheduling, make_state([]), **GATES).events_to_register()
    assert hint is not None
    assert hint(pod, None, new) is want


def test_permit_never_waits() -> None:
    plugin = make_plugin(GangScheduling, make_state([]), **GATES)
    assert plugin.permit(CycleState(), member(), "n1") == (SUCCESS, 0)


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        pytest.param({}, (), id="off, as in the release"),
        pytest.param(
            GATES, ("GangScheduling",), id="on: named among what this version lacks, since it does a part only"
        ),
    ],
)
def test_missing_plugins_include_gang_scheduling_if_its_gate_is_on(
    gates: dict[str, bool], want: tuple[str, ...]
) -> None:
    feature_gates = FeatureGates.from_mapping(gates)
    scheduler = assemble_scheduler(
        default_configuration(feature_gates), in_tree_registry(), feature_gates=feature_gates
    )
    assert scheduler.missing_plugins == want
