"""Effects of the scheduler's writes to volumes and claims: claims get bound, volumes created; pods find them."""

from bayplan.cluster.volume_controller import volume_writes
from bayplan.library import Cluster
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.state.object_catalog import ObjectCatalog
from tests.plugins.builders import make_node
from tests.plugins.volume_worlds import (
    SELECTED_NODE,
    ZONE,
    Document,
    make,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    using,
)

NODE = make_node("n1", labels={ZONE: "a", "host": "n1"})
DRIVERS = make("CSINode", "n1", {"spec": {"drivers": [{"name": "csi.a", "nodeID": "x", "topologyKeys": [ZONE]}]}})


def writes(item: KubernetesObject, *objects: KubernetesObject, node: Node | None = NODE) -> list[KubernetesObject]:
    catalog = ObjectCatalog()
    for known in objects:
        catalog.put(known.key, known)
    return volume_writes(item, catalog, node)


def test_a_volume_with_a_claim_reference_is_bound_to_the_claim() -> None:
    reference: Document = {"claimRef": {"namespace": "default", "name": "c"}}
    volume, claim = writes(make_volume("pv", "5Gi", spec=reference), make_claim(storage_class="x"))
    assert isinstance(volume, PersistentVolume)
    assert isinstance(claim, PersistentVolumeClaim)
    assert (volume.status.phase, claim.status.phase, claim.spec.volume_name) == ("Bound", "Bound", "pv")
    assert claim.metadata.annotations["pv.kubernetes.io/bind-completed"] == "yes"
    assert claim.status.capacity == {"storage": "5Gi"}


def test_a_claim_with_a_selected_node_gets_a_volume_accessible_from_the_node() -> None:
    wanted = make_claim(size="3Gi", storage_class="x", annotations={SELECTED_NODE: "n1"})
    volume, claim = writes(wanted, make_class("x", "csi.a"), DRIVERS)
    assert isinstance(volume, PersistentVolume)
    assert isinstance(claim, PersistentVolumeClaim)
    assert claim.spec.volume_name == volume.metadata.name == "pvc-uid-c"
    assert (volume.spec.capacity, volume.spec.storage_class_name) == ({"storage": "3Gi"}, "x")
    affinity = volume.spec.node_affinity
    assert affinity is not None
    assert affinity.required is not None
    (term,) = affinity.required.node_selector_terms
    assert [(item.key, item.values) for item in term.match_expressions] == [(ZONE, ("a",))]


def test_a_claim_with_a_missing_class_is_written_unchanged() -> None:
    wanted = make_claim(storage_class="gone", annotations={SELECTED_NODE: "n1"})
    assert writes(wanted) == [wanted]


def test_pods_use_existing_volumes_and_then_provision_new_ones_up_to_the_csi_limit() -> None:
    nodes = [make_node(name, labels={"host": name}) for name in ("n1", "n2")]
    limits = [make_csi_node("n1", {"csi.a": 1}), make_csi_node("n2", {"csi.a": 1})]
    claims = [make_claim(f"c{number}", storage_class="x") for number in range(4)]
    volume = make_volume("local", storage_class="x", nodes=["n2"], spec={"local": {"path": "/x"}})
    cluster = Cluster([*nodes, *limits, make_class("x", "csi.a"), volume, *claims])
    cluster.schedule(*(using(f"c{number}", name=f"p{number}") for number in range(4)))
    catalog = cluster.state.catalog
    bound = [catalog.get(PersistentVolumeClaim, f"default/c{number}") for number in range(4)]
    names = [claim.spec.volume_name for claim in bound if claim is not None]
    # One claim is bound to the existing volume, for two a volume is provisioned (one on each node), and the limits
    # exclude the fourth.
    assert (names.count("local"), len([name for name in names if name.startswith("pvc-")]), names.count("")) == (
        1,
        2,
        1,
    )
    assert len(cluster.pending) == 1
