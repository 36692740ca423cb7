"""Predicates that implement a rule themselves, under their old names, with one pod and one node: the reasons."""

from __future__ import annotations

import pytest

from bayplan.testing.builders import NodeBuilder, PodBuilder, make_pod
from tests.classic.cycles import ZONE, Item, configured, cycle_of, node, only_predicate

HOST = "kubernetes.io/hostname"


def reasons(
    predicate: str,
    target: NodeBuilder,
    pod: PodBuilder,
    *others: Item,
    argument: object = None,
    gates: dict[str, bool] | None = None,
) -> list[str]:
    """Return the reasons of one predicate for one node."""
    configuration = configured(policy=only_predicate(predicate, argument), gates=gates)
    return cycle_of([target, *others], pod, configuration).reasons("n1")


def _with_conditions(*conditions: tuple[str, str]) -> NodeBuilder:
    builder = node()
    builder.document()["status"]["conditions"] = [{"type": kind, "status": status} for kind, status in conditions]
    return builder


def _term(app: str, key: str = HOST) -> dict[str, object]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _affine(kind: str, *terms: dict[str, object]) -> PodBuilder:
    return make_pod("p").spec(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}})


@pytest.mark.parametrize(
    ("allocatable", "asked", "want"),
    [
        pytest.param({"cpu": "2"}, {"cpu": "2"}, [], id="exactly as much as there is"),
        pytest.param({"cpu": "2"}, {"cpu": "2001m"}, ["Insufficient cpu"], id="one more"),
        pytest.param({"memory": "1Gi"}, {"memory": "2Gi"}, ["Insufficient memory"], id="memory"),
        pytest.param(
            {"cpu": "1", "memory": "1Gi"},
            {"cpu": "2", "memory": "2Gi"},
            ["Insufficient cpu", "Insufficient memory"],
            id="all that is short",
        ),
        pytest.param({}, {"example.com/gpu": "1"}, ["Insufficient example.com/gpu"], id="extended resources"),
        pytest.param({"pods": "0"}, {}, ["Insufficient pods"], id="places for pods"),
    ],
)
def test_pod_fits_resources_reports_insufficient_resources(
    allocatable: dict[str, str], asked: dict[str, str], want: list[str]
) -> None:
    assert reasons("PodFitsResources", node(**allocatable), make_pod("p").req(asked)) == want


def test_resources_managed_by_an_extender_are_ignored() -> None:
    extender = {"urlPrefix": "http://x", "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}
    policy = {"predicates": [{"name": "PodFitsResources"}], "priorities": [], "extenders": [extender]}
    pod = make_pod("p").req({"example.com/gpu": "1"})
    assert cycle_of([node()], pod, configured(policy=policy)).reasons("n1") == []


def test_general_predicates_reports_all_failures() -> None:
    taken = make_pod("r").host_port(80).node("n1")
    pod = make_pod("p").req(cpu="9").host_port(80).node_selector(rack="r").spec(nodeName="n2")
    assert reasons("GeneralPredicates", node(), pod, taken) == [
        "Insufficient cpu",
        "node(s) didn't match the requested hostname",
        "node(s) didn't have free ports for the requested pod ports",
        "node(s) didn't match node selector",
    ]


@pytest.mark.parametrize(
    ("predicate", "target", "pod", "want"),
    [
        pytest.param(
            "PodFitsHostPorts",
            node(),
            make_pod("p").host_port(80),
            ["node(s) didn't have free ports for the requested pod ports"],
            id="PodFitsHostPorts",
        ),
        pytest.param(
            "PodFitsPorts", node(), make_pod("p").host_port(80), [], id="the old name has no place in the order"
        ),
        pytest.param(
            "HostName",
            node(),
            make_pod("p").spec(nodeName="n2"),
            ["node(s) didn't match the requested hostname"],
            id="HostName",
        ),
        pytest.param(
            "MatchNodeSelector",
            node().label(rack="a"),
            make_pod("p").node_selector(rack="b"),
            ["node(s) didn't match node selector"],
            id="MatchNodeSelector",
        ),
        pytest.param(
            "PodToleratesNodeTaints",
            node().taint("gpu"),
            make_pod("p"),
            ["node(s) had taints that the pod didn't tolerate"],
            id="PodToleratesNodeTaints",
        ),
        pytest.param(
            "PodToleratesNodeTaints", node().taint("gpu"), make_pod("p").toleration("gpu"), [], id="tolerated"
        ),
        pytest.param(
            "CheckNodeUnschedulable",
            node().unschedulable(),
            make_pod("p"),
            ["node(s) were unschedulable"],
            id="CheckNodeUnschedulable",
        ),
        pytest.param(
            "CheckNodeUnschedulable",
            node().unschedulable(),
            make_pod("p").toleration("node.kubernetes.io/unschedulable"),
            [],
            id="cordoned and tolerated",
        ),
    ],
)
def test_essential_predicates_report_their_reasons(
    predicate: str, target: NodeBuilder, pod: PodBuilder, want: list[str]
) -> None:
    assert reasons(predicate, target, pod, make_pod("r").host_port(80).node("n1")) == want


@pytest.mark.parametrize(
    ("predicate", "conditions", "asked", "want"),
    [
        pytest.param("CheckNodeCondition", [("Ready", "True")], {}, [], id="ready"),
        pytest.param("CheckNodeCondition", [("Ready", "Unknown")], {}, ["node(s) were not ready"], id="not ready"),
        pytest.param(
            "CheckNodeCondition",
            [("NetworkUnavailable", "True")],
            {},
            ["node(s) had unavailable network"],
            id="no network",
        ),
        pytest.param(
            "CheckNodeMemoryPressure",
            [("MemoryPressure", "True")],
            {},
            ["node(s) had memory pressure"],
            id="short of memory",
        ),
        pytest.param("CheckNodeMemoryPressure", [("MemoryPressure", "True")], {"cpu": "1"}, [], id="not BestEffort"),
        pytest.param(
            "CheckNodeDiskPressure", [("DiskPressure", "True")], {}, ["node(s) had disk pressure"], id="short of disk"
        ),
        pytest.param(
            "CheckNodePIDPressure", [("PIDPressure", "True")], {}, ["node(s) had pid pressure"], id="short of ids"
        ),
        pytest.param("CheckNodePIDPressure", [("PIDPressure", "Unknown")], {}, [], id="perhaps short of ids"),
    ],
)
def test_node_conditions_reject_pods_if_taint_nodes_by_condition_is_off(
    predicate: str, conditions: list[tuple[str, str]], asked: dict[str, str], want: list[str]
) -> None:
    gates = {"TaintNodesByCondition": False}
    assert reasons(predicate, _with_conditions(*conditions), make_pod("p").req(asked), gates=gates) == want


@pytest.mark.parametrize(
    ("labels", "presence", "fits"),
    [
        ({"rack": "a", "disk": "ssd"}, True, True),
        ({"rack": "a"}, True, False),
        ({"rack": "a"}, False, False),
        ({}, False, True),
    ],
)
def test_check_node_label_presence_requires_or_forbids_all_labels(
    labels: dict[str, str], presence: bool, fits: bool
) -> None:
    argument = {"labelsPresence": {"labels": ["rack", "disk"], "presence": presence}}
    reported = reasons("CheckNodeLabelPresence", node().label(labels), make_pod("p"), argument=argument)
    assert reported == ([] if fits else ["node(s) didn't have the requested labels"])


@pytest.mark.parametrize(
    ("running", "service", "selector", "want"),
    [
        pytest.param(None, True, {}, ["n1", "n2"], id="the first pod fits anywhere"),
        pytest.param("n1", True, {}, ["n1"], id="the other pods follow it"),
        pytest.param("n1", False, {}, ["n1", "n2"], id="without a service the pods do not follow one another"),
        pytest.param("n1", True, {"rack": "b"}, ["n2"], id="the node selector decides"),
    ],
)
def test_check_service_affinity_follows_the_first_pod_of_the_service(
    running: str | None, service: bool, selector: dict[str, str], want: list[str]
) -> None:
    objects: list[Item] = [node("n1").label(rack="a"), node("n2").label(rack="b")]
    if running:
        objects.append(make_pod("r").label(app="a").node(running))
    if service:
        metadata = {"name": "s", "namespace": "default"}
        objects.append(
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": "a"}}}
        )
    policy = only_predicate("CheckServiceAffinity", {"serviceAffinity": {"labels": ["rack"]}})
    found = cycle_of(objects, make_pod("p").label(app="a").node_selector(selector), configured(policy=policy))
    assert found.feasible == want
    for rejected in {"n1", "n2"} - set(want):
        assert found.reasons(rejected) == ["node(s) didn't match service affinity"]


AFFINITY = "node(s) didn't match pod affinity/anti-affinity"


@pytest.mark.parametrize(
    ("pod", "running", "want"),
    [
        pytest.param(_affine("podAffinity", _term("a")), make_pod("r").label(app="a"), [], id="near"),
        pytest.param(
            _affine("podAffinity", _term("a")),
            make_pod("r").label(app="b"),
            [AFFINITY, "node(s) didn't match pod affinity rules"],
            id="no pod with the required label",
        ),
        pytest.param(
            _affine("podAffinity", _term("a")).label(app="a"),
            make_pod("r").label(app="b"),
            [],
            id="the first pod of its kind fits anywhere",
        ),
        pytest.param(
            _affine("podAffinity", _term("a"), _term("b")),
            make_pod("r").label(app="a"),
            [AFFINITY, "node(s) didn't match pod affinity rules"],
            id="one pod must match all terms",
        ),
        pytest.param(
            _affine("podAntiAffinity", _term("a")),
            make_pod("r").label(app="a"),
            [AFFINITY, "node(s) didn't match pod anti-affinity rules"],
            id="away",
        ),
        pytest.param(
            make_pod("p").label(app="p"),
            _affine("podAntiAffinity", _term("p")),
            [AFFINITY, "node(s) didn't satisfy existing pods anti-affinity rules"],
            id="running pods with anti-affinity reject the pod",
        ),
    ],
)
def test_match_inter_pod_affinity_reports_violated_terms(pod: PodBuilder, running: PodBuilder, want: list[str]) -> None:
    target = node().label({HOST: "n1"})
    running.document()["metadata"]["name"] = "r"
    assert reasons("MatchInterPodAffinity", target, pod, running.node("n1")) == want


def test_nodes_without_the_topology_key_match_no_pods() -> None:
    running = make_pod("r").label(app="a").node("n1")
    assert reasons("MatchInterPodAffinity", node(), _affine("podAntiAffinity", _term("a", ZONE)), running) == []
    assert reasons("MatchInterPodAffinity", node(), _affine("podAffinity", _term("a", ZONE)), running) != []


@pytest.mark.parametrize(
    ("on_n1", "max_skew", "want"),
    [
        pytest.param(1, 1, ["n2"], id="one volume above the limit"),
        pytest.param(1, 2, ["n1", "n2"], id="as many volumes as allowed"),
        pytest.param(0, 1, ["n1", "n2"], id="no pod yet"),
    ],
)
def test_even_pods_spread_rejects_nodes_beyond_the_max_skew(on_n1: int, max_skew: int, want: list[str]) -> None:
    constraint = {
        "maxSkew": max_skew,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    pod = make_pod("p").label(app="a").spec(topologySpreadConstraints=[constraint])
    objects: list[Item] = [node("n1").label({ZONE: "a"}), node("n2").label({ZONE: "b"}), node("n3")]
    objects += [make_pod(f"r{number}").label(app="a").node("n1") for number in range(on_n1)]
    policy = only_predicate("EvenPodsSpread")
    found = cycle_of(objects, pod, configured(policy=policy, gates={"EvenPodsSpread": True}))
    assert found.feasible == want
    # A node without the topology key fails with the same reason.
    assert found.reasons("n3") == ["node(s) didn't match pod topology spread constraints"]


# Volumes.


def _disk(**fields: object) -> dict[str, object]:
    return {"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1", **fields}}


def _gce(name: str, *, read_only: bool = False) -> dict[str, object]:
    return {"name": name, "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


@pytest.mark.parametrize(
    ("mine", "theirs", "fits"),
    [
        pytest.param(_disk(), _disk(), False, id="one disk of Amazon"),
        pytest.param(_disk(readOnly=True), _disk(readOnly=True), False, id="read-only makes no difference there"),
        pytest.param(_gce("d"), _gce("d"), False, id="one disk of Google"),
        pytest.param(_gce("d", read_only=True), _gce("d", read_only=True), True, id="both read only"),
        pytest.param(_gce("d", read_only=True), _gce("d"), False, id="one of them writes"),
        pytest.param(_gce("d"), _gce("e"), True, id="different disks"),
    ],
)
def test_no_disk_conflict_rejects_nodes_with_a_shared_disk(
    mine: dict[str, object], theirs: dict[str, object], fits: bool
) -> None:
    running = make_pod("r").spec(volumes=[theirs]).node("n1")
    reported = reasons("NoDiskConflict", node(), make_pod("p").spec(volumes=[mine]), running)
    assert reported == ([] if fits else ["node(s) had no available disk"])


@pytest.mark.parametrize(
    ("limit", "disks", "fits"),
    [
        pytest.param("2", ["a"], True, id="room for one more"),
        pytest.param("1", ["a"], False, id="one too many"),
        pytest.param("1", ["r"], True, id="one that is attached already"),
        pytest.param("0", [], True, id="a pod without disks"),
    ],
)
def test_max_volume_count_rejects_nodes_over_the_limit(limit: str, disks: list[str], fits: bool) -> None:
    running = make_pod("r").spec(volumes=[_gce("r")]).node("n1")
    target = node().capacity({"attachable-volumes-gce-pd": limit})
    reported = reasons(
        "MaxGCEPDVolumeCount", target, make_pod("p").spec(volumes=[_gce(name) for name in disks]), running
    )
    assert reported == ([] if fits else ["node(s) exceed max volume count"])


def _bound_claim(**labels: str) -> list[Item]:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "labels": labels},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]},
    }
    return [volume, claim]


@pytest.mark.parametrize(
    ("zone", "want"),
    [
        pytest.param("a", [], id="the zone of the volume"),
        pytest.param("b", [], id="one of several"),
        pytest.param("c", ["node(s) had no available volume zone"], id="another zone"),
        pytest.param("", [], id="a node in no zone"),
    ],
)
def test_no_volume_zone_conflict_requires_a_zone_of_the_volume(zone: str, want: list[str]) -> None:
    target = node().label({ZONE: zone}) if zone else node()
    pod = make_pod("p").spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    assert reasons("NoVolumeZoneConflict", target, pod, *_bound_claim(**{ZONE: "a__b"})) == want


def test_check_volume_binding_requires_the_node_of_a_bound_volume() -> None:
    volume, claim = _bound_claim()
    assert isinstance(volume, dict)
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["b"]}]}
    volume["spec"] = {**volume["spec"], "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    pod = make_pod("p").spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    reported = reasons("CheckVolumeBinding", node().label(rack="a"), pod, volume, claim)
    assert reported == ["node(s) had volume node affinity conflict"]
    assert reasons("CheckVolumeBinding", node().label(rack="b"), pod, volume, claim) == []
