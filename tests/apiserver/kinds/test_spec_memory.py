"""Repeated specs: the second pod of a template gets the same spec object, whatever changes in the cluster in between."""

from __future__ import annotations

from typing import cast

from tests.apiserver.client import PODS, Client, Document, pod


def created(client: Client, document: Document) -> Document:
    answer = client.post(PODS, document)
    assert answer.status == 201, answer.body
    return answer.document


def test_a_repeated_spec_gives_the_same_pod_but_for_what_the_cluster_decides() -> None:
    client = Client()
    first = created(client, pod("a"))
    default = {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
    assert client.post("/apis/scheduling.k8s.io/v1/priorityclasses", default).status == 201
    second, third = created(client, pod("b")), created(client, pod("c"))
    spec = cast("Document", second["spec"])
    assert (spec.pop("priority"), spec.pop("priorityClassName")) == (5, "usual")
    bare = {name: value for name, value in cast("Document", first["spec"]).items() if name != "priority"}
    assert spec == bare
    assert third["status"] == first["status"]
    managers = [cast("Document", each["metadata"])["managedFields"] for each in (first, third)]
    assert managers[0] == managers[1]


def test_label_keys_are_merged_with_each_pods_own_labels() -> None:
    client = Client()
    constraint = {
        "maxSkew": 1,
        "topologyKey": "z",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["hash"],
    }
    for name, value in (("a", "1"), ("b", "2")):
        document = pod(name, lambda each: each["spec"].update(topologySpreadConstraints=[constraint]))  # type: ignore[attr-defined]
        document["metadata"] = {"name": name, "labels": {"hash": value}}
        answer = client.post(PODS, document)
        found = answer.at("spec.topologySpreadConstraints.0.labelSelector.matchExpressions")
        assert found == [{"key": "hash", "operator": "In", "values": [value]}]


def test_an_invalid_spec_is_refused_every_time() -> None:
    client = Client()
    bad = pod("p", lambda each: each["spec"].update(restartPolicy="Perhaps"))  # type: ignore[attr-defined]
    for _ in range(2):
        assert client.post(PODS, bad).status == 422


def test_fields_are_owned_as_if_nothing_were_remembered() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    variants: list[Document] = [
        {},
        {"labels": {"a": "1"}},
        {"labels": {"a": "2"}},
        {"labels": {"b": ""}},
        {"labels": {}, "annotations": {"a": "1"}},
        {"ownerReferences": [owner]},
        {"ownerReferences": [{**owner, "uid": "v"}]},
        {"finalizers": ["example.com/a"]},
        {"finalizers": ["example.com/b"]},
    ]
    client = Client()
    for number, metadata in enumerate(variants * 2):
        document = pod("p")
        document["metadata"] = {"name": f"p{number}", **metadata}
        remembered, fresh = created(client, document), created(Client(), document)
        managers = [cast("Document", each["metadata"]).get("managedFields") for each in (remembered, fresh)]
        assert managers[0] == managers[1]


def test_a_spec_is_remembered_whatever_node_it_comes_with() -> None:
    client = Client()

    def on(node: str) -> Document:
        return pod(node.lower().strip("_"), lambda each: each["spec"].update(nodeName=node))  # type: ignore[attr-defined]

    first, second, bare = created(client, on("n1")), created(client, on("n2")), created(client, pod("bare"))
    assert [cast("Document", each["spec"]).get("nodeName") for each in (first, second, bare)] == ["n1", "n2", None]
    rest = [{**cast("Document", each["spec"]), "nodeName": ""} for each in (first, second, bare)]
    assert rest[0] == rest[1] == rest[2]
    owned = [str(cast("Document", each["metadata"])["managedFields"]) for each in (first, second, bare)]
    assert owned[0] == owned[1]
    assert ["f:nodeName" in each for each in owned] == [True, True, False]
    for name in ("N3", "n4_"):
        refused = client.post(PODS, on(name))
        assert (refused.status, refused.at("details.causes.0.field")) == (422, "spec.nodeName")
    gated = on("n1")
    cast("Document", gated["spec"])["schedulingGates"] = [{"name": "g"}]
    for _ in range(2):
        assert client.post(PODS, gated).status == 422
