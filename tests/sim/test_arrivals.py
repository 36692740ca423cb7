"""The start of virtual time, and the order in which objects are created."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.formats.inputs import load_inputs
from bayplan.sim import arrivals
from bayplan.testing import make_node, make_pod

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


def test_pods_with_a_node_are_created_before_other_pods_and_after_all_other_objects() -> None:
    items = [make_pod("waits").obj(), make_pod("runs").node("n").obj(), make_node("n").obj()]
    assert [item.metadata.name for item in arrivals.in_order(items)] == ["n", "runs", "waits"]
