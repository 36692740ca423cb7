"""Decoding: the table of kinds, nulls, errors with paths; upstream's field names; every recorded object."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from types import NoneType
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.objects.kinds import (
    KINDS,
    convert,
    decode,
    decode_json,
    describe,
    encode,
    find_kind,
    kind_of,
)
from bayplan.objects.meta import ApiStruct, KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.resource import ResourceSlice
from bayplan.objects.workloads import Deployment
from tests.objects.golden.files import read_golden
from tests.shared import recording

Json = dict[str, Any]


def pod_document(**spec: object) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}


# --- the table ---


def test_every_kind_is_in_the_table_once() -> None:
    names = [(version, row.kind) for row in KINDS for version in row.api_versions]
    assert len(names) == len(set(names))
    assert len({row.plural for row in KINDS}) == len(KINDS)
    for row in KINDS:
        assert kind_of(row.struct) is row
        assert find_kind(row.api_version, row.kind) is row
        assert row.kind == row.struct.__name__


@pytest.mark.parametrize(
    ("api_version", "kind", "want"),
    [
        pytest.param("apps/v1beta1", "Deployment", "apps/v1", id="an older version"),
        pytest.param("extensions/v1beta1", "DaemonSet", "apps/v1", id="an older group"),
        pytest.param("batch/v1beta1", "CronJob", "batch/v1", id="a beta of batch"),
        pytest.param("policy/v1beta1", "PodDisruptionBudget", "policy/v1", id="a beta of policy"),
        pytest.param("resource.k8s.io/v1beta2", "ResourceSlice", "resource.k8s.io/v1", id="the same shape of devices"),
        pytest.param("resource.k8s.io/v1beta1", "ResourceSlice", None, id="another shape of devices"),
        pytest.param(
            "resource.k8s.io/v1beta1",
            "DeviceClass",
            "resource.k8s.io/v1",
            id="a class, whose fields are the same in v1",
        ),
        pytest.param("resource.k8s.io/v1beta2", "DeviceTaintRule", "resource.k8s.io/v1beta2", id="not in v1 yet"),
        pytest.param("v1", "Deployment", None, id="a kind of another group"),
        pytest.param("v1", "pod", None, id="a kind in lower case"),
    ],
)
def test_api_versions_with_the_same_fields_are_accepted(api_version: str, kind: str, want: str | None) -> None:
    row = find_kind(api_version, kind)
    assert (row and row.api_version) == want


# --- decoding and encoding ---


def test_a_document_is_decoded_to_the_struct_of_its_kind() -> None:
    item = decode(
        {"apiVersion": "apps/v1beta2", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 0}}
    )
    assert isinstance(item, Deployment)
    assert item.spec.replicas == 0
    assert encode(item) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 0},
    }


def test_unknown_fields_are_ignored() -> None:
    assert decode({**pod_document(unknown={"a": [None]}), "extra": 1}) == decode(pod_document())


def test_irregular_field_names_match_the_api() -> None:
    source = {"volumeID": "v", "fsType": "ext4"}
    pod = decode(pod_document(volumes=[{"name": "a", "awsElasticBlockStore": source}], hostPID=True))
    assert isinstance(pod, Pod)
    disk = pod.spec.volumes[0].aws_elastic_block_store
    assert disk is not None
    assert (disk.volume_id, disk.fs_type, pod.spec.host_pid) == ("v", "ext4", True)
    spec = encode(pod)["spec"]
    assert spec == {"volumes": [{"name": "a", "awsElasticBlockStore": source}], "hostPID": True}


def test_json_decodes_like_a_document() -> None:
    documents = [pod_document(priority=5), pod_document(containers=None)]
    for document in documents:
        assert decode_json(json.dumps(document), Pod) == decode(document)
    assert decode_json(json.dumps(documents).encode(), list[Pod]) == [decode(document) for document in documents]


# --- nulls ---


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param({"metadata": None, "spec": None, "status": None}, {}, id="whole parts"),
        pytest.param({"metadata": {"labels": None, "creationTimestamp": None}}, {}, id="maps and timestamps"),
        pytest.param({"metadata": {"labels": {"a": None}}}, {"metadata": {"labels": {"a": ""}}}, id="a label's value"),
        pytest.param({"spec": {"containers": None, "hostNetwork": None}}, {}, id="lists and flags"),
        pytest.param({"spec": {"containers": [None]}}, {"spec": {"containers": [{}]}}, id="an element"),
        pytest.param(
            {"spec": {"containers": [{"args": ["a", None], "resources": {"requests": {"cpu": None}}}]}},
            {"spec": {"containers": [{"args": ["a", ""], "resources": {"requests": {"cpu": "0"}}}]}},
            id="a text and an amount",
        ),
        pytest.param({"spec": {"nodeSelector": {"a": None}}}, {"spec": {"nodeSelector": {"a": ""}}}, id="a selector"),
        pytest.param(
            {"spec": {"affinity": {"nodeAffinity": None}, "unknown": None}}, {"spec": {"affinity": {}}}, id="pointers"
        ),
    ],
)
def test_null_values_are_decoded_as_in_go(document: Json, want: Json) -> None:
    got, wanted = convert(document, Pod), convert(want, Pod)
    if "cpu" in str(want):
        amount = got.spec.containers[0].resources.requests["cpu"]
        assert amount in (0, "0")
        got_text, wanted_text = str(got).replace("'cpu': 0", "'cpu': '0'"), str(wanted)
        assert got_text == wanted_text
    else:
        assert got == wanted


RICH = pod_document(
    containers=[
        {
            "name": "c",
            "image": "i",
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}},
        }
    ],
    volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    nodeSelector={"a": "b"},
    tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 3}],
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}}}
            ]
        },
    },
    priority=3,
    overhead={"cpu": "1m"},
)


def struct_fields(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all struct fields in a document (not of the keys of maps)."""
    maps = {"limits", "requests", "nodeSelector", "matchLabels", "overhead"}
    if isinstance(value, dict):
        for name, item in value.items():
            yield (*path, name)
            if name not in maps:
                yield from struct_fields(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from struct_fields(item, (*path, index))


def changed_at(path: tuple[str | int, ...], *, remove: bool) -> Json:
    document = deepcopy(RICH)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    if remove:
        del place[path[-1]]
    else:
        place[path[-1]] = None
    return document


def test_a_null_field_decodes_like_a_missing_field() -> None:
    paths = [path for path in struct_fields(RICH) if path[0] in ("metadata", "spec")]
    assert len(paths) > 30
    for path in paths:
        assert decode(changed_at(path, remove=False)) == decode(changed_at(path, remove=True)), path


# --- errors ---


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(
            pod_document(containers=[{"resources": {"requests": {"memory": "1Gi", "cpu": "2 cores"}}}]),
            "Pod default/web $.spec.containers[0].resources.requests.cpu: expected a quantity, got '2 cores'; try '2'",
            id="a unit in a quantity",
        ),
        pytest.param(
            pod_document(overhead={"memory": "4 GiB"}),
            "Pod default/web $.spec.overhead.memory: expected a quantity, got '4 GiB'; try '4Gi'",
            id="bytes in a quantity",
        ),
        pytest.param(
            pod_document(overhead={"memory": "lots"}),
            "Pod default/web $.spec.overhead.memory: expected a quantity, got 'lots'",
            id="a quantity that can't be guessed",
        ),
        pytest.param(
            pod_document(overhead={"memory": True}),
            "Pod default/web $.spec.overhead.memory: expected a quantity, got true",
            id="a flag for a quantity",
        ),
        pytest.param(
            pod_document(containers={"name": "c"}),
            "Pod default/web $.spec.containers: expected a list, got an object with name",
            id="an object for a list",
        ),
        pytest.param(
            pod_document(containers=[{}, 3]),
            "Pod default/web $.spec.containers[1]: expected an object, got 3",
            id="a number for an object",
        ),
        pytest.param(
            pod_document(priority="10"),
            "Pod default/web $.spec.priority: expected an integer, got '10'; try 10",
            id="a text for a number",
        ),
        pytest.param(
            pod_document(priority=2**31),
            "Pod default/web $.spec.priority: expected an integer of at most 2147483647, got 2147483648",
            id="a number beyond 32 bits",
        ),
        pytest.param(
            pod_document(priority=1.5),
            "Pod default/web $.spec.priority: expected an integer, got 1.5",
            id="a fraction for a number",
        ),
        pytest.param(
            pod_document(hostNetwork="True"),
            "Pod default/web $.spec.hostNetwork: expected true or false, got 'True'; try true",
            id="a text for a flag",
        ),
        pytest.param(
            pod_document(nodeSelector={"a": "b", "disk": 1}),
            "Pod default/web $.spec.nodeSelector.disk: expected a string, got 1; try '1'",
            id="a number for a label's value",
        ),
        pytest.param(
            pod_document(nodeSelector={"a": True}),
            "Pod default/web $.spec.nodeSelector.a: expected a string, got true; try 'true'",
            id="a flag for a label's value",
        ),
        pytest.param(
            pod_document(nodeSelector={1: "b"}),
            "Pod default/web $.spec.nodeSelector: expected a string as key, got 1; try '1'",
            id="a number for a key",
        ),
        pytest.param(
            pod_document(nodeSelector=None, priority="x"),
            "Pod default/web $.spec.priority: expected an integer, got 'x'",
            id="nulls do not hide errors",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": ["a"]},
            "Pod $.metadata: expected an object, got a list of 1",
            id="metadata that is a list",
        ),
        pytest.param(
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 1.5}},
            "PodDisruptionBudget $.spec.minAvailable: expected an integer or a string, got 1.5",
            id="a choice of types",
        ),
        pytest.param(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "s"},
                "spec": {"devices": [{"attributes": {"ok": {"int": 1}, "model": {"int": "x"}}}]},
            },
            "ResourceSlice s $.spec.devices[0].attributes.model.int: expected an integer, got 'x'",
            id="a map of objects",
        ),
        pytest.param(
            {"apiVersion": "v1beta7", "kind": "Pod", "metadata": {"generateName": "p-"}},
            "Pod p- $.kind: expected a known kind, got v1beta7 Pod; try apiVersion v1",
            id="an unknown version",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Foo"}, "Foo $.kind: expected a known kind, got v1 Foo", id="an unknown kind"
        ),
        pytest.param(
            {"kind": "Pod"},
            "Pod: expected an object with apiVersion and kind, got an object with kind",
            id="no version",
        ),
        pytest.param(
            {}, "object: expected an object with apiVersion and kind, got an object without fields", id="nothing"
        ),
    ],
)
def test_a_decoding_error_contains_the_path(document: Json, want: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(want)}$"):
        decode(document)
    with pytest.raises(InputError, match=f"^a.yaml:3 {re.escape(want)}$"):
        decode(document, where="a.yaml:3")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param('{"spec":', "JSON: got Input data was truncated", id="half a document"),
        pytest.param("[]", "$: expected an object, got a list of 0", id="a list"),
        pytest.param(
            '{"spec":{"priority":"x"}}', "$.spec.priority: expected an integer, got 'x'", id="a value of the wrong type"
        ),
    ],
)
def test_a_json_decoding_error_contains_the_path(text: str, want: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(want)}$"):
        decode_json(text, Pod)


def test_long_values_are_truncated_in_errors() -> None:
    with pytest.raises(InputError) as caught:
        decode(pod_document(priority="x" * 500))
    assert caught.value.got == "'" + "x" * 76 + "..."


def test_describe_returns_kind_and_name() -> None:
    assert describe({"kind": "Node", "metadata": {"name": "n"}}) == "Node n"
    assert describe({"metadata": {"name": 5}}) == "object"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(list(struct_fields(RICH))), JSON_VALUES)
def test_any_value_in_any_field_decodes_or_raises_input_error(path: tuple[str | int, ...], value: object) -> None:
    document = changed_at(path, remove=False)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    try:
        item = decode(document)
    except InputError:
        return
    assert decode(encode(item)) == item


# --- upstream's fields ---

OTHER_NAMES = {
    "ResourceClaimReference": "ResourceClaim",
    "RollingUpdate": "RollingUpdateDeployment",
    "UpdateStrategy": "DeploymentStrategy",
    "StatefulSetRollingUpdate": "RollingUpdateStatefulSetStrategy",
    "PodFailurePolicyOnExitCodes": "PodFailurePolicyOnExitCodesRequirement",
    "PodFailurePolicyOnPodCondition": "PodFailurePolicyOnPodConditionsPattern",
}
# Fields that are None if the document lacks them, though no pointers in Go: times, and nil maps or lists that some rule
# distinguishes from empty ones.
NONE_FOR_NIL = {
    ("PodSpec", "nodeSelector"),
    ("ServiceSpec", "selector"),
    ("ReplicationControllerSpec", "selector"),
    ("NodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"),
    ("NodeSelectorRequirement", "values"),
    *(("DeviceAttribute", name) for name in ("ints", "bools", "strings", "versions")),
}


def all_structs(base: type[ApiStruct] = ApiStruct) -> Iterator[type[ApiStruct]]:
    for struct in base.__subclasses__():
        if struct is not KubernetesObject and struct.__module__.startswith("bayplan.objects."):
            yield struct
        yield from all_structs(struct)


def test_struct_fields_match_upstreams_names_and_pointers() -> None:
    upstream: dict[str, list[dict[str, str]]] = {}
    for line in read_golden("fields"):
        upstream.setdefault(line["type"].split(".")[-1], []).append(line["fields"])
    seen = 0
    for struct in all_structs():
        fields = {item.encode_name: item for item in msgspec.structs.fields(struct)}
        candidates = upstream[OTHER_NAMES.get(struct.__name__, struct.__name__)]
        types = next((types for types in candidates if set(fields) <= set(types)), None)
        assert types is not None, (struct, [set(fields) - set(types) for types in candidates])
        for name, item in fields.items():
            pointer = types[name].startswith("*") or types[name] == "v1.Time"
            nullable = NoneType in get_args(item.type)
            assert nullable == (pointer or (struct.__name__, name) in NONE_FOR_NIL), (struct, name, types[name])
            seen += 1
    assert seen > 500


# --- recorded objects ---


def objects_in(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, dict):
        if {"apiVersion", "kind", "metadata"} <= value.keys():
            yield value
            return
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from objects_in(item)


FAMILIES = ["node_resources_fit", "node_affinity", "taint_toleration", "volumes", "dynamic_resources", "profiles"]
FAMILIES += ["node_name_ports", "inter_pod_affinity", "image_locality", "nominated"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recorded_object_round_trips(family: str) -> None:
    decoded = 0
    with gzip.open(recording("cycles", f"{family}.jsonl.gz"), "rt") as lines:
        for line in lines:
            for document in objects_in(json.loads(line)["case"]):
                item = decode(document)
                assert decode(encode(item)) == item
                decoded += 1
    assert decoded > 300


def test_default_structs_are_shared_but_maps_are_not() -> None:
    one, two = convert({}, Pod), convert({}, Pod)
    assert one.spec is two.spec
    assert one.metadata is two.metadata
    one_status, two_status = convert({"status": {}}, Node).status, convert({"status": {}}, Node).status
    assert one_status.capacity is not two_status.capacity


def test_missing_specs_get_the_defaults_of_their_struct() -> None:
    assert convert({}, PodDisruptionBudget).spec.selector is None
    assert convert({}, ResourceSlice).spec.devices == ()
