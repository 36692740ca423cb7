"""Defaults compared with kube-apiserver's, and tables of special cases."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.objects.defaults import default_object, default_pod
from bayplan.objects.kinds import convert, decode, encode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.pod_defaults import round_up_to_milli
from bayplan.objects.quantity import QuantityLike, nano_value, parse_quantity
from tests.objects.golden.files import read_golden

Json = dict[str, Any]
AMOUNT_LISTS = ("limits", "requests", "overhead", "allocatedResources", "capacity", "allocatable")


def comparable(value: object) -> object:
    """Return a value with canonical quantities, and without empty values and `imagePullPolicy`, which Bayplan ignores."""
    if isinstance(value, dict):
        items = {
            name: {key: str(parse_quantity(amount)) for key, amount in item.items()}
            if name in AMOUNT_LISTS and isinstance(item, dict)
            else item
            for name, item in value.items()
            if name != "imagePullPolicy"
        }
        kept = {name: comparable(item) for name, item in items.items()}
        return {name: item for name, item in kept.items() if item not in ({}, [], None)}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value


def test_pod_defaults_match_upstream() -> None:
    """Compare 400 random pods with upstream's output."""
    lines = read_golden("defaults")
    assert len(lines) == 400
    for line in lines:
        question, want = line["question"]["object"], line["want"]
        if "error" in want:
            with pytest.raises(InputError):
                decode(question)
            continue
        got = default_object(decode(question))
        assert comparable(encode(got)) == comparable(encode(convert(want["object"], Pod))), question
        assert default_object(got) is got


def defaulted(kind: str, **fields: object) -> Json:
    """Default an object and return its document without the head."""
    document = encode(default_object(decode({"apiVersion": VERSIONS[kind], "kind": kind, **fields})))
    del document["apiVersion"], document["kind"]
    return document


VERSIONS = {
    "Pod": "v1",
    "Node": "v1",
    "Namespace": "v1",
    "Service": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "StorageClass": "storage.k8s.io/v1",
    "CSIDriver": "storage.k8s.io/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
}
SPEC = {"restartPolicy": "Always", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30}
IN_DEFAULT = {"namespace": "default"}


@pytest.mark.parametrize(
    ("kind", "fields", "want"),
    [
        pytest.param("Pod", {}, {"metadata": IN_DEFAULT, "spec": SPEC}, id="a pod"),
        pytest.param(
            "Pod",
            {
                "metadata": {"namespace": "n"},
                "spec": {
                    "hostNetwork": True,
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"ports": [{"containerPort": 80}]}],
                },
            },
            {
                "metadata": {"namespace": "n"},
                "spec": {
                    **SPEC,
                    "hostNetwork": True,
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]}],
                },
            },
            id="a pod on the host network",
        ),
        pytest.param(
            "Pod",
            {
                "spec": {
                    "resources": {"limits": {"cpu": "2", "memory": "2Gi"}},
                    "containers": [{"resources": {"limits": {"cpu": "500m", "hugepages-2Mi": "4Mi"}}}],
                }
            },
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    **SPEC,
                    "resources": {
                        "limits": {"cpu": "2", "memory": "2Gi", "hugepages-2Mi": "4Mi"},
                        "requests": {"cpu": "500m", "memory": "2Gi", "hugepages-2Mi": "4Mi"},
                    },
                    "containers": [
                        {
                            "resources": {
                                "limits": {"cpu": "500m", "hugepages-2Mi": "4Mi"},
                                "requests": {"cpu": "500m", "hugepages-2Mi": "4Mi"},
                            }
                        }
                    ],
                },
            },
            id="a pod with limits as a whole",
        ),
        pytest.param(
            "Pod",
            {
                "spec": {
                    "volumes": [
                        {"name": "a", "rbd": {"image": "i"}},
                        {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                    ]
                }
            },
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    **SPEC,
                    "volumes": [
                        {"name": "a", "rbd": {"image": "i", "pool": "rbd", "user": "admin"}},
                        {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}},
                    ],
                },
            },
            id="a pod with volumes",
        ),
        pytest.param(
            "Node",
            {"status": {"capacity": {"cpu": "1.0001"}}},
            {"status": {"capacity": {"cpu": "1001m"}, "allocatable": {"cpu": "1001m"}}},
            id="allocatable defaults to the capacity",
        ),
        pytest.param(
            "Node",
            {"status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}},
            {"status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}},
            id="a node with allocatable resources",
        ),
        pytest.param(
            "Namespace",
            {"metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "x", "a": "b"}}},
            {
                "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n", "a": "b"}},
                "status": {"phase": "Active"},
            },
            id="a namespace has its name as a label",
        ),
        pytest.param(
            "Namespace", {}, {"status": {"phase": "Active"}}, id="a namespace without a name has no such label"
        ),
        pytest.param(
            "Service",
            {"spec": {"ports": [{"port": 80}, {"port": 81, "targetPort": "web", "protocol": "UDP"}]}},
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "type": "ClusterIP",
                    "sessionAffinity": "None",
                    "ports": [
                        {"port": 80, "targetPort": 80, "protocol": "TCP"},
                        {"port": 81, "targetPort": "web", "protocol": "UDP"},
                    ],
                },
            },
            id="a service",
        ),
        pytest.param(
            "PriorityClass",
            {"value": 5},
            {"value": 5, "preemptionPolicy": "PreemptLowerPriority"},
            id="a priority class",
        ),
        pytest.param(
            "StorageClass", {}, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}, id="a storage class"
        ),
        pytest.param(
            "StorageClass",
            {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Retain"},
            {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Retain"},
            id="a storage class with all fields",
        ),
        pytest.param(
            "PersistentVolume",
            {"spec": {"capacity": {"storage": "1Gi"}}},
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "persistentVolumeReclaimPolicy": "Retain",
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            },
            id="a volume",
        ),
        pytest.param(
            "PersistentVolumeClaim",
            {},
            {"metadata": IN_DEFAULT, "spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}},
            id="a claim",
        ),
        pytest.param(
            "CSIDriver",
            {"spec": {"attachRequired": False}},
            {
                "spec": {
                    "attachRequired": False,
                    "podInfoOnMount": False,
                    "storageCapacity": False,
                    "fsGroupPolicy": "ReadWriteOnceWithFSType",
                    "volumeLifecycleModes": ["Persistent"],
                    "requiresRepublish": False,
                    "seLinuxMount": False,
                }
            },
            id="a CSI driver",
        ),
        pytest.param("CSINode", {"metadata": {"name": "n"}}, {"metadata": {"name": "n"}}, id="a kind without defaults"),
        pytest.param(
            "ResourceClaim",
            {
                "spec": {
                    "devices": {
                        "requests": [
                            {"name": "a", "exactly": {"tolerations": [{"key": "k"}]}},
                            {"name": "b", "firstAvailable": [{"name": "c"}, {"name": "d", "allocationMode": "All"}]},
                        ]
                    }
                }
            },
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "a",
                                "exactly": {
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                    "tolerations": [{"key": "k", "operator": "Equal"}],
                                },
                            },
                            {
                                "name": "b",
                                "firstAvailable": [
                                    {"name": "c", "allocationMode": "ExactCount", "count": 1},
                                    {"name": "d", "allocationMode": "All"},
                                ],
                            },
                        ]
                    }
                },
            },
            id="a resource claim",
        ),
        pytest.param(
            "ResourceClaim",
            {"status": {"allocation": {"devices": {"results": [{"device": "d", "tolerations": [{"key": "k"}]}]}}}},
            {
                "metadata": IN_DEFAULT,
                "status": {
                    "allocation": {
                        "devices": {"results": [{"device": "d", "tolerations": [{"key": "k", "operator": "Equal"}]}]}
                    }
                },
            },
            id="an allocated resource claim",
        ),
        pytest.param(
            "ResourceClaimTemplate",
            {"spec": {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"count": 2}}]}}}},
            {
                "metadata": IN_DEFAULT,
                "spec": {
                    "spec": {
                        "devices": {
                            "requests": [{"name": "a", "exactly": {"allocationMode": "ExactCount", "count": 2}}]
                        }
                    }
                },
            },
            id="a template of resource claims",
        ),
        pytest.param(
            "ResourceSlice",
            {"spec": {"devices": [{"name": "d", "nodeAllocatableResourceMappings": {"cpu": {}}}]}},
            {
                "spec": {
                    "devices": [
                        {"name": "d", "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "1"}}}
                    ]
                }
            },
            id="a slice of devices",
        ),
    ],
)
def test_objects_get_their_defaults(kind: str, fields: Json, want: Json) -> None:
    assert defaulted(kind, **fields) == want
    item: KubernetesObject = decode({"apiVersion": VERSIONS[kind], "kind": kind, **want})
    assert default_object(item) is item


def test_pod_level_resources_get_no_defaults_if_the_gate_is_off() -> None:
    pod = convert({"spec": {"resources": {"limits": {"cpu": "1"}}}}, Pod)
    resources = default_pod(pod, pod_level_resources=False).spec.resources
    assert resources is not None
    assert (resources.requests, resources.limits) == ({}, {"cpu": "1"})


@pytest.mark.parametrize(
    ("amounts", "overhead", "want"),
    [
        pytest.param(["0.5Gi", "64Mi"], {"memory": "1Gi"}, True, id="a sum with a fraction of a binary unit"),
        pytest.param(["512Mi", "64Mi"], {"memory": "1Gi"}, False, id="the same without"),
        pytest.param(["0.5Gi", "64Mi"], {"cpu": "1"}, False, id="no overhead with it, so that it does not matter"),
    ],
)
def test_defaulted_pod_level_requests_keep_the_decimal_form_needed_for_overhead(
    amounts: list[str], overhead: dict[str, str], want: bool
) -> None:
    containers = [{"resources": {"requests": {"memory": amount}}} for amount in amounts]
    spec = {"containers": containers, "resources": {"limits": {"cpu": "1"}}, "overhead": overhead}
    resources = default_pod(convert({"spec": spec}, Pod)).spec.resources
    assert resources is not None
    quantity = parse_quantity(resources.requests["memory"])
    assert (quantity.value(), quantity.is_decimal) == (576 * 2**20, want)


def test_defaulting_does_not_modify_the_original_object() -> None:
    pod = convert({"spec": {"containers": [{"resources": {"limits": {"cpu": "1"}}}]}}, Pod)
    before = msgspec.json.encode(pod)
    assert default_pod(pod) != pod
    assert msgspec.json.encode(pod) == before


@pytest.mark.parametrize(
    ("quantity", "want"),
    [
        pytest.param("1", "1", id="whole"),
        pytest.param("1m", "1m", id="thousandths"),
        pytest.param(0.5, 0.5, id="a number"),
        pytest.param("1n", "1m", id="a nano becomes a thousandth"),
        pytest.param("-1n", "-1m", id="a negative nano becomes a negative thousandth"),
        pytest.param("1000.1u", "2m", id="rounded up, not to the nearest"),
        pytest.param("1e-7", "1e-3", id="exponents stay exponents"),
    ],
)
def test_quantities_are_rounded_up_to_milli_units(quantity: QuantityLike, want: QuantityLike) -> None:
    assert round_up_to_milli(quantity) == want


@given(st.integers(-(10**12), 10**12))
def test_rounding_goes_away_from_zero_to_the_next_milli_unit(nanos: int) -> None:
    rounded = nano_value(round_up_to_milli(f"{nanos}n"))
    assert rounded % 10**6 == 0
    assert 0 <= (abs(rounded) - abs(nanos)) < 10**6
    assert rounded * nanos >= 0
