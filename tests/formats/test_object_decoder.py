"""Decoding objects one by one: equal to a plain decode with defaults, equal parts are shared, errors have a path."""

from __future__ import annotations

import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import convert
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

Document = dict[str, object]


def pod(name: str, spec: Document | None = None, **metadata: object) -> Document:
    return {
        "metadata": {"name": name, "namespace": "a", **metadata},
        "spec": {"containers": [{"name": "c", "image": "i"}], **(spec or {})},
        "status": {"phase": "Pending"},
    }


def running(name: str, address: str, **status: object) -> Document:
    """Return a running pod. Running pods differ only in their names, addresses and container IDs."""
    container = {"name": "c", "ready": True, "containerID": f"containerd://{name}", "state": {"running": {}}}
    whole = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "hostIP": "172.16.0.9",
        "hostIPs": [{"ip": "172.16.0.9"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": [container],
        **status,
    }
    return {**pod(name, {"nodeName": "n1"}), "status": whole}


def plainly(document: Document, struct: type[KubernetesObject]) -> KubernetesObject:
    return default_object(convert(document, struct))


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(pod("p"), id="a small one"),
        pytest.param(pod("p", {"nodeName": "n1"}), id="a bound one"),
        pytest.param({**pod("p"), "spec": {"nodeName": "n1", "containers": [{"name": "c"}]}}, id="the node first"),
        pytest.param(pod("p", {"nodeName": "a\\b"}), id="a node whose name is written with an escape"),
        pytest.param(pod("p", {"hostname": 'x"nodeName":"y'}), id="a text that looks like the field"),
        pytest.param(pod("p", labels=None, annotations={"a": "b"}), id="a null in the metadata"),
        pytest.param(pod("p", {"tolerations": None}), id="a null in the spec"),
        pytest.param({"metadata": {"name": "p"}}, id="nothing but a name"),
        pytest.param(running("p", "10.0.0.7"), id="one that runs"),
        pytest.param(running("p", "10.0.0.7", message='"podIP":"10.0.0.8"'), id="a message that looks like an address"),
        pytest.param(running("p", "10.0.0.7", message="a ] and a \\"), id="a message with brackets"),
        pytest.param(running("p", "10.0.0.7", hostIP=None), id="a null in the status"),
        pytest.param(running("p", "", hostIP=""), id="no addresses"),
    ],
)
def test_decoding_a_pod_equals_a_plain_decode(document: Document) -> None:
    decoder = ObjectDecoder()
    raw = msgspec.json.encode(document)
    assert [decoder.decode(raw, Pod) for _ in range(2)] == [plainly(document, Pod)] * 2


def sized(*resources: object, **fields: object) -> Document:
    """Return a spec with one container per argument, which is its `resources`; None for a container without."""
    containers = [
        {"name": f"c{index}", "image": "i", "command": ["/bin/c"], "ports": [{"containerPort": 80}]}
        | ({} if each is None else {"resources": each})
        for index, each in enumerate(resources)
    ]
    return {"containers": containers, **fields}


ONE: Document = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
TWO: Document = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1.0005", "memory": "1Gi"}}
CLAIM = {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}}


@pytest.mark.parametrize(
    ("specs", "want"),
    [
        pytest.param([sized(ONE), sized(TWO)], 2, id="one container"),
        pytest.param([sized(ONE, TWO), sized(TWO, ONE)], 2, id="two containers"),
        pytest.param([sized(None, ONE), sized(ONE, None)], 2, id="one of two containers"),
        pytest.param([sized(ONE), sized({"limits": {"cpu": "2"}})], 2, id="requests from limits"),
        pytest.param([sized(ONE, nodeName="n1"), sized(TWO, nodeName="n2")], 2, id="bound pods"),
        pytest.param([sized(ONE, initContainers=[{"name": "i", "resources": TWO}])], 1, id="init containers"),
        pytest.param(
            [{"initContainers": [{"name": "i", "resources": TWO}], **sized(ONE)}], 1, id="init containers first"
        ),
        pytest.param([sized({**ONE, "claims": [{"name": "c"}]}), sized(ONE)], 1, id="claims"),
        pytest.param([sized(ONE, resources={"limits": {"cpu": "4"}})], 0, id="resources of the pod"),
        pytest.param([sized(ONE, volumes=[{"name": "v", "ephemeral": CLAIM}])], 0, id="resources of a claim"),
        pytest.param([sized(ONE, hostname='x"resources":{"limits":{}}')], 1, id="a text that looks like resources"),
        pytest.param([sized({"limits": {"bayplan.example/place": "0"}}, ONE)], 0, id="the decoder's own mark"),
        pytest.param(
            [sized({"limits": {}}), sized({"limits": None}), sized({"requests": {"a\\b": "1"}})], 1, id="odd ones"
        ),
        pytest.param([sized(*[{"limits": {"cpu": str(n)}} for n in range(12)])], 1, id="twelve containers"),
    ],
)
def test_decoding_specs_with_different_resources_equals_a_plain_decode(specs: list[Document], want: int) -> None:
    decoder = ObjectDecoder()
    for spec in specs:
        document = pod("p", spec)
        assert decoder.decode(msgspec.json.encode(document), Pod) == plainly(document, Pod)
    assert decoder.framed == want


def test_specs_with_different_resources_share_all_other_parts() -> None:
    decoder = ObjectDecoder()
    a, b, c = (decoder.decode(msgspec.json.encode(pod("p", sized(each))), Pod).spec for each in (ONE, TWO, ONE))
    assert a is c
    assert a is not b
    assert a.containers[0].command is b.containers[0].command
    assert a.containers[0].ports is b.containers[0].ports
    assert a.containers[0].resources.limits is b.containers[0].resources.limits
    assert a.tolerations is b.tolerations
    turned = dict(reversed(sized(ONE, hostname="h").items()))
    x, y = (
        decoder.decode(msgspec.json.encode(pod("p", each)), Pod).spec for each in (turned, sized(ONE, hostname="h"))
    )
    assert x is y


def test_statuses_share_conditions_and_container_statuses() -> None:
    decoder = ObjectDecoder()
    documents = [running("a", "10.0.0.1"), running("b", "10.0.0.2"), running("c", "10.0.0.3", hostIP="172.16.0.5")]
    a, b, c = (decoder.decode(msgspec.json.encode(each), Pod).status for each in documents)
    assert [each.pod_ip for each in (a, b, c)] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert [each.host_ip for each in (a, b, c)] == ["172.16.0.9", "172.16.0.9", "172.16.0.5"]
    assert a.conditions is b.conditions is c.conditions
    assert a.container_statuses is b.container_statuses is c.container_statuses


def test_equal_specs_labels_and_owners_are_shared_across_nodes() -> None:
    decoder = ObjectDecoder()
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]
    documents = [
        pod("a", labels={"x": "y"}, ownerReferences=owner),
        pod("b", {"nodeName": "n1"}, labels={"x": "y"}, ownerReferences=owner),
        {**pod("c", labels={"x": "y"}), "spec": {"nodeName": "n2", "containers": [{"name": "c", "image": "i"}]}},
    ]
    a, b, c = (decoder.decode(msgspec.json.encode(each), Pod) for each in documents)
    assert a.spec.containers is b.spec.containers is c.spec.containers
    assert a.metadata.labels is b.metadata.labels is c.metadata.labels
    assert a.metadata.owner_references is b.metadata.owner_references
    assert decoder.decode(msgspec.json.encode(pod("d")), Pod).spec is a.spec


def test_invalid_documents_are_refused_with_their_path() -> None:
    with pytest.raises(InputError, match=r"\$\.spec\.priority"):
        ObjectDecoder().decode(msgspec.json.encode(pod("p", {"priority": "high"})), Pod)
    with pytest.raises(InputError, match="JSON"):
        ObjectDecoder().decode(b"{", Node)


NAMES = st.sampled_from(["a", "b", 'q"uote', "back\\slash", "nodeName", "ü"])


@given(
    st.lists(
        st.tuples(NAMES, NAMES, st.dictionaries(NAMES, NAMES, max_size=2), st.booleans(), st.sampled_from([0, 5])),
        max_size=8,
    )
)
def test_decoding_many_pods_equals_plain_decodes(
    rows: list[tuple[str, str, dict[str, str], bool, int]],
) -> None:
    decoder = ObjectDecoder()
    for name, node, labels, bound, priority in rows:
        spec: Document = {"priority": priority, "hostname": name, **({"nodeName": node} if bound else {})}
        document = pod(name, spec, labels=labels)
        assert decoder.decode(msgspec.json.encode(document), Pod) == plainly(document, Pod)


def test_the_decoder_does_not_retain_the_bytes_of_specs() -> None:
    """A field that the typed form lacks takes no memory, although specs are shared by their bytes."""
    decoder = ObjectDecoder()
    tracemalloc.start()
    try:
        for number in range(50):
            spec = {"nodeSelector": {"number": str(number)}, "unknown": "x" * 50_000}
            decoder.decode(json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode(), Pod)
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()
