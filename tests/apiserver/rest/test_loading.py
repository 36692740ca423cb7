"""Loading of manifests and dumps: which fields and objects are kept, generated or refused."""

from __future__ import annotations

import pytest

from bayplan.apiserver.rest.loading import Loaded, load_documents, summary_of
from bayplan.base.errors import InputError
from bayplan.formats.manifest import PlainObject
from tests.apiserver.client import Client, Document, pod

NODE: Document = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"capacity": {"cpu": "4000m"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


def load(client: Client, *documents: Document) -> Loaded:
    sources = [PlainObject(document, f"file.yaml:{number}") for number, document in enumerate(documents, 1)]
    return load_documents(client.backend, sources)


def test_loaded_nodes_are_ready_and_pods_get_their_priority_and_namespace() -> None:
    client = Client()
    late = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    document = pod("p", lambda each: each["spec"].update(priorityClassName="high"))  # type: ignore[attr-defined]
    document["metadata"] = {"name": "p", "namespace": "team"}
    loaded = load(client, document, NODE, late)
    assert loaded.counts == {"Namespace": 1, "PriorityClass": 1, "Node": 1, "Pod": 1}
    assert summary_of(loaded) == "1 Namespace, 1 Node, 1 Pod, 1 PriorityClass"
    node = client.get("/api/v1/nodes/n")
    assert node.at("spec.taints") is None
    assert node.at("status.allocatable") == {"cpu": "4"}
    found = client.get("/api/v1/namespaces/team/pods/p")
    assert (found.at("spec.priority"), found.at("status.phase")) == (7, "Pending")


def test_loading_a_dump_preserves_uid_creation_time_and_status() -> None:
    client = Client()
    document = pod("p", lambda each: each["spec"].update(nodeName="n"))  # type: ignore[attr-defined]
    document["metadata"] = {
        "name": "p",
        "uid": "u-1",
        "resourceVersion": "99999",
        "creationTimestamp": "2020-01-01T00:00:00Z",
    }
    document["status"] = {"phase": "Running"}
    load(client, document)
    found = client.get("/api/v1/namespaces/default/pods/p")
    assert found.at("metadata.uid") == "u-1"
    assert found.at("metadata.creationTimestamp") == "2020-01-01T00:00:00Z"
    assert found.at("metadata.resourceVersion") == str(client.store.revision)
    assert found.at("status") == {"phase": "Running"}


def test_loading_an_object_again_replaces_it_and_preserves_the_uid() -> None:
    client = Client()
    load(client, NODE)
    uid = client.get("/api/v1/nodes/n").at("metadata.uid")
    assert load(client, NODE).replaced == 1
    assert client.get("/api/v1/nodes/n").at("metadata.uid") == uid


def test_unknown_fields_are_reported() -> None:
    loaded = load(Client(), {**NODE, "nope": 1})
    assert loaded.unknown == {"file.yaml:1 Node/n": ['unknown field "nope"']}


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(
            {"kind": "Nope"},
            r"^file\.yaml:1 kind: expected a kind that this API serves, got Nope without an apiVersion; try 'kind: Node'$",
            id="an unknown kind",
        ),
        pytest.param(
            {**NODE, "spec": []}, r"^file\.yaml:1 Node: json: cannot unmarshal array", id="a value of the wrong type"
        ),
        pytest.param(pod("A_b"), r"^file\.yaml:1 Pod \"A_b\" is invalid: metadata.name", id="a bad name"),
    ],
)
def test_invalid_documents_are_reported_with_file_and_position(document: Document, want: str) -> None:
    with pytest.raises(InputError, match=want):
        load(Client(), document)
