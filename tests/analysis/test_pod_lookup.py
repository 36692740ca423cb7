"""Look up the pods that a text refers to."""

from __future__ import annotations

import pytest

from bayplan.analysis.pod_lookup import find_pods
from bayplan.base.errors import InputError
from bayplan.objects.meta import ObjectMeta, OwnerReference
from bayplan.objects.pod import Pod
from bayplan.sim.result import PodTimeline


def life(key: str, workload: str = "", owner: str = "") -> PodTimeline:
    kind, _, name = owner.partition("/")
    owners = (OwnerReference(kind=kind, name=name, controller=True),) if owner else ()
    namespace, _, short = key.partition("/")
    pod = Pod(metadata=ObjectMeta(name=short, namespace=namespace, owner_references=owners))
    return PodTimeline(key=key, uid=key, workload=workload, priority=0, scheduler_name="", arrived_ns=0, pod=pod)


PODS = [
    life("shop/web-7d4-abc", "Deployment shop/web", "ReplicaSet/web-7d4"),
    life("shop/web-7d4-xyz", "Deployment shop/web", "ReplicaSet/web-7d4"),
    life("shop/db-0", "StatefulSet shop/db", "StatefulSet/db"),
    life("test/db-0", "StatefulSet test/db", "StatefulSet/db"),
    life("test/runner"),
    life("test/runner-2"),
    life("test/again"),
    life("test/again"),
    life("deployment/web"),
]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("shop/db-0", ["shop/db-0"]),
        ("runner", ["test/runner"]),
        ("web-7d4-x", ["shop/web-7d4-xyz"]),
        ("shop/web-7d4-a", ["shop/web-7d4-abc"]),
        ("again", ["test/again", "test/again"]),
        ("Deployment/web", ["shop/web-7d4-abc", "shop/web-7d4-xyz"]),
        ("deployments/shop/web", ["shop/web-7d4-abc", "shop/web-7d4-xyz"]),
        ("replicaset/web-7d4", ["shop/web-7d4-abc", "shop/web-7d4-xyz"]),
        ("statefulset/db", ["shop/db-0", "test/db-0"]),
        ("statefulset/test/db", ["test/db-0"]),
        ("deployment/web", ["deployment/web"]),
        ("deploy/web", ["shop/web-7d4-abc", "shop/web-7d4-xyz"]),
        ("pod/runner", ["test/runner"]),
    ],
    ids=[
        "namespace and name",
        "a name that is a prefix of another name",
        "a prefix of a name",
        "a prefix of a name, with its namespace",
        "a pod that was created again",
        "a workload",
        "a workload in the plural, with its namespace",
        "an owner between",
        "workloads of two namespaces",
        "one of them",
        "a pod goes before a workload",
        "an abbreviated kind",
        "a pod with its kind",
    ],
)
def test_find_pods_returns_matching_pods(text: str, want: list[str]) -> None:
    assert [pod.key for pod in find_pods(text, PODS)] == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("db-0", "expected the name of one pod, got 'db-0', which could be shop/db-0 or test/db-0; try 'shop/db-0'"),
        ("web-", "which could be shop/web-7d4-abc or shop/web-7d4-xyz; try"),
        ("runer", "try 'test/runner'"),
        ("shop/runner", "try 'test/runner'"),
        ("deploymnt/web", "try 'deployment/web'"),
        ("statefulset/dd", "try 'statefulset/shop/db'"),
        ("zzz", "expected the name of one of 8 pods, or of a workload, got 'zzz'; try bayplan waiting"),
    ],
    ids=[
        "two namespaces",
        "a prefix of two pods",
        "a slip",
        "the wrong namespace",
        "a misspelt kind",
        "a misspelt workload",
        "no similar name",
    ],
)
def test_ambiguous_and_unknown_names_are_refused_with_a_suggestion(text: str, want: str) -> None:
    with pytest.raises(InputError) as refused:
        find_pods(text, PODS)
    assert want in str(refused.value)


def test_surplus_candidates_are_counted_in_the_error() -> None:
    pods = [life(f"d/web-{number}") for number in range(9)]
    with pytest.raises(InputError, match="d/web-4 or 4 more"):
        find_pods("web", pods)


def test_find_pods_refuses_a_run_without_pods() -> None:
    with pytest.raises(InputError, match="try input with pods"):
        find_pods("web", [])


def test_without_pods_the_error_does_not_mention_a_run() -> None:
    with pytest.raises(InputError, match=r"^pod: expected a pod, but there are none, got 'web'; try input with pods$"):
        find_pods("web", [])
