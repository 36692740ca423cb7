"""VolumeZone: labels of volumes compared with labels of nodes, claims that cannot be resolved, hints."""

import pytest

from bayplan.framework.events import HintAnswer
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import SKIP, Status, unresolvable
from bayplan.objects.meta import KubernetesObject
from bayplan.plugins.volume_zone import REASON, VolumeZone
from tests.plugins.builders import make_node, make_plugin, make_state
from tests.plugins.forms import filters, pre_filter
from tests.plugins.volume_worlds import make_claim, make_class, make_volume, put, using

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
NODES = [
    make_node("a", labels={ZONE: "a", REGION: "r"}),
    make_node("b", labels={ZONE: "b", REGION: "r"}),
    make_node("old", labels={OLD_ZONE: "a"}),
    make_node("region", labels={REGION: "r"}),
    make_node("none", labels={"other": "a"}),
]


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({ZONE: "a"}, "b old region", id="a zone: nodes without any zone or region pass"),
        pytest.param({ZONE: "a__b"}, "old region", id="one of several zones"),
        pytest.param({ZONE: " a __ b "}, "old region", id="spaces around zones don't count"),
        pytest.param({ZONE: "a__"}, "", id="a list with an empty zone is ignored"),
        pytest.param({ZONE: ""}, "", id="an empty zone is ignored"),
        pytest.param({OLD_ZONE: "a"}, "b region", id="the old label also means the new one"),
        pytest.param({REGION: "r"}, "old", id="a region"),
        pytest.param({OLD_REGION: "r"}, "old", id="the old label of regions"),
        pytest.param({ZONE: "b", REGION: "r"}, "a old region", id="zone and region"),
        pytest.param({ZONE: "c"}, "a b old region", id="a zone that no node has"),
    ],
)
def test_filter_rejects_nodes_outside_the_zones_of_the_volume(labels: dict[str, str], want: str) -> None:
    state = put(make_state(NODES), make_claim(volume="pv"), make_volume("pv", labels=labels))
    plugin = make_plugin(VolumeZone, state)
    answer = pre_filter(plugin, using("c"), state)
    params = answer.params if isinstance(answer, PreFilterResult) else ()
    rejected = dict.fromkeys(want.split(), ("UnschedulableAndUnresolvable", (REASON,)))
    assert filters(plugin, using("c"), state, params) == rejected
    # Without the result of PreFilter, Filter computes the same itself.
    assert filters(plugin, using("c"), state, None) == rejected


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([], unresolvable('persistentvolumeclaim "c" not found'), id="no claim"),
        pytest.param(
            [make_claim(volume="pv")], unresolvable('persistentvolume "pv" not found'), id="a volume that is gone"
        ),
        pytest.param(
            [make_claim()],
            unresolvable("PersistentVolumeClaim had no pv name and storageClass name"),
            id="neither volume nor class",
        ),
        pytest.param(
            [make_claim(storage_class="x")],
            unresolvable('storageclass.storage.k8s.io "x" not found'),
            id="a class that is gone",
        ),
        pytest.param(
            [make_claim(storage_class="now"), make_class("now", delayed=False)],
            unresolvable("PersistentVolume had no name"),
            id="a claim that should have been bound",
        ),
        pytest.param([make_claim(storage_class="later"), make_class("later")], SKIP, id="a claim that waits"),
        pytest.param([make_claim(volume="pv"), make_volume("pv")], SKIP, id="a volume without zones"),
    ],
)
def test_pre_filter_and_filter_reject_unresolvable_claims_with_the_same_reason(
    objects: list[KubernetesObject], want: Status
) -> None:
    state = put(make_state(NODES), *objects)
    plugin = make_plugin(VolumeZone, state)
    assert pre_filter(plugin, using("c"), state) == want
    reported = (
        {} if want is SKIP else dict.fromkeys([node.metadata.name for node in NODES], (want.code.text, want.reasons))
    )
    assert filters(plugin, using("c"), state, None) == reported


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(None, make_volume("pv"), HintAnswer.QUEUE, id="a new volume"),
        pytest.param(make_volume("pv"), make_volume("pv", labels={ZONE: "a"}), HintAnswer.QUEUE, id="a zone was added"),
        pytest.param(
            make_volume("pv", labels={ZONE: "a__b"}),
            make_volume("pv", labels={ZONE: "b__a", "x": "y"}),
            HintAnswer.SKIP,
            id="the same zones in another order",
        ),
        pytest.param(make_claim(), make_volume("pv"), HintAnswer.ERROR, id="not two volumes"),
    ],
)
def test_volume_hint_queues_if_the_zones_of_a_volume_changed(
    before: KubernetesObject | None, after: KubernetesObject, want: HintAnswer
) -> None:
    plugin = make_plugin(VolumeZone, make_state(NODES))
    assert plugin.is_schedulable_after_persistent_volume_change(using("c"), before, after) == want
