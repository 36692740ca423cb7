"""VolumeRestrictions: conflicting disks, ReadWriteOncePod claims, pods that are moved temporarily, hints."""

import pytest
from msgspec.structs import replace

from bayplan.framework.events import HintAnswer
from bayplan.framework.plugin import PROCEED, PreFilterResult, Reads
from bayplan.framework.status import SKIP, Status, unresolvable
from bayplan.objects.pod import Pod
from bayplan.plugins.volume_restrictions import CLAIM_IN_USE, DISK_CONFLICT, REASONS, STATE_MISSING, VolumeRestrictions
from tests.plugins.builders import make_node, make_plugin, make_state
from tests.plugins.forms import filters, pre_filter
from tests.plugins.volume_worlds import Document, make_claim, put, using, with_volumes

NODES = [make_node("n1"), make_node("n2")]


def gce(name: str = "d", *, reads: bool = False) -> Document:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": reads}}


def ebs(name: str = "d", *, reads: bool = False) -> Document:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": reads}}


def iscsi(name: str = "d", *, reads: bool = False, lun: int = 0) -> Document:
    return {"iscsi": {"targetPortal": "t", "iqn": name, "lun": lun, "readOnly": reads}}


def rbd(*monitors: str, image: str = "i", pool: str = "", reads: bool = False) -> Document:
    return {"rbd": {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": reads}}


@pytest.mark.parametrize(
    ("wanted", "mounted", "want"),
    [
        pytest.param(gce(), gce(), True, id="two writers of a GCE disk"),
        pytest.param(gce(reads=True), gce(), True, id="a reader and a writer"),
        pytest.param(gce(reads=True), gce(reads=True), False, id="two readers"),
        pytest.param(gce("a"), gce("b"), False, id="two GCE disks"),
        pytest.param(ebs(reads=True), ebs(reads=True), True, id="two readers of an EBS disk"),
        pytest.param(ebs("a"), ebs("b"), False, id="two EBS disks"),
        pytest.param(iscsi(), iscsi(lun=1), True, id="only the target's name identifies iSCSI disks"),
        pytest.param(iscsi(reads=True), iscsi(reads=True), False, id="two readers over iSCSI"),
        pytest.param(iscsi("a"), iscsi("b"), False, id="two iSCSI targets"),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3"), True, id="Ceph images that share a monitor"),
        pytest.param(rbd("m1"), rbd("m2"), False, id="Ceph images without a common monitor"),
        pytest.param(rbd("m"), rbd("m", image="j"), False, id="two Ceph images"),
        pytest.param(rbd("m"), rbd("m", pool="p"), False, id="two Ceph pools"),
        pytest.param(rbd("m"), rbd("m", pool="rbd"), True, id="the default pool is rbd"),
        pytest.param(rbd("m", reads=True), rbd("m", reads=True), False, id="two readers of a Ceph image"),
        pytest.param(gce(), ebs(), False, id="volumes of different kinds do not conflict"),
    ],
)
def test_filter_rejects_nodes_with_a_conflicting_disk(wanted: Document, mounted: Document, want: bool) -> None:
    state = make_state(NODES, [(with_volumes(mounted, name="q"), "n1")])
    plugin = make_plugin(VolumeRestrictions, state)
    pod = with_volumes(wanted)
    assert pre_filter(plugin, pod, state) == PROCEED
    rejected = {"n1": ("Unschedulable", (REASONS[DISK_CONFLICT],))}
    assert filters(plugin, pod, state) == (rejected if want else {})


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(with_volumes({"emptyDir": {}}), SKIP, id="neither disks nor claims"),
        pytest.param(using("shared"), SKIP, id="a claim for many"),
        pytest.param(using("free"), SKIP, id="an exclusive claim that is not in use"),
        pytest.param(using("gone"), unresolvable('persistentvolumeclaim "gone" not found'), id="a missing claim"),
        pytest.param(using("mine"), PreFilterResult((1, 1, ("mine",))), id="an exclusive claim in use"),
    ],
)
def test_pre_filter_skips_pods_without_restricted_volumes(pod: Pod, want: PreFilterResult | Status) -> None:
    claims = [make_claim(name, modes=["ReadWriteOncePod"]) for name in ("mine", "free")]
    state = put(make_state(NODES, [(using("mine", "shared", name="q"), "n1")]), make_claim("shared"), *claims)
    assert pre_filter(make_plugin(VolumeRestrictions, state), pod, state) == want


def test_pre_filter_reads_nothing_for_pods_without_claims() -> None:
    state = make_state(NODES)
    plugin = make_plugin(VolumeRestrictions, state)
    assert plugin.pre_filter_reads(plugin.compile(with_volumes(), state)) is Reads.NOTHING
    assert plugin.pre_filter_reads(plugin.compile(using("c"), state)) is Reads.OBJECTS


def test_an_exclusive_claim_in_use_rejects_every_node_until_its_pod_is_removed() -> None:
    state = put(make_state(NODES, [(using("c", name="q"), "n1")]), make_claim("c", modes=["ReadWriteOncePod"]))
    plugin = make_plugin(VolumeRestrictions, state)
    pod = using("c")
    spec = plugin.compile(pod, state)
    answer = pre_filter(plugin, pod, state)
    assert isinstance(answer, PreFilterResult)
    rejected = ("Unschedulable", (REASONS[CLAIM_IN_USE],))
    assert filters(plugin, pod, state, answer.params) == {"n1": rejected, "n2": rejected}
    with state.trial():
        state.remove_pod("default/q")
        assert filters(plugin, pod, state, plugin.params_after_changes(spec, answer.params, state)) == {}
    again = plugin.params_after_changes(spec, answer.params, state)
    assert filters(plugin, pod, state, again) == {"n1": rejected, "n2": rejected}


def test_a_pod_placed_in_a_trial_counts_for_claims_of_the_same_name_in_any_namespace() -> None:
    # This is upstream's behaviour: PreFilter counts pods by namespace, but later changes are counted by the claim's
    # name alone.
    other = using("c", name="q")
    other = replace(other, metadata=replace(other.metadata, namespace="other"))
    mine = make_claim("c", modes=["ReadWriteOncePod"])
    state = put(make_state(NODES, [(using("c", name="first"), "n1")]), mine)
    plugin = make_plugin(VolumeRestrictions, state)
    spec = plugin.compile(using("c"), state)
    answer = pre_filter(plugin, using("c"), state)
    assert isinstance(answer, PreFilterResult)
    with state.trial():
        state.place(state.pod_info(other), 0)
        assert plugin.params_after_changes(spec, answer.params, state) == (2, 1, ("c",))


def test_filter_without_pre_filter_compares_disks_and_is_otherwise_an_error() -> None:
    state = make_state(NODES, [(with_volumes(gce(), name="q"), "n1")])
    found = filters(make_plugin(VolumeRestrictions, state), with_volumes(gce()), state, None)
    assert found == {
        "n1": ("Unschedulable", (REASONS[DISK_CONFLICT],)),
        "n2": ("Error", (REASONS[STATE_MISSING],)),
    }


@pytest.mark.parametrize(
    ("pod", "left", "want"),
    [
        pytest.param(with_volumes(gce()), with_volumes(gce()), HintAnswer.QUEUE, id="it held the disk"),
        pytest.param(with_volumes(gce("a")), with_volumes(gce("b")), HintAnswer.SKIP, id="it held another disk"),
        pytest.param(using("c"), using("b", "c"), HintAnswer.QUEUE, id="it used the claim"),
        pytest.param(using("c"), using("b"), HintAnswer.SKIP, id="it used another claim"),
    ],
)
def test_pod_deleted_hint_queues_if_the_pod_used_the_same_disk_or_claim(pod: Pod, left: Pod, want: HintAnswer) -> None:
    plugin = make_plugin(VolumeRestrictions, make_state(NODES))
    assert plugin.is_schedulable_after_pod_deleted(pod, left, None) == want
    elsewhere = replace(left, metadata=replace(left.metadata, namespace="other"))
    assert plugin.is_schedulable_after_pod_deleted(pod, elsewhere, None) == HintAnswer.SKIP
