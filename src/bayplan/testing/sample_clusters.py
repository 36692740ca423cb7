"""Small random clusters for checking plugins. They consist of documents, so that they can be reduced and printed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import yaml

from bayplan.base.random_streams import RandomStream
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

Document: TypeAlias = dict[str, Any]

FREED = "freed"
"""Name of a node that is added first and removed again, so that the state has a row without a node."""


@dataclass(frozen=True)
class Vocabulary:
    """The variable contents of random nodes and pods, besides CPU, memory, taints, cordons, priorities and host ports.

    Attributes:
        labels: the possible values by key, for nodes and pods.
        annotations: the possible values by key, for nodes and pods.
        resources: for each extended resource, the possible amounts of nodes; pods request amounts from the first half.
        taints: the possible keys of taints.
    """

    labels: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {
            "topology.kubernetes.io/zone": ("a", "b"),
            "disk": ("ssd", "hdd"),
            "team": ("red", "blue"),
            "app": ("web", "db"),
        }
    )
    annotations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    resources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    taints: Sequence[str] = ("dedicated", "spot")


@dataclass(frozen=True)
class SampleCluster:
    """A cluster and a pod to schedule, as documents.

    Attributes:
        nodes: the nodes.
        running: the pods with a node.
        others: the other objects.
        pod: the pod to schedule.
        newcomer: a pod that checks place on a node to change the cluster.
        freed: whether a node was added before all others and removed again.
    """

    nodes: tuple[Document, ...]
    running: tuple[Document, ...]
    pod: Document
    newcomer: Document
    others: tuple[Document, ...] = ()
    freed: bool = False

    def state(self) -> ClusterState:
        """Return the cluster as a state."""
        state = ClusterState()
        if self.freed:
            state.add_node(typed(node_document(FREED), Node))
        for document in self.nodes:
            state.add_node(typed(document, Node))
        if self.freed:
            state.remove_node(FREED)
        for document in self.others:
            item = default_object(decode(document))
            state.catalog.put(item.key, item)
        for document in self.running:
            pod = typed(document, Pod)
            row = state.nodes.row_of.get(pod.spec.node_name)
            if row is not None:
                state.place(state.pod_info(pod), row)
        return state

    def text(self) -> str:
        """Return the objects as manifests."""
        cluster = [_manifest(document) for document in (*self.others, *self.nodes, *self.running)]
        gone = "# A node was added before the others and removed again.\n" if self.freed else ""
        pod = f"# The pod to be scheduled.\n{_manifest(self.pod)}"
        return gone + "---\n".join((*cluster, pod))


def typed(document: Document, kind: type[Any]) -> Any:
    """Return the typed object of a document, with defaults."""
    item: KubernetesObject = default_object(decode(document))
    assert isinstance(item, kind)
    return item


def node_document(name: str, **allocatable: str) -> Document:
    """Return the document of a node with 4 CPUs and 8 GiB of memory, unless other amounts are given."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"} | allocatable
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, "annotations": {}},
        "spec": {},
        "status": {"allocatable": amounts},
    }


def random_cluster(draw: RandomStream, words: Vocabulary) -> SampleCluster:
    """Return a random cluster with one to six nodes and up to three pods on each."""
    nodes = tuple(_node(draw, words, f"n{number}") for number in range(draw.randint(1, 6)))
    running = tuple(
        _pod(draw, words, f"r{number}-{document['metadata']['name']}", document["metadata"]["name"])
        for document in nodes
        for number in range(draw.choice((0, 0, 1, 1, 2, 3)))
    )
    pod, newcomer = _pod(draw, words, "p"), _pod(draw, words, "newcomer")
    return SampleCluster(nodes, running, pod, newcomer, freed=draw.random() < 0.3)


def _node(draw: RandomStream, words: Vocabulary, name: str) -> Document:
    node = node_document(name, cpu=draw.choice(("1", "4", "16")), memory=draw.choice(("2Gi", "8Gi", "64Gi")))
    node["metadata"]["labels"] |= _some(draw, words.labels)
    node["metadata"]["annotations"] |= _some(draw, words.annotations)
    node["status"]["allocatable"] |= {name: draw.choice(amounts) for name, amounts in words.resources.items()}
    node["status"]["allocatable"]["pods"] = draw.choice(("2", "110"))
    if draw.random() < 0.3:
        effect = draw.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        node["spec"]["taints"] = [{"key": draw.choice(words.taints), "value": "x", "effect": effect}]
    if draw.random() < 0.15:
        node["spec"]["unschedulable"] = True
    if draw.random() < 0.3:
        node["status"]["images"] = [{"names": ["registry.example/app:1"], "sizeBytes": 300_000_000}]
    return node


def _pod(draw: RandomStream, words: Vocabulary, name: str, node: str = "") -> Document:
    container: Document = {"name": "c", "image": draw.choice(("registry.example/app:1", "registry.example/db:2"))}
    requests = {"cpu": draw.choice(("100m", "1", "3")), "memory": draw.choice(("64Mi", "1Gi", "6Gi"))}
    for resource, amounts in words.resources.items():
        if draw.random() < 0.5:
            requests[resource] = draw.choice(amounts[: (len(amounts) + 1) // 2])
    if draw.random() < 0.8:
        container["resources"] = {"requests": requests}
    if draw.random() < 0.2:
        container["ports"] = [{"containerPort": 80, "hostPort": draw.choice((80, 8080))}]
    spec: Document = {"containers": [container], "priority": draw.choice((0, 0, 10, 1000))}
    if node:
        spec["nodeName"] = node
    if draw.random() < 0.25 and words.labels:
        key = draw.choice(sorted(words.labels))
        spec["nodeSelector"] = {key: draw.choice(words.labels[key])}
    if draw.random() < 0.3:
        spec["tolerations"] = [{"key": draw.choice(words.taints), "operator": "Exists"}]
    if draw.random() < 0.25:
        spec["affinity"] = _affinity(draw, words)
    if draw.random() < 0.25:
        spec["topologySpreadConstraints"] = [_constraint(draw, words)]
    metadata: Document = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": _some(draw, words.labels),
        "annotations": _some(draw, words.annotations),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _affinity(draw: RandomStream, words: Vocabulary) -> Document:
    selector = {"matchLabels": _one(draw, words.labels)}
    term = {
        "labelSelector": selector,
        "topologyKey": draw.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone")),
    }
    rule: Document
    if draw.random() < 0.5:
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    else:
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]}
    return {draw.choice(("podAffinity", "podAntiAffinity")): rule}


def _constraint(draw: RandomStream, words: Vocabulary) -> Document:
    return {
        "maxSkew": draw.choice((1, 2)),
        "topologyKey": draw.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone")),
        "whenUnsatisfiable": draw.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": _one(draw, words.labels)},
    }


def _some(draw: RandomStream, words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {key: draw.choice(values) for key, values in sorted(words.items()) if draw.random() < 0.6}


def _one(draw: RandomStream, words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    key = draw.choice(sorted(words) or [""])
    return {key: draw.choice(words[key])} if words else {}


# --- reduction --------------------------------------------------------------------------------------------------------


def smallest(sample: SampleCluster, fails: Callable[[SampleCluster], bool]) -> SampleCluster:
    """Return a reduced cluster that also fails, and from which no single object or optional field can be removed any more."""
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in _smaller(sample):
            if fails(smaller):
                sample, shrunk = smaller, True
                break
    return sample


def _smaller(sample: SampleCluster) -> Iterator[SampleCluster]:
    for number in range(len(sample.nodes)):
        if len(sample.nodes) > 1:
            yield replace(sample, nodes=_without(sample.nodes, number))
    for number in range(len(sample.running)):
        yield replace(sample, running=_without(sample.running, number))
    if sample.freed:
        yield replace(sample, freed=False)
    for pod in _simpler(sample.pod):
        yield replace(sample, pod=pod)
    for place, document in enumerate(sample.nodes):
        for node in _simpler(document):
            yield replace(sample, nodes=(*sample.nodes[:place], node, *sample.nodes[place + 1 :]))
    for place, document in enumerate(sample.running):
        for pod in _simpler(document):
            yield replace(sample, running=(*sample.running[:place], pod, *sample.running[place + 1 :]))
    for pod in _simpler(sample.newcomer):
        yield replace(sample, newcomer=pod)


OPTIONAL = (
    ("spec", "affinity"),
    ("spec", "topologySpreadConstraints"),
    ("spec", "nodeSelector"),
    ("spec", "tolerations"),
    ("spec", "priority"),
    ("spec", "taints"),
    ("spec", "unschedulable"),
    ("status", "images"),
)


def _simpler(document: Document) -> Iterator[Document]:
    for part, name in OPTIONAL:
        if name in document.get(part, {}):
            found = copy.deepcopy(document)
            del found[part][name]
            yield found
    for number, container in enumerate(document["spec"].get("containers", ())):
        for name in ("resources", "ports"):
            if name in container:
                found = copy.deepcopy(document)
                del found["spec"]["containers"][number][name]
                yield found
    for kind in ("labels", "annotations"):
        for key in document["metadata"].get(kind, {}):
            if key != "kubernetes.io/hostname":
                found = copy.deepcopy(document)
                del found["metadata"][kind][key]
                yield found


def _without(documents: tuple[Document, ...], number: int) -> tuple[Document, ...]:
    return documents[:number] + documents[number + 1 :]


def _manifest(document: Document) -> str:
    shown = {name: value for name, value in document.items() if value}
    shown["metadata"] = {name: value for name, value in document["metadata"].items() if value}
    text: str = yaml.safe_dump(shown, sort_keys=False, default_flow_style=None, width=110)
    return text
