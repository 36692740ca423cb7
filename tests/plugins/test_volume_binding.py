"""VolumeBinding: claims that reject a pod, volumes to bind or provision, the effects of Reserve, scores by capacity."""

import pytest
from msgspec.structs import replace

from bayplan.framework.configuration.plugin_arguments import UtilizationShapePoint, VolumeBindingArgs
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import SKIP, Status, error, unresolvable
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.volume_binding.matching import affinity_reach
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.state.cluster_state import ClusterState
from tests.oracle.volume_rules import BIND_CONFLICT, NODE_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_MISSING
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import Verdict, filters, pre_filter, scores, skips_score
from tests.plugins.volume_worlds import (
    SELECTED_NODE,
    ZONE,
    Document,
    make,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    put,
    using,
)

NODES = [make_node("n1", labels={"host": "n1", ZONE: "a"}), make_node("n2", labels={"host": "n2", ZONE: "b"})]
LATER = make_class("later")
STATIC = make_class("static", "kubernetes.io/no-provisioner")
UNRESOLVABLE = "UnschedulableAndUnresolvable"


def cluster(*objects: KubernetesObject) -> ClusterState:
    return put(make_state(NODES), LATER, STATIC, *objects)


def ask(plugin: VolumeBinding, pod: Pod) -> dict[str, Verdict]:
    state = plugin.handle.cluster
    answer = pre_filter(plugin, pod, state)
    assert isinstance(answer, PreFilterResult)
    return filters(plugin, pod, state, answer.params)


def reserve(plugin: VolumeBinding, pod: Pod, node_name: str) -> CycleState:
    cycle_state = CycleState()
    state = plugin.handle.cluster
    plugin.pre_filter(plugin.compile(pod, state), state, cycle_state)
    assert ask(plugin, pod).get(node_name) is None
    assert plugin.reserve(cycle_state, pod, node_name).ok
    return cycle_state


def ephemeral() -> Pod:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    return make_pod(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}])


@pytest.mark.parametrize(
    ("pod", "objects", "want"),
    [
        pytest.param(make_pod(), [], SKIP, id="no volumes"),
        pytest.param(using("c"), [], unresolvable('persistentvolumeclaim "c" not found'), id="no claim"),
        pytest.param(
            ephemeral(),
            [],
            unresolvable('waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'),
            id="no claim for an ephemeral volume yet",
        ),
        pytest.param(
            ephemeral(),
            [make_claim("p-v", storage_class="later")],
            unresolvable("PVC default/p-v was not created for pod default/p (pod is not owner)"),
            id="the claim of that name has another owner",
        ),
        pytest.param(
            using("c"),
            [make_claim(volume="pv", phase="Lost")],
            unresolvable('persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"'),
            id="a claim that lost its volume",
        ),
        pytest.param(
            using("c"),
            [make_claim(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            unresolvable('persistentvolumeclaim "c" is being deleted'),
            id="a claim that is being deleted",
        ),
        pytest.param(
            using("c"),
            [make_claim()],
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="no class",
        ),
        pytest.param(
            using("c"),
            [make_claim(storage_class="later", volume="pv", bound=False), make_volume("pv")],
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="bound in advance by a user: the volume controller's turn",
        ),
        pytest.param(
            using("c"),
            [make_claim(storage_class="now"), make_class("now", delayed=False)],
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="a class that binds at once",
        ),
    ],
)
def test_pre_filter_rejects_pods_with_missing_or_unbound_claims(
    pod: Pod, objects: list[KubernetesObject], want: Status
) -> None:
    state = cluster(*objects)
    assert pre_filter(make_plugin(VolumeBinding, state), pod, state) == want


IN_USE: Document = {"claimRef": {"namespace": "default", "name": "other"}}
SELECTOR: Document = {"selector": {"matchLabels": {"tier": "a"}}}


@pytest.mark.parametrize(
    ("claim", "volume", "want"),
    [
        pytest.param({}, {"nodes": ["n1"]}, "n2", id="reached from one node"),
        pytest.param({}, {}, "", id="reached from everywhere"),
        pytest.param({"size": "20Gi"}, {}, "n1 n2", id="too small"),
        pytest.param({}, {"storage_class": "later"}, "n1 n2", id="another class"),
        pytest.param({}, {"phase": "Released"}, "n1 n2", id="not available"),
        pytest.param(
            {}, {"phase": "Released", "spec": {"claimRef": {"namespace": "default", "name": "c"}}}, "", id="meant"
        ),
        pytest.param(
            {},
            {"nodes": ["n2"], "spec": {"claimRef": {"namespace": "default", "name": "c", "uid": "uid-c"}}},
            "n1",
            id="reserved for the claim, reached from one node",
        ),
        pytest.param(
            {},
            {"spec": {"claimRef": {"namespace": "default", "name": "c", "uid": "x"}}},
            "n1 n2",
            id="an older claim's",
        ),
        pytest.param({}, {"spec": IN_USE}, "n1 n2", id="another claim's"),
        pytest.param({"modes": ["ReadWriteMany"]}, {}, "n1 n2", id="another access mode"),
        pytest.param({"spec": {"volumeMode": "Block"}}, {}, "n1 n2", id="another volume mode"),
        pytest.param({"spec": {"volumeAttributesClassName": "gold"}}, {}, "n1 n2", id="another attributes class"),
        pytest.param({"spec": SELECTOR}, {"labels": {"tier": "a"}}, "", id="selected"),
        pytest.param({"spec": SELECTOR}, {"labels": {"tier": "b"}}, "n1 n2", id="not selected"),
    ],
)
def test_filter_requires_a_matching_reachable_volume(
    claim: dict[str, object], volume: dict[str, object], want: str
) -> None:
    mine = make_claim(**{"storage_class": "static", **claim})  # type: ignore[arg-type]
    state = cluster(mine, make_volume("pv", **{"storage_class": "static", **volume}))  # type: ignore[arg-type]
    assert ask(make_plugin(VolumeBinding, state), using("c")) == dict.fromkeys(
        want.split(), (UNRESOLVABLE, (BIND_CONFLICT,))
    )


def test_the_smallest_matching_volume_is_chosen_then_the_first_by_name() -> None:
    sizes = {"b": "2Gi", "a": "2048Mi", "large": "3Gi", "small": "1Mi"}
    volumes = [make_volume(name, size, storage_class="static") for name, size in sizes.items()]
    plugin = make_plugin(VolumeBinding, cluster(make_claim(storage_class="static"), *volumes))
    assert plugin.reserved(reserve(plugin, using("c"), "n1")) == {"volumes": {"default/c": "a"}, "provision": []}


def test_the_smallest_claim_chooses_first() -> None:
    claims = [make_claim("big", "5Gi", storage_class="static"), make_claim("small", "1Gi", storage_class="static")]
    volumes = [make_volume("v5", "5Gi", storage_class="static"), make_volume("v8", "8Gi", storage_class="static")]
    plugin = make_plugin(VolumeBinding, cluster(*claims, *volumes))
    taken = {"default/small": "v5", "default/big": "v8"}
    assert plugin.reserved(reserve(plugin, using("big", "small"), "n1"))["volumes"] == taken


@pytest.mark.parametrize(
    ("objects", "claims", "want"),
    [
        pytest.param(
            [make_claim(volume="pv"), make_volume("pv", nodes=["n1"])], "c", {"n2": [NODE_CONFLICT]}, id="bound"
        ),
        pytest.param(
            [make_claim(volume="pv")], "c", {"n1": [VOLUME_MISSING], "n2": [VOLUME_MISSING]}, id="bound to nothing"
        ),
        pytest.param(
            [make_claim("a", volume="v1"), make_volume("v1", nodes=["n1"]), make_claim("b", storage_class="static")],
            "a b",
            {"n1": [BIND_CONFLICT], "n2": [NODE_CONFLICT, BIND_CONFLICT]},
            id="one claim can't be reached, another has no volume",
        ),
        pytest.param(
            [make_claim(storage_class="later", annotations={SELECTED_NODE: "n2"})],
            "c",
            {"n1": [BIND_CONFLICT]},
            id="another node was selected",
        ),
        pytest.param([make_claim(storage_class="later")], "c", {}, id="provisioned on the node"),
    ],
)
def test_filter_reports_all_reasons_per_node(
    objects: list[KubernetesObject], claims: str, want: dict[str, list[str]]
) -> None:
    plugin = make_plugin(VolumeBinding, cluster(*objects))
    expected = {name: (UNRESOLVABLE, tuple(reasons)) for name, reasons in want.items()}
    assert ask(plugin, using(*claims.split())) == expected


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([], "", id="anywhere"),
        pytest.param([{ZONE: ["a"]}], "n2", id="one zone"),
        pytest.param([{ZONE: ["a"]}, {ZONE: ["b"]}], "", id="either of two"),
        pytest.param([{ZONE: ["a", "b"], "host": ["n2"]}], "n1", id="both labels of a term"),
        pytest.param([{}], "n1 n2", id="an empty term matches no node"),
        pytest.param([{ZONE: []}], "n1 n2", id="a requirement without values is a mistake"),
    ],
)
def test_allowed_topologies_limit_provisioning_to_their_nodes(terms: list[dict[str, list[str]]], want: str) -> None:
    topologies: list[Document] = [
        {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]} for term in terms
    ]
    plugin = make_plugin(VolumeBinding, cluster(make_claim(storage_class="x"), make_class("x", topologies=topologies)))
    assert ask(plugin, using("c")) == dict.fromkeys(want.split(), (UNRESOLVABLE, (BIND_CONFLICT,)))


TRACKS = make("CSIDriver", "csi.a", {"spec": {"storageCapacity": True}})


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([], "", id="a driver without capacity data"),
        pytest.param([TRACKS], "n1 n2", id="nothing is published"),
        pytest.param([TRACKS, make_capacity("k", "later", {}, capacity="1Gi")], "", id="just enough, everywhere"),
        pytest.param([TRACKS, make_capacity("k", "later", None, capacity="1Gi")], "n1 n2", id="nowhere"),
        pytest.param(
            [TRACKS, make_capacity("k", "later", {"matchLabels": {ZONE: "a"}}, capacity="1Gi")], "n2", id="in a zone"
        ),
        pytest.param([TRACKS, make_capacity("k", "later", {}, capacity="1Mi")], "n1 n2", id="not enough"),
        pytest.param([TRACKS, make_capacity("k", "other", {}, capacity="1Gi")], "n1 n2", id="another class"),
        pytest.param(
            [TRACKS, make_capacity("k", "later", {}, capacity="9Gi", maximumVolumeSize="1Mi")],
            "n1 n2",
            id="the largest volume counts",
        ),
        pytest.param([TRACKS, make_capacity("k", "later", {})], "n1 n2", id="no amount"),
    ],
)
def test_filter_rejects_nodes_without_enough_storage_capacity(objects: list[KubernetesObject], want: str) -> None:
    plugin = make_plugin(VolumeBinding, cluster(make_claim(storage_class="later"), *objects))
    assert ask(plugin, using("c")) == dict.fromkeys(want.split(), (UNRESOLVABLE, (NOT_ENOUGH_SPACE,)))


@pytest.mark.parametrize(
    ("migrated", "want"),
    [
        pytest.param("kubernetes.io/aws-ebs", {"n1": (UNRESOLVABLE, (NODE_CONFLICT,))}, id="the driver's zones count"),
        pytest.param("kubernetes.io/gce-pd", {}, id="another plugin is migrated"),
    ],
)
def test_migrated_in_tree_volumes_use_the_zones_of_their_csi_driver(migrated: str, want: dict[str, Verdict]) -> None:
    ebs: Document = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    volume = make_volume("pv", labels={ZONE: "a"}, spec=ebs)
    state = cluster(make_claim(volume="pv"), volume, make_csi_node("n1", {}, migrated=migrated))
    assert ask(make_plugin(VolumeBinding, state), using("c")) == want


def test_an_untranslatable_volume_is_an_error() -> None:
    disk: Document = {"azureDisk": {"diskName": "d", "diskURI": "u"}}
    objects = [make_claim(volume="pv"), make_volume("pv", spec=disk)]
    state = cluster(*objects, make_csi_node("n1", {}, migrated="kubernetes.io/azure-disk"))
    text = "could not translate pv: kind(Shared) is not supported in csi migration"
    assert ask(make_plugin(VolumeBinding, state), using("c")) == {"n1": ("Error", (text,))}


def test_missing_pre_filter_state_is_an_error_at_every_extension_point() -> None:
    state = cluster(make_claim())
    plugin = make_plugin(VolumeBinding, state, StorageCapacityScoring=True)
    assert filters(plugin, using("c"), state, None)["n1"] == ("Error", ("not found",))
    assert plugin.reserve(CycleState(), using("c"), "n1") == error("not found")
    spec = plugin.compile(using("c"), state)
    assert plugin.pre_score(spec, state, state.nodes.alive[:2]) == error("not found")


# Reserve.


def test_reserved_volumes_are_unavailable_to_later_pods_until_unreserved() -> None:
    claims = [make_claim(name, storage_class="static") for name in ("c", "d")]
    plugin = make_plugin(VolumeBinding, cluster(*claims, make_volume("pv", storage_class="static")))
    rejected = dict.fromkeys(["n1", "n2"], (UNRESOLVABLE, (BIND_CONFLICT,)))
    cycle_state = reserve(plugin, using("c"), "n1")
    assert ask(plugin, using("d")) == rejected
    assert ask(plugin, using("c")) == {}
    plugin.unreserve(cycle_state, using("c"), "n1")
    plugin.unreserve(cycle_state, using("c"), "n1")
    assert ask(plugin, using("d")) == {}


def test_changes_of_volumes_are_seen_by_later_pods() -> None:
    plugin = make_plugin(
        VolumeBinding, cluster(make_claim("c", storage_class="static"), make_claim("d", storage_class="static"))
    )
    state = plugin.handle.cluster
    rejected = dict.fromkeys(["n1", "n2"], (UNRESOLVABLE, (BIND_CONFLICT,)))
    assert ask(plugin, using("c")) == rejected
    put(state, *(make_volume(name, storage_class="static") for name in ("v", "w")))
    assert ask(plugin, using("c", "d")) == {}
    put(state, make_volume("w", storage_class="later"))
    assert ask(plugin, using("c", "d")) == rejected
    assert ask(plugin, using("c")) == {}
    state.catalog.remove(PersistentVolume, "v")
    assert ask(plugin, using("c")) == rejected
    put(state, make_volume("w", storage_class="static"))
    assert ask(plugin, using("c")) == {}


def test_equal_node_affinities_are_compiled_once() -> None:
    names = [f"pv-{number}" for number in range(20)]
    volumes = [make_volume(name, storage_class="static", nodes=("n1",)) for name in names]
    plugin = make_plugin(VolumeBinding, cluster(make_claim("c", storage_class="static"), *volumes))
    affinity_reach.cache_clear()
    assert ask(plugin, using("c")) == {"n2": (UNRESOLVABLE, (BIND_CONFLICT,))}
    assert affinity_reach.cache_info()[:2] == (19, 1)


def test_a_claim_reserved_for_provisioning_restricts_later_pods_to_its_node() -> None:
    plugin = make_plugin(VolumeBinding, cluster(make_claim(storage_class="later")))
    cycle_state = reserve(plugin, using("c"), "n1")
    assert plugin.reserved(cycle_state) == {"volumes": {}, "provision": ["default/c"]}
    assert ask(plugin, using("c", name="second")) == {"n2": (UNRESOLVABLE, (BIND_CONFLICT,))}


def test_an_assumed_claim_is_dropped_when_a_newer_version_arrives() -> None:
    claim = make_claim(storage_class="later", meta={"resourceVersion": "1"})
    assert isinstance(claim, PersistentVolumeClaim)
    plugin = make_plugin(VolumeBinding, cluster(claim))
    reserve(plugin, using("c"), "n1")
    catalog = plugin.handle.cluster.catalog
    catalog.put(claim.key, replace(claim))
    assert "n2" in ask(plugin, using("c"))
    catalog.put(claim.key, replace(claim, metadata=replace(claim.metadata, resource_version="2")))
    assert ask(plugin, using("c")) == {}


def test_updates_bind_volumes_and_annotate_claims_with_the_selected_node() -> None:
    claims = [make_claim("c", storage_class="static"), make_claim("d", storage_class="later")]
    plugin = make_plugin(VolumeBinding, cluster(*claims, make_volume("pv", storage_class="static")))
    cycle_state = reserve(plugin, using("c", "d"), "n1")
    assert plugin.pre_bind(cycle_state, using("c", "d"), "n1").ok
    volume, claim = plugin.updates(cycle_state)
    assert isinstance(volume, PersistentVolume)
    assert isinstance(claim, PersistentVolumeClaim)
    assert volume.spec.claim_ref is not None
    assert (volume.spec.claim_ref.name, volume.spec.claim_ref.uid) == ("c", "uid-c")
    assert volume.metadata.annotations["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert claim.metadata.annotations[SELECTED_NODE] == "n1"


def test_pods_with_bound_claims_need_no_updates() -> None:
    plugin = make_plugin(VolumeBinding, cluster(make_claim(volume="pv"), make_volume("pv")))
    cycle_state = reserve(plugin, using("c"), "n1")
    assert plugin.updates(cycle_state) == ()
    assert plugin.reserved(cycle_state) == {"volumes": {}, "provision": []}


# Score.

SHAPE = VolumeBindingArgs(shape=(UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)))


def test_the_score_is_skipped_if_the_gate_is_off() -> None:
    state = cluster(make_claim(storage_class="later"))
    assert skips_score(make_plugin(VolumeBinding, state, SHAPE), using("c"), state)


@pytest.mark.parametrize(
    ("objects", "claims", "want"),
    [
        pytest.param(
            [make_claim("a", "1Gi", storage_class="static"), make_volume("pv", "4Gi", storage_class="static")],
            "a",
            25,
            id="a volume that exists",
        ),
        pytest.param(
            [make_claim("a", "1Gi", storage_class="later"), TRACKS, make_capacity("k", "later", {}, capacity="2Gi")],
            "a",
            50,
            id="a volume to be provisioned",
        ),
        pytest.param(
            [
                make_claim("a", "1Gi", storage_class="later"),
                make_claim("b", "2Gi", storage_class="later"),
                TRACKS,
                make_capacity("k", "later", {}, capacity="4Gi"),
            ],
            "a b",
            75,
            id="two of a class share its capacity",
        ),
        pytest.param(
            [
                make_claim("a", "1Gi", storage_class="static"),
                make_volume("pv", "4Gi", storage_class="static"),
                make_claim("b", "2Gi", storage_class="later"),
                TRACKS,
                make_capacity("k", "later", {}, capacity="2Gi"),
            ],
            "a b",
            25,
            id="volumes to be provisioned don't count next to an existing one",
        ),
        pytest.param([make_claim("a", storage_class="later")], "a", 0, id="capacity is not known"),
        pytest.param([make_claim("a", volume="pv"), make_volume("pv")], "a", 0, id="bound claims don't count"),
    ],
)
def test_capacity_scores_follow_the_configured_shape(objects: list[KubernetesObject], claims: str, want: int) -> None:
    state = cluster(*objects)
    plugin = make_plugin(VolumeBinding, state, SHAPE, StorageCapacityScoring=True)
    pod = using(*claims.split())
    assert ask(plugin, pod) == {}
    params = plugin.pre_score(plugin.compile(pod, state), state, state.nodes.alive[:2])
    assert isinstance(params, tuple)
    assert scores(plugin, pod, state, params) == {"n1": want, "n2": want}
