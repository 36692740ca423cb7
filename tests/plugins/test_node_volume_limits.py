"""NodeVolumeLimits: what counts, shared volumes, in-tree volumes, missing drivers, errors, hints."""

import pytest
from msgspec.structs import replace

from bayplan.framework.events import HintAnswer
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import SKIP
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.node_volume_limits.plugin import (
    NodeVolumeLimits,
    is_schedulable_after_csi_node_updated,
    is_schedulable_after_pod_deleted,
)
from bayplan.state.cluster_state import ClusterState
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import Verdict, filters, pre_filter
from tests.plugins.volume_worlds import (
    Document,
    make,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    put,
    using,
    with_volumes,
)

NODES = [make_node("n1"), make_node("n2")]
EXCEEDED = ("Unschedulable", ("node(s) exceed max volume count",))
EBS: Document = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def csi(name: str, handle: str, driver: str = "csi.a") -> list[KubernetesObject]:
    """Return a volume of a driver, and a claim of the same name that is bound to it."""
    return [
        make_volume(name, spec={"csi": {"driver": driver, "volumeHandle": handle}}),
        make_claim(name, volume=name),
    ]


def cluster(limit: int | None, *objects: KubernetesObject, on_n1: tuple[Pod, ...] = ()) -> ClusterState:
    """Return two nodes, of which the first has a limit for csi.a and the drivers of EBS and Azure."""
    limits = {"csi.a": limit, "ebs.csi.aws.com": limit, "disk.csi.azure.com": limit}
    state = make_state(NODES, [(pod, "n1") for pod in on_n1])
    return put(state, make_csi_node("n1", limits), *objects)


def ask(state: ClusterState, pod: Pod, **gates: bool) -> dict[str, Verdict]:
    plugin = make_plugin(NodeVolumeLimits, state, **gates)
    answer = pre_filter(plugin, pod, state)
    assert isinstance(answer, PreFilterResult)
    found = filters(plugin, pod, state, answer.params)
    assert filters(plugin, pod, state, None) == found
    return found


def attachment(name: str, volume: str, node: str = "n1", attacher: str = "csi.a") -> KubernetesObject:
    source = {"persistentVolumeName": volume}
    return make("VolumeAttachment", name, {"spec": {"attacher": attacher, "nodeName": node, "source": source}})


@pytest.mark.parametrize(
    ("limit", "objects", "running", "pod", "want"),
    [
        pytest.param(1, csi("a", "1"), (), using("a"), False, id="room for one"),
        pytest.param(0, csi("a", "1"), (), using("a"), True, id="a limit of zero"),
        pytest.param(None, csi("a", "1"), (), using("a"), False, id="no limit"),
        pytest.param(
            1, csi("a", "1") + csi("b", "2"), (using("b", name="q"),), using("a"), True, id="another pod's volume"
        ),
        pytest.param(1, csi("a", "1"), (using("a", name="q"),), using("a"), False, id="a volume that already exists"),
        pytest.param(
            1, csi("a", "1") + csi("b", "1"), (using("b", name="q"),), using("a"), False, id="one handle of two volumes"
        ),
        pytest.param(1, csi("a", "1") + csi("b", "2"), (), using("a", "b"), True, id="two new volumes"),
        pytest.param(
            1,
            csi("a", "1") + csi("b", "2", "csi.b"),
            (using("b", name="q"),),
            using("a"),
            False,
            id="drivers are counted separately",
        ),
        pytest.param(
            1, [*csi("a", "1"), *csi("b", "2"), attachment("v", "b")], (), using("a"), True, id="attached to no pod"
        ),
        pytest.param(
            1,
            [*csi("a", "1"), *csi("b", "2"), attachment("v", "b", "n2")],
            (),
            using("a"),
            False,
            id="attached elsewhere",
        ),
        pytest.param(
            2,
            [*csi("a", "1"), *csi("b", "2"), attachment("v", "b")],
            (using("b", name="q"),),
            using("a"),
            False,
            id="an attached volume in use counts once",
        ),
        pytest.param(
            1,
            [*csi("a", "1"), attachment("v", "a")],
            (),
            using("a"),
            True,
            id="the pod's own attached volume counts twice",
        ),
        pytest.param(
            0, [make_claim("a", storage_class="x"), make_class("x", "csi.a")], (), using("a"), True, id="by its class"
        ),
        pytest.param(0, [make_claim("a", storage_class="x")], (), using("a"), False, id="a class that is gone"),
        pytest.param(
            0,
            [make_claim("a", storage_class="x", volume="gone"), make_class("x", "csi.a")],
            (),
            using("a"),
            True,
            id="by its class if the volume is gone",
        ),
        pytest.param(
            1,
            csi("a", "1"),
            (using("missing", name="q"),),
            using("a"),
            False,
            id="another pod's missing claim does not count",
        ),
        pytest.param(0, [], (), with_volumes(EBS), True, id="an inline EBS volume counts for its CSI driver"),
        pytest.param(
            1, [], (with_volumes(EBS, name="q"),), with_volumes(EBS), False, id="the same inline volume of two pods"
        ),
        pytest.param(
            0,
            [make_volume("a", spec=EBS), make_claim("a", volume="a")],
            (),
            using("a"),
            True,
            id="an in-tree volume counts for its CSI driver",
        ),
        pytest.param(
            0,
            [make_claim("a", storage_class="x"), make_class("x", "kubernetes.io/aws-ebs")],
            (),
            using("a"),
            True,
            id="an in-tree class counts for its CSI driver",
        ),
        pytest.param(
            0,
            [make_claim("a", storage_class="x"), make_class("x", "kubernetes.io/azure-file")],
            (),
            using("a"),
            False,
            id="Azure File is not counted",
        ),
    ],
)
def test_filter_rejects_nodes_whose_volume_limit_is_exceeded(
    limit: int | None, objects: list[KubernetesObject], running: tuple[Pod, ...], pod: Pod, want: bool
) -> None:
    assert ask(cluster(limit, *objects, on_n1=running), pod) == ({"n1": EXCEEDED} if want else {})


def test_pods_without_attachable_volumes_skip_the_filter() -> None:
    state = cluster(0)
    plugin = make_plugin(NodeVolumeLimits, state)
    assert pre_filter(plugin, with_volumes({"emptyDir": {}}, {"iscsi": {"iqn": "i"}}), state) == SKIP


def test_a_missing_claim_rejects_every_node() -> None:
    text = 'looking up PVC default/a: persistentvolumeclaim "a" not found'
    rejected = ("UnschedulableAndUnresolvable", (text,))
    assert ask(cluster(1), using("a")) == {"n1": rejected, "n2": rejected}


def test_an_untranslatable_volume_is_an_error_only_if_limits_are_compared() -> None:
    shared: Document = {"azureDisk": {"diskName": "d", "diskURI": "u"}}
    text = "converting volume(v0) from inline to csi: kind(Shared) is not supported in csi migration"
    assert ask(cluster(1), with_volumes(shared)) == {"n1": ("Error", (text,))}
    # Another pod's volume also causes an error, but only if limits are compared.
    state = cluster(1, *csi("a", "1"), on_n1=(with_volumes(shared, name="q"),))
    assert ask(state, using("a")) == {"n1": ("Error", (text,))}
    state = put(make_state(NODES, [(with_volumes(shared, name="q"), "n1")]), make_csi_node("n1", {}), *csi("a", "1"))
    assert ask(state, using("a")) == {}


def ephemeral(name: str, uid: str) -> Pod:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    return make_pod(name, uid=uid, volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}])


def test_claims_of_ephemeral_volumes_must_be_owned_by_their_pod() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "mine", "controller": True}]
    claim = make_claim("p-v", storage_class="x", meta={"ownerReferences": owners})
    state = cluster(0, claim, make_class("x", "csi.a"))
    assert ask(state, ephemeral("p", "mine")) == {"n1": EXCEEDED}
    text = "PVC default/p-v was not created for pod default/p (pod is not owner)"
    assert ask(state, ephemeral("p", "other")) == {"n1": ("Error", (text,)), "n2": ("Error", (text,))}
    plugin = make_plugin(NodeVolumeLimits, state)
    assert plugin.sign_pod(ephemeral("p", "mine")) != plugin.sign_pod(ephemeral("p", "other"))
    assert plugin.sign_pod(using("c")) is None


@pytest.mark.parametrize(
    ("gate", "opts_in", "want"),
    [
        pytest.param(True, True, True, id="the driver wants it"),
        pytest.param(True, False, False, id="the driver does not care"),
        pytest.param(False, True, False, id="gate off"),
    ],
)
def test_nodes_without_the_driver_are_rejected_if_it_opts_in(gate: bool, opts_in: bool, want: bool) -> None:
    driver = make("CSIDriver", "csi.a", {"spec": {"preventPodSchedulingIfMissing": opts_in}})
    missing = {"n2": ("Unschedulable", ("csi.a CSI driver is not installed on the node",))}
    found = ask(cluster(None, driver, *csi("a", "1")), using("a"), VolumeLimitScaling=gate)
    assert found == (missing if want else {})


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param({"a": 1}, {"a": 2}, HintAnswer.QUEUE, id="a limit grew"),
        pytest.param({"a": 2}, {"a": 1}, HintAnswer.SKIP, id="a limit shrank"),
        pytest.param({"a": 1}, {"a": None}, HintAnswer.SKIP, id="no limit counts as zero"),
        pytest.param({}, {"a": 1}, HintAnswer.QUEUE, id="a driver was added"),
    ],
)
def test_csi_node_hint_queues_if_a_limit_grew(
    before: dict[str, int | None], after: dict[str, int | None], want: HintAnswer
) -> None:
    csi_nodes = make_csi_node("n", before), make_csi_node("n", after)
    assert is_schedulable_after_csi_node_updated(using("c"), *csi_nodes) == want


@pytest.mark.parametrize(
    ("left", "node_name", "want"),
    [
        pytest.param(using("c"), "n1", HintAnswer.QUEUE, id="it had a claim"),
        pytest.param(with_volumes(EBS), "n1", HintAnswer.QUEUE, id="it had a migrated volume"),
        pytest.param(with_volumes({"emptyDir": {}}), "n1", HintAnswer.SKIP, id="a volume that does not count"),
        pytest.param(using("c"), "", HintAnswer.SKIP, id="it was on no node"),
    ],
)
def test_pod_deleted_hint_queues_if_the_pod_had_limited_volumes(left: Pod, node_name: str, want: HintAnswer) -> None:
    gone = replace(left, spec=replace(left.spec, node_name=node_name))
    assert is_schedulable_after_pod_deleted(using("c"), gone, None) == want
