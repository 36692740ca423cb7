"""Accepted names of definitions of custom resources: conflicts, their end, and the work that they cost."""

from __future__ import annotations

import pytest

from bayplan.apiserver.rest import backend
from tests.apiserver.client import MERGE, Client, Document

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS, TOOLS = "/apis/example.com/v1/gadgets", "/apis/example.com/v1/tools"


def define(client: Client, plural: str, kind: str, *finalizers: str, **names: object) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    named = {"plural": plural, "singular": plural, "kind": kind, "listKind": f"{plural.title()}List", **names}
    spec = {"group": "example.com", "scope": "Namespaced", "names": named, "versions": [version]}
    metadata = {"name": f"{plural}.example.com", "finalizers": list(finalizers)}
    assert client.post(DEFINITIONS, {"metadata": metadata, "spec": spec}).status == 201


def undefine(client: Client, plural: str) -> None:
    assert client.delete(f"{DEFINITIONS}/{plural}.example.com").status == 200


def status_of(client: Client, path: str) -> int:
    return client.get(path).status


@pytest.fixture
def client() -> Client:
    client = Client()
    define(client, "gadgets", "Gadget", shortNames=["g", "ga"])
    return client


def test_a_short_name_in_use_is_free_after_the_deletion_of_its_definition(client: Client) -> None:
    define(client, "tools", "Tool", shortNames=["t", "ga", "g"])
    tools = f"{DEFINITIONS}/tools.example.com"
    answer = client.get(tools)
    assert answer.at("status.conditions.0.message") == '["ga" is already in use, "g" is already in use]'
    undefine(client, "gadgets")
    answer = client.get(tools)
    assert (answer.at("status.conditions.0.reason"), answer.at("status.conditions.1.status")) == ("NoConflicts", "True")


def test_a_name_that_an_update_frees_can_be_used_by_a_new_definition(client: Client) -> None:
    client.patch(f"{DEFINITIONS}/gadgets.example.com", {"spec": {"names": {"shortNames": ["g"]}}}, MERGE)
    define(client, "tools", "Tool", shortNames=["ga"])
    assert status_of(client, TOOLS) == 200


def test_of_two_definitions_that_wait_for_a_name_the_first_gets_it(client: Client) -> None:
    define(client, "tools", "Gadget")
    define(client, "parts", "Gadget")
    undefine(client, "gadgets")
    assert (status_of(client, TOOLS), status_of(client, "/apis/example.com/v1/parts")) == (404, 200)
    undefine(client, "parts")
    assert status_of(client, TOOLS) == 200


def test_a_terminating_definition_that_was_never_served_stays_so_when_its_name_becomes_free(client: Client) -> None:
    define(client, "tools", "Gadget", "example.com/f")
    undefine(client, "tools")
    undefine(client, "gadgets")
    answer = client.get(f"{DEFINITIONS}/tools.example.com")
    assert (answer.status, answer.at("status.conditions.0.reason")) == (200, "KindConflict")
    assert status_of(client, TOOLS) == 404


def test_a_restore_serves_only_the_definitions_that_were_established(client: Client) -> None:
    define(client, "tools", "Gadget")
    before = client.store.snapshot()
    undefine(client, "gadgets")
    assert (status_of(client, GADGETS), status_of(client, TOOLS)) == (404, 200)

    client.store.restore(before)
    assert (status_of(client, GADGETS), status_of(client, TOOLS)) == (200, 404)
    define(client, "parts", "Gadget")
    assert status_of(client, "/apis/example.com/v1/parts") == 404
    undefine(client, "gadgets")
    assert status_of(client, "/apis/example.com/v1/parts") == 200


class Work:
    """Counts decoded objects and served definitions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decoded = self.served = 0
        decode, serve = backend._decode, backend.Backend.serve_custom

        def counted_decode(raw: bytes) -> object:
            self.decoded += 1
            return decode(raw)

        def counted_serve(server: backend.Backend, definition: Document) -> None:
            self.served += 1
            serve(server, definition)

        monkeypatch.setattr(backend, "_decode", counted_decode)
        monkeypatch.setattr(backend.Backend, "serve_custom", counted_serve)

    def take(self) -> tuple[int, int]:
        found = (self.decoded, self.served)
        self.decoded = self.served = 0
        return found


def test_the_work_of_a_write_does_not_depend_on_the_number_of_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    def work_with(others: int) -> list[tuple[int, int]]:
        client = Client()
        for index in range(others):
            define(client, f"others{index}", f"Other{index}")
        work.take()
        define(client, "gadgets", "Gadget", shortNames=["g"])
        found = [work.take()]
        client.patch(f"{DEFINITIONS}/gadgets.example.com", {"spec": {"names": {"shortNames": ["h"]}}}, MERGE)
        found.append(work.take())
        undefine(client, "gadgets")
        return [*found, work.take()]

    work = Work(monkeypatch)
    few, many = work_with(1), work_with(30)
    assert few == many
    assert few[0][1] == 1


def test_a_deletion_reads_only_the_definitions_that_wait_for_a_name(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(client, "tools", "Tool")
    define(client, "parts", "Tool")
    work = Work(monkeypatch)
    undefine(client, "gadgets")
    without = work.take()
    define(client, "gadgets", "Gadget")
    define(client, "boxes", "Gadget")
    work.take()
    undefine(client, "gadgets")
    assert work.take()[1] == without[1] + 1


def test_an_accepted_name_of_a_definition_cannot_become_its_short_name(client: Client) -> None:
    path = f"{DEFINITIONS}/gadgets.example.com"
    client.patch(path, {"spec": {"names": {"shortNames": ["g", "gadgets"]}}}, MERGE)
    answer = client.get(path)
    assert answer.at("status.conditions.0.message") == '"gadgets" is already in use'
    assert answer.at("status.acceptedNames.shortNames") == ["g", "ga"]
    client.patch(path, {"spec": {"names": {"shortNames": ["g"]}}}, MERGE)
    answer = client.get(path)
    assert answer.at("status.conditions.0.reason") == "NoConflicts"


PROTECTED = 'protected groups must have approval annotation "api-approved.kubernetes.io"'
SOURCE = "see https://github.com/kubernetes/enhancements/pull/1111"


@pytest.mark.parametrize(
    ("annotation", "want"),
    [
        ("https://a.example/b", ("True", "ApprovedAnnotation", "approved in https://a.example/b")),
        ("ftp://a.example", ("True", "ApprovedAnnotation", "approved in ftp://a.example")),
        ("unapproved, a trial", ("False", "UnapprovedAnnotation", 'not approved: "unapproved, a trial"')),
        ("", ("False", "MissingAnnotation", f"{PROTECTED}, {SOURCE}")),
        (
            "yes",
            (
                "False",
                "InvalidAnnotation",
                f'{PROTECTED} with either a URL or a reason starting with "unapproved", {SOURCE}',
            ),
        ),
    ],
)
def test_a_definition_in_a_protected_group_shows_its_approval(annotation: str, want: tuple[str, str, str]) -> None:
    client = Client()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "fires", "kind": "Fire"}
    spec: Document = {"group": "e.k8s.io", "scope": "Cluster", "names": names, "versions": [version]}
    metadata: Document = {"name": "fires.e.k8s.io", "annotations": {"api-approved.kubernetes.io": annotation}}

    invalid = client.post(DEFINITIONS, {"metadata": metadata, "spec": spec}).status
    assert invalid == (201 if want[1] in ("ApprovedAnnotation", "UnapprovedAnnotation") else 422)
    if invalid == 422:
        # A change of the status does not check the annotation.
        approved: Document = {**metadata, "annotations": {"api-approved.kubernetes.io": "https://a.example"}}
        assert client.post(DEFINITIONS, {"metadata": approved, "spec": spec}).status == 201
        path = f"{DEFINITIONS}/fires.e.k8s.io/status"
        assert client.patch(path, {"metadata": {"annotations": metadata["annotations"]}}, MERGE).status == 200

    found = client.get(f"{DEFINITIONS}/fires.e.k8s.io").at("status.conditions.0")
    assert isinstance(found, dict)
    assert found["type"] == "KubernetesAPIApprovalPolicyConformant"
    assert tuple(found[name] for name in ("status", "reason", "message")) == want


def test_a_client_cannot_write_invalid_accepted_names(client: Client) -> None:
    found = client.patch(f"{DEFINITIONS}/gadgets.example.com/status", {"status": {"acceptedNames": {"kind": "A b"}}})

    assert found.status == 422
    assert found.at("details.causes.0.field") == "status.acceptedNames.kind"
