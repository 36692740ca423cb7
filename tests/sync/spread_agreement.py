"""Check that source and target spread pods alike in random clusters. `make test-sync` compares 500."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from typing import Any

from bayplan.conformance.cases import JsonObject
from bayplan.conformance.cycles import answer_cycle_case
from bayplan.sync.followed_kinds import BY_PLURAL
from tests.sync.follower_fixture import NS, FollowerFixture

Document = dict[str, Any]

KINDS = ("namespaces", "nodes", "services", "replicationcontrollers", "replicasets", "statefulsets", "pods")
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_OWNERS = (
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
)


class Cluster:
    """A random source cluster.

    Args:
        seed: The seed of all random choices.

    Attributes:
        objects: The documents by the plural of their kind.
        waiting: The names of the pods to schedule, in order.
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self.objects: dict[str, list[Document]] = {plural: [] for plural in KINDS}
        self.waiting: list[str] = []
        zones = self._draw.choice((0, 2, 3))
        for number in range(self._draw.randint(3, 7)):
            self._add_node(f"n{number}", f"z{number % zones}" if zones else "")
        for number in range(self._draw.randint(1, 4)):
            self._add_workload(f"w{number}")
        for number in range(self._draw.randint(0, 2)):
            self._add_service(f"s{number}")
        self._draw.shuffle(self.waiting)

    def _add_node(self, name: str, zone: str) -> None:
        amounts = {"cpu": self._draw.choice(("4", "16", "64")), "memory": "64Gi", "pods": "110"}
        labels = {HOSTNAME: name} | ({ZONE: zone} if zone and self._draw.random() < 0.9 else {})
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        self._add(
            "nodes",
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status},
        )

    def _add_workload(self, name: str) -> None:
        version, kind = self._draw.choice(_OWNERS)
        labels = {"app": self._draw.choice(("web", "db", name)), "tier": self._draw.choice(("front", "back"))}
        there = self._draw.random() < 0.9
        if there and kind != "DaemonSet":
            self._add(f"{kind.lower()}s", self._workload(version, kind, name, labels))
        nodes = [each["metadata"]["name"] for each in self.objects["nodes"]]
        for number in range(self._draw.randint(1, 6)):
            owner = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
            owned = self._draw.random() < 0.9
            runs = self._draw.random() < 0.6
            full = f"{name}-{number}"
            metadata: Document = {"name": full, "namespace": NS, "labels": labels}
            if owned:
                metadata["ownerReferences"] = [owner]
            spec: Document = {"containers": [{"name": "c", "image": "app:1"}]}
            if runs:
                spec["nodeName"] = self._draw.choice(nodes)
            else:
                self.waiting.append(full)
            status = {"phase": "Running" if runs else "Pending"}
            self._add("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})

    def _workload(self, version: str, kind: str, name: str, labels: dict[str, str]) -> Document:
        keys = self._draw.choice((("app",), ("tier",), ("app", "tier")))
        chosen = {key: labels[key] for key in keys}
        by_expression = self._draw.random() < 0.3
        expressions = [{"key": key, "operator": "In", "values": [value, "x"]} for key, value in chosen.items()]
        label_selector: Document = {"matchExpressions": expressions} if by_expression else {"matchLabels": chosen}
        spec: Document = {
            "replicas": 3,
            "selector": chosen if kind == "ReplicationController" else label_selector,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}},
        }
        if kind == "StatefulSet":
            spec["serviceName"] = name
        return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NS}, "spec": spec}

    def _add_service(self, name: str) -> None:
        selector = self._draw.choice(({"app": "web"}, {"tier": "front"}, {"app": "db", "tier": "back"}))
        spec = {"selector": selector, "ports": [{"port": 80}]}
        self._add(
            "services",
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NS}, "spec": spec},
        )

    def _add(self, plural: str, document: Document) -> None:
        self.objects[plural].append(document)

    def documents(self) -> list[Document]:
        """Return all objects."""
        return [document for plural in KINDS for document in self.objects[plural]]


def follow(cluster: Cluster) -> FollowerFixture:
    """Return a follower whose target has been synced with this source."""
    fixture = FollowerFixture(KINDS)
    for plural in KINDS:
        for document in cluster.objects[plural]:
            fixture.put(plural, document)
    fixture.start()
    fixture.work()
    assert not fixture.follower.problems
    return fixture


def local_documents(fixture: FollowerFixture) -> list[Document]:
    """Return all objects of the target, with their kinds and API versions."""
    return [
        {"apiVersion": kind.api_version, "kind": kind.kind, **document}
        for plural in KINDS
        for kind in [BY_PLURAL[plural]]
        for document in fixture.here.list(plural)[0]
    ]


def decisions(documents: Sequence[Document], waiting: Sequence[str]) -> list[Any]:
    """Return the decisions on the waiting pods in turn: scores of default spreading, total scores, and node."""
    pods = {each["metadata"]["name"]: each for each in documents if each["kind"] == "Pod"}
    objects = [each for each in documents if each["kind"] != "Pod" or each["metadata"]["name"] not in waiting]
    case: JsonObject = {"id": "spread", "objects": list(objects), "pods": [pods[name] for name in waiting]}
    answer: Any = answer_cycle_case(case)
    assert answer["error"] is None, answer["error"]
    cycles: list[Any] = answer["cycles"]
    return cycles


def without_owners(documents: Sequence[Document]) -> list[Document]:
    """Return copies of the objects in which pods have no owners, as copies were written by earlier versions."""
    bare = []
    for document in documents:
        metadata = {name: value for name, value in document["metadata"].items() if name != "ownerReferences"}
        bare.append({**document, "metadata": metadata} if document["kind"] == "Pod" else document)
    return bare


def main() -> int:
    """Compare random clusters; return the number of those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    differ, owners_matter, decided = 0, 0, 0
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        cluster = Cluster(seed)
        there = decisions(cluster.documents(), cluster.waiting)
        here = decisions(local_documents(follow(cluster)), cluster.waiting)
        decided += len(there)
        owners_matter += there != decisions(without_owners(cluster.documents()), cluster.waiting)
        if there != here:
            differ += 1
            print(f"seed {seed}: the follower decides otherwise")
    print(
        f"{chosen.cases} clusters from seed {chosen.seed}, {decided} pods: {differ} differ; "
        f"without owners {owners_matter} would"
    )
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
