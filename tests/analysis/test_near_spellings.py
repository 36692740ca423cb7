"""Causes suggest the spelling of label keys and objects that a pod refers to and that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan import Cluster, RecordLevel, make_node, make_pod
from bayplan.analysis import near_spellings
from bayplan.testing.builders import PodBuilder

OBJECTS = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: gke-prod-pool-1a2b3c4d-x9z8, labels: {disk: ssd, disktype: ssd, topology.kubernetes.io/zone: europe-west1-b}}
  status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
- {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: standard-rwo}, provisioner: pd.csi.storage.gke.io}
- {apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: other, namespace: other}, spec: {}}
- {apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu.example.com}, spec: {}}
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {name: gpu, namespace: default}
  spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.exmaple.com}}]}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: cache-data, namespace: default}
  spec: {storageClassName: standrad-rwo, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: default}
  spec:
    containers: [{name: c, image: x}]
    SPEC
"""


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param("nodeSelector: {disktpye: ssd}", "perhaps disktype was meant", id="a key of the nodeSelector"),
        pytest.param(
            "nodeSelector: {topology.kubernetes.io/disks: a}\n"
            "    topologySpreadConstraints: [{maxSkew: 1, topologyKey: disks, whenUnsatisfiable: ScheduleAnyway}]",
            "",
            id="a key that is only part of the key in the cause",
        ),
        pytest.param("nodeSelector: {disktype: sdd}", "", id="values are listed instead"),
        pytest.param("nodeSelector: {example.com/rack: a}", "", id="a key that no label resembles"),
        pytest.param(
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: disktyp, operator: Exists}]}]}}}",
            "perhaps disktype was meant",
            id="a key of the node affinity",
        ),
        pytest.param(
            "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zonee, "
            "whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]",
            "perhaps topology.kubernetes.io/zone was meant",
            id="the topology of a spread constraint",
        ),
        pytest.param(
            "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "[{topologyKey: topology.kubernetes.io/zonne, labelSelector: {matchLabels: {app: web}}}]}}",
            "perhaps topology.kubernetes.io/zone was meant",
            id="the topology of a pod affinity",
        ),
        pytest.param(
            "volumes: [{name: v, persistentVolumeClaim: {claimName: cache-data}}]",
            "perhaps standard-rwo was meant",
            id="a StorageClass",
        ),
        pytest.param(
            "volumes: [{name: v, persistentVolumeClaim: {claimName: cache-dta}}]",
            "perhaps cache-data was meant",
            id="a claim",
        ),
        pytest.param(
            "resourceClaims: [{name: g, resourceClaimName: othr}]", "", id="a resource claim of another namespace"
        ),
        pytest.param(
            "resourceClaims: [{name: g, resourceClaimName: gpus}]", "perhaps gpu was meant", id="a resource claim"
        ),
        pytest.param(
            "resourceClaims: [{name: g, resourceClaimName: gpu}]",
            "perhaps gpu.example.com was meant",
            id="a device class",
        ),
    ],
)
def test_a_misspelt_reference_is_followed_by_the_likely_spelling(tmp_path: Path, spec: str, want: str) -> None:
    (tmp_path / "dump.yaml").write_text(OBJECTS.replace("SPEC", spec))
    (reason, *_) = Cluster.open(str(tmp_path / "dump.yaml")).waiting_reasons()
    assert reason.summary.endswith(want or reason.summary)
    assert ("perhaps" in reason.summary) == bool(want)


NODES = [
    make_node(f"gke-prod-{pool}-1a2b3c4d-x9z{number}")
    .label(pool=pool, tier="a" if number else "b")
    .capacity(cpu="4")
    .obj()
    for number, pool in enumerate(["general", "gpu", "highmem", "ingress", "spot"])
]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            make_pod("p").node_selector(tier="c"),
            "no node has the label tier=c (nodeSelector; values of tier: a and b)",
            id="few values",
        ),
        pytest.param(
            make_pod("p").node_selector(pool="gpuu"),
            "no node has the label pool=gpuu (nodeSelector; values of pool: gpu and 4 more)",
            id="many values, one of them similar",
        ),
        pytest.param(
            make_pod("p").node_selector(pool="x1"),
            "no node has the label pool=x1 (nodeSelector; values of pool: general, gpu, highmem, ingress and 1 more)",
            id="many values, none of them similar",
        ),
        pytest.param(
            make_pod("p").node_selector(tier="c", disk="ssd"),
            "no node has the labels tier=c, disk=ssd (nodeSelector; values of tier: a and b)",
            id="a key that no node has",
        ),
        pytest.param(
            make_pod("p").node_affinity("pool", "spott", "gpuu"),
            "no node matches pool In (spott, gpuu) (required node affinity; values of pool: spot, gpu and 3 more)",
            id="values of a node affinity",
        ),
    ],
)
def test_the_cause_names_existing_values_of_a_label_without_the_required_one(pod: PodBuilder, want: str) -> None:
    cluster = Cluster([*NODES, pod.obj()], record_level=RecordLevel.OFF)
    assert cluster.explain("p").verdict == f"default/p is pending: {want}"
    assert cluster.unblock("p").verdict.startswith(f"default/p is pending: {want}; best: ")
    assert [each.summary for each in cluster.waiting_reasons()] == [want]


def test_a_misspelt_scheduler_is_followed_by_the_likely_spelling(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(OBJECTS.replace("SPEC", "schedulerName: default-schedular"))
    (reason,) = Cluster.open(str(tmp_path / "dump.yaml")).waiting_reasons()
    assert reason.summary.endswith('"default-schedular" is configured; perhaps default-scheduler was meant')


def test_a_suggestion_of_unblock_applies_if_the_spelling_is_right(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(OBJECTS.replace("SPEC", "nodeSelector: {disktyp: ssd}"))
    found = Cluster.open(str(tmp_path / "dump.yaml")).unblock("p")
    assert found.verdict.startswith("default/p is pending: no node has the label disktyp=ssd (nodeSelector); perhaps ")
    assert "; perhaps disktype was meant; if not, best: " in found.verdict


def test_existing_labels_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_spellings, "near_name", lambda name, known: pytest.fail("names were compared"))
    (tmp_path / "dump.yaml").write_text(OBJECTS.replace("SPEC", "nodeSelector: {disktype: sdd}"))
    assert Cluster.open(str(tmp_path / "dump.yaml")).waiting_reasons()


def test_a_limited_number_of_names_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = OBJECTS.replace("SPEC", "nodeSelector: {disktyp: ssd}")
    (tmp_path / "dump.yaml").write_text(text.replace("{disk: ssd, disktype: ssd", "{rack: a, disktype: ssd"))
    found = []
    for limit in (1, 2):
        monkeypatch.setattr(near_spellings, "MAX_NAMES", limit)
        (reason, *_) = Cluster.open(str(tmp_path / "dump.yaml")).waiting_reasons()
        found.append("perhaps disktype was meant" in reason.summary)
    assert found == [False, True]
