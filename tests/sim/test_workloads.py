"""The workload of a pod is the topmost of its controlling owners, in whatever order a dump lists them."""

from __future__ import annotations

from itertools import permutations

import pytest

from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.testing.builders import make_node
from tests.analysis.runs import run

Document = dict[str, object]


def owned(kind: str, name: str, owner: tuple[str, str] | None, **spec: object) -> Document:
    metadata: Document = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": f"uid-{owner[1]}"}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    version = "v1" if kind == "Pod" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"app": "web"}}
OBJECTS = [
    owned("Pod", "web-1-x", ("ReplicaSet", "web-1"), nodeName="n", containers=[{"name": "c", "image": "i"}]),
    owned("ReplicaSet", "web-1", ("Deployment", "web"), replicas=1, selector=SELECTOR, template=TEMPLATE),
    owned("Deployment", "web", None, replicas=1, selector=SELECTOR, template=TEMPLATE),
]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_a_pod_belongs_to_its_deployment_in_any_input_order(order: tuple[int, ...]) -> None:
    made: list[KubernetesObject] = [decode(OBJECTS[place], where="test") for place in order]
    result = run(make_node("n").capacity(cpu="4").obj(), *made)
    workload = next(each.workload for each in result.pods if each.key == "default/web-1-x")
    assert workload == "Deployment default/web"
