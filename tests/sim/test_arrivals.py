"""The start of virtual time, and the order in which objects are created."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.formats.documents import Source
from bayplan.formats.inputs import Inputs, load_inputs
from bayplan.formats.manifest import LoadedObject
from bayplan.formats.manifests import ManifestLoader
from bayplan.objects.kinds import kind_of
from bayplan.objects.meta import KubernetesObject
from bayplan.sim import arrivals
from bayplan.sim.operations import Apply
from bayplan.testing import make_node, make_object, make_pod

SECOND = 10**9
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"


def pod_text(name: str, created: str, started: str = "") -> str:
    metadata = f"metadata: {{name: {name}, creationTimestamp: '{created}'}}"
    status = f"status: {{startTime: '{started}'}}\n" if started else ""
    return f"apiVersion: v1\nkind: Pod\n{metadata}\nspec: {{containers: [{{name: c, image: i}}]}}\n{status}"


@pytest.mark.parametrize(
    ("documents", "creation_times", "want"),
    [
        pytest.param([NAMESPACE], False, arrivals.DEFAULT_START_NS, id="no times: the default"),
        pytest.param(
            [pod_text("a", "1970-01-01T00:00:05Z"), pod_text("b", "1970-01-01T00:00:03Z")],
            False,
            5 * SECOND,
            id="the latest creation",
        ),
        pytest.param(
            [pod_text("a", "1970-01-01T00:00:05Z", "1970-01-01T00:00:09Z")], False, 9 * SECOND, id="the start of a pod"
        ),
        pytest.param(
            [pod_text("a", "1970-01-01T00:00:05Z", "1970-01-01T00:00:04Z"), pod_text("b", "1970-01-01T00:00:06Z")],
            True,
            5 * SECOND,
            id="with creation times, the earliest creation",
        ),
        pytest.param(
            [pod_text("a", "1970-01-01T00:00:05Z", "1970-01-01T00:00:05.25Z")],
            False,
            6 * SECOND,
            id="rounded up to a whole second",
        ),
        pytest.param([pod_text("a", "<nil>")], False, arrivals.DEFAULT_START_NS, id="an invalid time is ignored"),
    ],
)
def test_virtual_time_starts_after_the_times_of_the_objects(
    documents: list[str], creation_times: bool, want: int, tmp_path: Path
) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text("---\n".join(documents))
    manifest = load_inputs([str(path)]).manifest
    assert arrivals.start_time_ns(manifest, creation_times=creation_times) == want


def owned(kind: str, name: str, created: str, owner: tuple[str, str] | None = None) -> KubernetesObject:
    metadata: dict[str, object] = {"name": name, "namespace": "default", "creationTimestamp": created}
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": owner[1], "controller": True}
        metadata["ownerReferences"] = [reference]
    return make_object({"apiVersion": "v1" if kind == "Pod" else "apps/v1", "kind": kind, "metadata": metadata})


def test_workloads_are_created_with_their_last_pod() -> None:
    """A workload that came first would create its pods a second time."""
    first, later, last = (f"1970-01-01T00:00:0{number}Z" for number in (1, 3, 7))
    objects = [
        owned("Deployment", "web", first),
        owned("ReplicaSet", "web-1", first, ("Deployment", "web")),
        owned("Pod", "web-1-a", later, ("ReplicaSet", "web-1")),
        owned("Pod", "web-1-b", last, ("ReplicaSet", "web-1")),
        owned("ReplicaSet", "loop", first, ("ReplicaSet", "loop")),
    ]
    loader = ManifestLoader(strict=False)
    inputs = Inputs(manifest=loader.finish(), trace=None)
    inputs.manifest.loaded += [LoadedObject(kind_of(type(item)), item, Source("f", 1), b"{}") for item in objects]
    found = {
        operation.item.metadata.name: time_ns // SECOND
        for time_ns, operation in arrivals.operations(inputs, SECOND, creation_times=True)
        if isinstance(operation, Apply)
    }
    assert found == {"default": 1, "web": 7, "web-1": 7, "web-1-a": 3, "web-1-b": 7, "loop": 1}


def test_pods_with_a_node_are_created_before_other_pods_and_after_all_other_objects() -> None:
    items = [make_pod("waits").obj(), make_pod("runs").node("n").obj(), make_node("n").obj()]
    assert [item.metadata.name for item in arrivals.in_order(items)] == ["n", "runs", "waits"]
