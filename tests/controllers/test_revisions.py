"""Revision hashes that are derived from recorded sets."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.controllers.revisions import observed_daemon_set_hash, observed_stateful_set_hash, unknown_revisions
from bayplan.objects.meta import ObjectMeta, OwnerReference
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.workloads import (
    DaemonSet,
    DaemonSetSpec,
    DaemonSetStatus,
    StatefulSet,
    StatefulSetStatus,
    UpdateStrategy,
)


def daemon_pods(text: str) -> list[Pod]:
    """Return pods, oldest first, from ``node:hash`` words."""
    found = []
    for day, word in enumerate(text.split(), 1):
        node, _, hash_ = word.partition(":")
        metadata = ObjectMeta(
            name=f"agent-{day}",
            namespace="default",
            creation_timestamp=f"2026-10-{day:02}T08:00:00Z",
            labels={"controller-revision-hash": hash_} if hash_ else {},
        )
        found.append(Pod(metadata=metadata, spec=PodSpec(node_name=node)))
    return found


@pytest.mark.parametrize(
    ("observed", "updated", "pods", "want"),
    [
        pytest.param(4, 2, "a:old b:old", "old", id="all nodes are updated"),
        pytest.param(4, 1, "a:old b:old c:new", "new", id="one of three nodes is updated"),
        pytest.param(4, 0, "a:old b:old", "", id="no node is updated, as with OnDelete"),
        pytest.param(4, 2, "a:first b:first c:second", "first", id="a rollback makes the older pods current again"),
        pytest.param(4, 1, "a:first b:second", "second", id="the newest pod decides between equal counts"),
        pytest.param(4, 2, "a:first b:second b:second", "second", id="the newest pod decides if no count is equal"),
        pytest.param(4, 1, "a:old b:old a:new c:new", "new", id="a surge counts the oldest pod of a node"),
        pytest.param(4, 2, "a:old b:old :new :new :new", "old", id="unbound pods are on nodes of their own"),
        pytest.param(4, 1, "a: b:new", "new", id="pods without the label are ignored"),
        pytest.param(4, 1, "", "", id="there are no pods"),
        pytest.param(3, 2, "a:old b:old", "", id="the status is of an older generation"),
    ],
)
def test_the_hash_of_a_daemon_set_is_derived_from_the_number_of_updated_nodes(
    observed: int, updated: int, pods: str, want: str
) -> None:
    status = DaemonSetStatus(observed_generation=observed, updated_number_scheduled=updated)
    item = DaemonSet(metadata=ObjectMeta(name="agent", namespace="default", generation=4), status=status)
    assert observed_daemon_set_hash(item, daemon_pods(pods)) == want


@pytest.mark.parametrize(
    ("observed", "revision", "want"),
    [
        pytest.param(4, "db-7c9", "7c9", id="the status names the revision"),
        pytest.param(4, "", "", id="the status names no revision"),
        pytest.param(3, "db-7c9", "", id="the status is of an older generation"),
    ],
)
def test_the_hash_of_a_stateful_set_is_in_its_status(observed: int, revision: str, want: str) -> None:
    status = StatefulSetStatus(observed_generation=observed, update_revision=revision)
    item = StatefulSet(metadata=ObjectMeta(name="db", namespace="default", generation=4), status=status)
    assert observed_stateful_set_hash(item) == want


OBSERVED = DaemonSetStatus(observed_generation=4, updated_number_scheduled=2)


@pytest.mark.parametrize(
    ("status", "strategy", "pods", "want"),
    [
        pytest.param(
            DaemonSetStatus(),
            "RollingUpdate",
            "a:old b:old",
            ["its 2 pods are replaced, because without a status the revision of their template is unknown"],
            id="a set without a status",
        ),
        pytest.param(
            OBSERVED,
            "RollingUpdate",
            "a:",
            [
                "its pod is replaced, because without the label controller-revision-hash the revision of its template is unknown"
            ],
            id="a pod without a revision label",
        ),
        pytest.param(
            DaemonSetStatus(observed_generation=3, updated_number_scheduled=2),
            "RollingUpdate",
            "a:old b:old",
            [
                "its 2 pods are replaced, because with a status of another generation the revision of their template is unknown"
            ],
            id="a status of an older generation",
        ),
        pytest.param(
            DaemonSetStatus(observed_generation=4, desired_number_scheduled=2),
            "RollingUpdate",
            "a:old",
            [
                "its pod is replaced, because with a status that counts no updated pod the revision of its template is unknown"
            ],
            id="a status without the number of updated pods",
        ),
        pytest.param(OBSERVED, "RollingUpdate", "a:old b:old", [], id="the status determines the revision"),
        pytest.param(DaemonSetStatus(), "OnDelete", "a:old b:old", [], id="the set replaces no pods by itself"),
        pytest.param(DaemonSetStatus(), "RollingUpdate", "", [], id="a set without pods"),
    ],
)
def test_pods_of_daemon_sets_that_are_replaced_are_reported(
    status: DaemonSetStatus, strategy: str, pods: str, want: list[str]
) -> None:
    metadata = ObjectMeta(name="agent", namespace="default", uid="agent-uid", generation=4)
    spec = DaemonSetSpec(update_strategy=UpdateStrategy(type=strategy))
    owner = OwnerReference(kind="DaemonSet", name="agent", uid="agent-uid", controller=True)
    owned = [replace(each, metadata=replace(each.metadata, owner_references=(owner,))) for each in daemon_pods(pods)]
    found = unknown_revisions([DaemonSet(metadata=metadata, spec=spec, status=status)], owned)
    assert [problem for _, problem in found] == want
