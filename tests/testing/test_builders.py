"""Builders: they build the objects that the same manifests are decoded to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan import testing
from bayplan.base.errors import InputError
from bayplan.objects.kinds import encode
from bayplan.objects.meta import KubernetesObject
from bayplan.testing import (
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_object,
    make_pod,
    make_priority_class,
    make_service,
    make_storage_class,
    make_volume,
)


def spec_of(item: KubernetesObject) -> dict[str, object]:
    spec = encode(item)["spec"]
    assert isinstance(spec, dict)
    return spec


def test_public_names_exist() -> None:
    assert [name for name in testing.__all__ if getattr(testing, name, None) is None] == []
    assert callable(testing.check_plugin)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        testing.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("pod", "field", "want"),
    [
        pytest.param(
            make_pod("p").pod_anti_affinity({"app": "web"}),
            "affinity",
            {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
                    ]
                }
            },
            id="required anti-affinity, by hostname",
        ),
        pytest.param(
            make_pod("p").pod_affinity({"app": ["web", "db"]}, "zone", weight=5, namespaces=["other"]),
            "affinity",
            {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 5,
                            "podAffinityTerm": {
                                "labelSelector": {
                                    "matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]
                                },
                                "topologyKey": "topology.kubernetes.io/zone",
                                "namespaces": ["other"],
                            },
                        }
                    ]
                }
            },
            id="preferred affinity to one of two, by zone",
        ),
        pytest.param(
            make_pod("p").node_affinity("disk", "ssd").node_affinity("gpu").node_affinity("old", weight=3),
            "affinity",
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                            {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
                        ]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 3, "preference": {"matchExpressions": [{"key": "old", "operator": "Exists"}]}}
                    ],
                }
            },
            id="node affinity, two alternatives and a preference",
        ),
        pytest.param(
            make_pod("p").spread({"app": "web"}, soft=True, minDomains=2, max_skew=3),
            "topologySpreadConstraints",
            [
                {
                    "maxSkew": 3,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "minDomains": 2,
                }
            ],
            id="a soft spread constraint",
        ),
        pytest.param(
            make_pod("p").claim("data").volume("scratch", emptyDir={}),
            "volumes",
            [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "scratch", "emptyDir": {}},
            ],
            id="volumes",
        ),
        pytest.param(
            make_pod("p").resource_claim("gpu", template="one-gpu"),
            "resourceClaims",
            [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            id="a resource claim",
        ),
        pytest.param(make_pod("p").priority(7, policy="Never"), "preemptionPolicy", "Never", id="a preemption policy"),
        pytest.param(make_pod("p").overhead(cpu="1"), "overhead", {"cpu": "1"}, id="overhead"),
        pytest.param(make_pod("p").host_network(), "hostNetwork", True, id="the node's network"),
    ],
)
def test_pod_builder_sets_spec_fields(pod: testing.PodBuilder, field: str, want: object) -> None:
    assert spec_of(pod.obj())[field] == want


def test_pod_builder_sets_owner_status_and_deletion() -> None:
    pod = make_pod("p").owner("ReplicaSet", "web").started("2026-01-01T00:00:00Z").terminating().node("n").obj()
    assert pod.metadata.owner_references[0].name == "web"
    assert (pod.status.phase, pod.status.start_time) == ("Running", "2026-01-01T00:00:00Z")
    assert pod.metadata.deletion_timestamp is not None
    init = make_pod("p").init_container("wait", cpu="2").obj()
    assert init.spec.init_containers[0].resources.requests == {"cpu": "2"}


def test_node_builder_sets_labels_conditions_and_features() -> None:
    node = (
        make_node("n").region("r").condition("Ready", "False").features("A", "B").created("2026-01-01T00:00:00Z").obj()
    )
    assert node.metadata.labels["topology.kubernetes.io/region"] == "r"
    assert node.status.conditions[0].status == "False"
    assert node.status.declared_features == ("A", "B")


def test_claim_and_volume_builders_bind_to_each_other() -> None:
    claim = make_claim("data").storage("2Gi").storage_class("fast").access("ReadWriteOncePod").bound("pv").obj()
    volume = make_volume("pv").storage("2Gi").storage_class("fast").csi("driver").zone("a").bound("data").obj()
    assert claim.spec.volume_name == volume.metadata.name
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.uid == claim.metadata.uid
    assert claim.metadata.annotations == {"pv.kubernetes.io/bind-completed": "yes"}
    assert make_volume("local").node_affinity("kubernetes.io/hostname", "n").obj().spec.node_affinity is not None


def test_builders_of_other_kinds_set_their_fields() -> None:
    assert make_storage_class("fast", wait=True).volume_binding_mode == "WaitForFirstConsumer"
    assert make_namespace("team", tier="front").metadata.labels["tier"] == "front"
    assert make_priority_class("high", 100).value == 100
    assert make_budget("b", {"app": "web"}, disruptions_allowed=1).status.disruptions_allowed == 1
    assert make_service("s", {"app": "web"}).spec.selector == {"app": "web"}
    assert make_object({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}).key == "n"


@pytest.mark.parametrize(
    ("build", "want"),
    [
        pytest.param(lambda: make_node("n").taint("a", effect="NoSched").obj(), "try 'NoSchedule'", id="a taint"),
        pytest.param(lambda: make_pod("p").toleration("a", operator="exists").obj(), "try 'Exists'", id="an operator"),
        pytest.param(
            lambda: make_pod("p").req(cpu="-2").obj(), "expected an amount of at least 0, got '-2'", id="an amount"
        ),
        pytest.param(lambda: make_pod("p").spec(restartPolicy="never").obj(), "try 'Never'", id="a field of the spec"),
        pytest.param(
            lambda: make_node("n").taint("dedicated=gpu:NoExecute"),
            r'taint: expected the key, the value and the effect, got one text, .*; try taint\("dedicated", "gpu", "NoExecute"\)',
            id="a whole taint",
        ),
        pytest.param(
            lambda: make_pod("p").toleration("dedicated:NoSchedule"),
            r'try toleration\("dedicated", "", "NoSchedule"\)',
            id="a whole taint as toleration",
        ),
    ],
)
def test_values_that_the_api_server_refuses_are_refused(build: Callable[[], object], want: str) -> None:
    with pytest.raises(InputError, match=want):
        build()
