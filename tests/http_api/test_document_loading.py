"""Loading into a running server: all or nothing, while other clients write."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.apiserver.rest.backend import Backend
from bayplan.base.errors import InputError
from bayplan.http_api.document_loading import AT_ONCE, load_into
from tests.apiserver.client import Client, Document, pod

NODES: list[Document] = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}} for number in range(3 * AT_ONCE)
]
BROKEN: Document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
DEFINITION: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ships.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def contents(backend: Backend) -> dict[tuple[str, str, str], bytes]:
    """Return all objects as bytes, without revisions."""
    found: dict[tuple[str, str, str], bytes] = {}
    for table in backend.store.table_names():
        for item in backend.store.between(table):
            raw = item.raw.replace(b'"resourceVersion":"%d"' % item.revision, b"")
            found[table, item.namespace, item.name] = raw
    return found


async def load_during_writes(
    client: Client, documents: list[Document], others: list[Document], *, replace: bool
) -> None:
    """Load documents while another client creates pods, and removes node n0."""
    loading = asyncio.create_task(load_into(client.backend, documents, replace=replace))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for document in others:
        load = load_into(client.backend, [document], replace=False)
        await load
    await loading


def test_objects_are_loaded_while_other_clients_write() -> None:
    client = Client()
    asyncio.run(load_during_writes(client, [*NODES], [pod("other")], replace=False))
    assert len(client.store.table("nodes")) == len(NODES)
    assert client.store.get("pods", ("default", "other")) is not None


@pytest.mark.parametrize("there", [[], [NODES[3]], [NODES[3], DEFINITION]], ids=["nothing", "a node", "more"])
def test_a_failed_load_is_rolled_back_without_undoing_other_writes(there: list[Document]) -> None:
    client = Client()
    asyncio.run(load_into(client.backend, there, replace=False))
    before = contents(client.backend)
    changed: Document = {**NODES[3], "metadata": {"name": "n3", "labels": {"a": "b"}}}
    new: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "new"}}
    documents = [DEFINITION, changed, *NODES, new, BROKEN]
    with pytest.raises(InputError, match=r"items\["):
        asyncio.run(load_during_writes(client, documents, [pod("other")], replace=False))
    after = contents(client.backend)
    assert after.pop(("pods", "default", "other"))
    assert after == before
    served = client.backend.registry.by_kind("example.com/v1", "Ship") is not None
    assert served == (DEFINITION in there)
    client.store.check_invariants()


@pytest.mark.parametrize(
    "replace", [False, True], ids=["in addition to existing objects", "in place of existing objects"]
)
def test_objects_deleted_during_a_failed_load_stay_deleted(replace: bool) -> None:
    client = Client()
    asyncio.run(load_into(client.backend, NODES[:1] if replace else [], replace=False))

    async def load() -> None:
        loading = asyncio.create_task(load_into(client.backend, [*NODES, BROKEN], replace=replace))
        await asyncio.sleep(0)
        resource = client.backend.registry.find("", "v1", "nodes")
        item = client.store.get("nodes", ("", "n0"))
        assert resource is not None
        assert item is not None
        client.backend.remove(resource, client.backend.document(resource, item))
        await loading

    with pytest.raises(InputError):
        asyncio.run(load())
    assert len(client.store.table("nodes")) == 0


def test_a_failed_replacing_load_restores_everything_except_other_writes() -> None:
    client = Client()
    kept: Document = {**NODES[3], "metadata": {"name": "n3", "labels": {"a": "b"}}}
    asyncio.run(load_into(client.backend, [DEFINITION, pod("a"), pod("b"), kept], replace=False))
    before = contents(client.backend)
    others = [pod("other"), {**pod("b"), "spec": {"containers": [{"name": "c", "image": "another"}]}}]
    with pytest.raises(InputError):
        asyncio.run(load_during_writes(client, [*NODES, BROKEN], others, replace=True))
    after = contents(client.backend)
    assert after.pop(("pods", "default", "other"))
    of_another = ("pods", "default", "b")
    assert after.pop(of_another) != before.pop(of_another)
    assert after == before
    assert client.backend.registry.by_kind("example.com/v1", "Ship") is not None
    client.store.check_invariants()
