"""In-tree volumes under the names of their CSI drivers: handles, zones, untranslatable volumes."""

import pytest

from bayplan.objects.storage import PersistentVolume
from bayplan.objects.volumes import Volume
from bayplan.plugins.csi_migration import (
    TranslationError,
    in_tree_plugin,
    translate_inline_volume,
    translate_volume,
)
from tests.plugins.volume_worlds import BETA_ZONE, ZONE, Document, make_volume, with_volumes

REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
EBS: Document = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def volume(source: Document, labels: dict[str, str] | None = None, *terms: Document) -> PersistentVolume:
    spec = dict(source)
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(terms)}}
    found = make_volume("pv", labels=labels, spec=spec)
    assert isinstance(found, PersistentVolume)
    return found


def term(*requirements: tuple[str, str]) -> Document:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [one]} for key, one in requirements]}


@pytest.mark.parametrize(
    ("source", "want"),
    [
        pytest.param(EBS, "ebs.csi.aws.com vol-1", id="EBS: a bare name"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-2"}}, "ebs.csi.aws.com vol-2", id="EBS: a zone"
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws:///vol-3"}}, "ebs.csi.aws.com vol-3", id="EBS: no zone"
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://z/disk"}},
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://z/disk)",
            id="EBS: not a volume",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            "pd.csi.storage.gke.io projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="GCE: zones of inline disks are not known",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Managed"}}, "disk.csi.azure.com u", id="Azure"
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "u"}},
            "kind(Shared) is not supported in csi migration",
            id="Azure: disks are shared by default",
        ),
        pytest.param({"cinder": {"volumeID": "v"}}, "cinder.csi.openstack.org v", id="Cinder"),
        pytest.param({"portworxVolume": {"volumeID": "v"}}, "pxd.portworx.com v", id="Portworx"),
    ],
)
def test_inline_volumes_are_translated_to_csi_handles(source: Document, want: str) -> None:
    inline = with_volumes(source).spec.volumes[0]
    assert in_tree_plugin(inline)
    assert reported(inline) == want


def reported(inline: Volume) -> str:
    """Return driver and handle, or why there are none."""
    try:
        found = translate_inline_volume(inline)
    except TranslationError as problem:
        return str(problem)
    return f"{found.driver} {found.handle}"


def test_other_volumes_are_not_migratable() -> None:
    pod = with_volumes({"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "c"}}, {"rbd": {"monitors": ["m"]}})
    assert [in_tree_plugin(item) for item in pod.spec.volumes] == ["", "", ""]


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({}, "zones/UNSPECIFIED", id="no zone"),
        pytest.param({ZONE: "us-a-1"}, "zones/us-a-1", id="a zone"),
        pytest.param({ZONE: "us-a-1", BETA_ZONE: "us-a-2"}, "zones/us-a-2", id="the old label wins"),
        pytest.param({ZONE: "us-a-1__us-a-2"}, "regions/us-a", id="two zones of a region"),
    ],
)
def test_gce_volume_handles_contain_the_zone(labels: dict[str, str], want: str) -> None:
    found = translate_volume(volume({"gcePersistentDisk": {"pdName": "d"}}, labels))
    assert found.handle == f"projects/UNSPECIFIED/{want}/disks/d"


@pytest.mark.parametrize(
    ("zones", "want"),
    [
        pytest.param(
            "us-a-1__us-b-1", "multiple or no regions gotten from zones, got: map[us-a:{} us-b:{}]", id="two regions"
        ),
        pytest.param(
            "a__b", "zone in unexpected format, expected: {locale}-{region}-{zone}, got: a", id="not a zone of GCE"
        ),
    ],
)
def test_gce_volumes_without_a_single_region_are_refused(zones: str, want: str) -> None:
    with pytest.raises(TranslationError) as caught:
        translate_volume(volume({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: zones}))
    assert str(caught.value) == f"failed to get region from zones: {want}"


CSI_ZONE = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize(
    ("labels", "terms", "want"),
    [
        pytest.param({}, [], None, id="no labels or terms"),
        pytest.param({ZONE: "b__a"}, [], [[(CSI_ZONE, "In", ("a", "b"))]], id="zones of the labels"),
        pytest.param({ZONE: "__"}, [], None, id="labels without a zone"),
        pytest.param({}, [term((ZONE, "a"))], [[(CSI_ZONE, "In", ("a",))]], id="the zone of the affinity"),
        pytest.param({ZONE: "b"}, [term((ZONE, "a"))], [[(CSI_ZONE, "In", ("a",))]], id="affinity before labels"),
        pytest.param(
            {ZONE: "b"},
            [term(("host", "x")), term(("host", "y"))],
            [[("host", "In", ("x",)), (CSI_ZONE, "In", ("b",))], [("host", "In", ("y",)), (CSI_ZONE, "In", ("b",))]],
            id="labels are added to every term",
        ),
        pytest.param(
            {},
            [term((BETA_ZONE, "a"), (BETA_REGION, "r"))],
            [[(CSI_ZONE, "In", ("a",)), (REGION, "In", ("r",))]],
            id="old labels of zones and regions",
        ),
        pytest.param(
            {},
            [term((ZONE, "a"), (BETA_REGION, "r"))],
            [[(CSI_ZONE, "In", ("a",)), (BETA_REGION, "In", ("r",))]],
            id="an old region is kept with a new zone",
        ),
    ],
)
def test_zones_are_translated_to_the_drivers_topology_key(
    labels: dict[str, str], terms: list[Document], want: object
) -> None:
    affinity = translate_volume(volume(EBS, labels, *terms)).node_affinity
    if affinity is None:
        assert want is None
        return
    found = [
        [(item.key, item.operator, item.values) for item in one.match_expressions]
        for one in affinity.node_selector_terms
    ]
    assert found == want
