"""The compiled affinity terms of pods: equal terms are compiled only once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.objects.pod import Pod
from bayplan.state import affinity_terms
from bayplan.state.affinity_terms import MAX_OBJECTS, pod_terms
from bayplan.testing import make_pod


def near(name: str, app: str = "x", namespace: str = "default") -> Pod:
    return make_pod(name, namespace).pod_affinity({"app": app}).pod_anti_affinity({"app": app}).obj()


def on_node(name: str) -> Pod:
    pod = make_pod(name).pod_affinity({"app": "x"}).pod_anti_affinity({"app": "x"})
    return pod.node_affinity("kubernetes.io/hostname", "n").obj()


@pytest.mark.parametrize(
    ("other", "want"),
    [
        pytest.param(near("b"), 0, id="equal terms are not compiled again"),
        pytest.param(near("b", app="y"), 1, id="other terms are"),
        pytest.param(near("b", namespace="other"), 1, id="a term without namespaces means those of its pod"),
        pytest.param(make_pod("b").obj(), 0, id="a pod without terms needs none"),
        pytest.param(on_node("b"), 0, id="node affinity is no part of the terms"),
    ],
)
def test_equal_affinity_terms_are_compiled_once(other: Pod, want: int) -> None:
    affinity_terms._pod_terms.cache_clear()
    known = pod_terms(near("a"))
    found = pod_terms(other)
    assert affinity_terms._pod_terms.cache_info().misses == 1 + want
    assert (found is known) == (found == known)


def test_terms_of_the_same_affinity_object_are_not_encoded_again() -> None:
    pod = near("a")
    known = pod_terms(pod)
    before = affinity_terms._pod_terms.cache_info()
    assert pod_terms(replace(pod, status=replace(pod.status, phase="Running"))) is known
    assert affinity_terms._pod_terms.cache_info() == before
    moved = replace(pod, metadata=replace(pod.metadata, namespace="other"))
    assert pod_terms(moved) is not known


def test_affinity_objects_of_deleted_pods_are_forgotten() -> None:
    template = near("a")
    assert template.spec.affinity is not None
    for _ in range(MAX_OBJECTS + 10):
        affinity = replace(template.spec.affinity)
        pod_terms(replace(template, spec=replace(template.spec, affinity=affinity)))
        assert 1 <= len(affinity_terms._TERMS_BY_ID) <= MAX_OBJECTS
