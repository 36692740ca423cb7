"""Small changing clusters, both as columns and as the world of the naive rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.objects.meta import ObjectMeta
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.testing import make_node, make_pod
from tests.oracle.world import World

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
KEYS = (ZONE, HOST, "rack")
NODES = ("n0", "n1", "n2", "n3")
NAMESPACES = ("default", "other", "unknown")
Document = dict[str, Any]
Draw = Callable[..., Any]


class Scene:
    """A cluster state and a naive world that always have the same content."""

    def __init__(self) -> None:
        self.state = ClusterState()
        self.world = World()

    def set_node(self, node: Node) -> None:
        self.state.add_node(node)
        self.world.nodes[node.metadata.name] = node

    def remove_node(self, name: str) -> None:
        self.state.remove_node(name)
        del self.world.nodes[name]
        self.world.pods = {key: entry for key, entry in self.world.pods.items() if entry[1] != name}

    def place(self, pod: Pod, name: str) -> None:
        info = self.state.pod_info(pod)
        if info.key in self.state.pods:
            self.remove_pod(info.key)
        self.state.place(info, self.state.nodes.row_of[name])
        self.world.pods[info.key] = (pod, name)

    def update_pod(self, pod: Pod) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self.state.update_pod(pod)
        self.world.pods[key] = (pod, self.world.pods[key][1])

    def remove_pod(self, key: str) -> None:
        self.state.remove_pod(key)
        del self.world.pods[key]

    def set_namespace(self, name: str, labels: dict[str, str]) -> None:
        self.state.catalog.put(name, Namespace(metadata=ObjectMeta(name=name, labels=labels)))
        self.world.namespaces[name] = labels


APPS = st.sampled_from(("a", "b"))
LABELS: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries({}, optional={"app": APPS, "tier": st.just("x")})
SELECTORS: st.SearchStrategy[Document | None] = st.one_of(
    st.builds(lambda app: {"matchLabels": {"app": app}}, APPS),
    st.sampled_from(
        (
            None,
            {},
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]},
            {"matchLabels": {"app": "a", "tier": "x"}},
        )
    ),
)
NAMESPACE_SELECTORS: st.SearchStrategy[Document] = st.sampled_from(
    (
        {},
        {"matchLabels": {"team": "red"}},
        {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
        {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    )
)


@st.composite
def affinity_terms(draw: st.DrawFn) -> Document:
    """Draw a term of inter-pod affinity."""
    term: Document = {"topologyKey": draw(st.sampled_from(KEYS)), "labelSelector": draw(SELECTORS)}
    reach = draw(st.integers(0, 5))
    if reach in (1, 2):
        term["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), min_size=1, max_size=2, unique=True))
    if reach in (2, 3):
        term["namespaceSelector"] = draw(NAMESPACE_SELECTORS)
    return term


@st.composite
def pod_affinities(draw: st.DrawFn, most: int = 2) -> Document:
    """Draw required and preferred affinity and anti-affinity, some or none of them."""
    found: Document = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules: Document = {}
        if draw(st.integers(0, 2)) == 0:
            rules["requiredDuringSchedulingIgnoredDuringExecution"] = draw(st.lists(affinity_terms(), max_size=most))
        if draw(st.integers(0, 2)) == 0:
            weighted = st.fixed_dictionaries(
                {"weight": st.sampled_from((1, 7, 100)), "podAffinityTerm": affinity_terms()}
            )
            rules["preferredDuringSchedulingIgnoredDuringExecution"] = draw(st.lists(weighted, max_size=most))
        if rules:
            found[kind] = rules
    return found


@st.composite
def affine_pods(draw: st.DrawFn, name: str = "p") -> Pod:
    """Draw a pod that may have inter-pod affinity."""
    pod = make_pod(name, draw(st.sampled_from(NAMESPACES))).label(draw(LABELS))
    return pod.spec(affinity=draw(pod_affinities())).obj()


@st.composite
def spread_constraints(draw: st.DrawFn) -> Document:
    """Draw a topology spread constraint, hard or soft."""
    hard = draw(st.booleans())
    constraint: Document = {
        "maxSkew": draw(st.integers(1, 3)),
        "topologyKey": draw(st.sampled_from(KEYS)),
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": draw(SELECTORS),
    }
    if hard and draw(st.booleans()):
        constraint["minDomains"] = draw(st.integers(1, 3))
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        choice = draw(st.sampled_from((None, "Honor", "Ignore")))
        if choice:
            constraint[policy] = choice
    if draw(st.integers(0, 3)) == 0:
        constraint["matchLabelKeys"] = draw(st.sampled_from((["tier"], ["app", "tier"])))
    return constraint


@st.composite
def spread_pods(draw: st.DrawFn, name: str = "p") -> Pod:
    """Draw a pod that may have topology spread constraints, a node selector and a toleration."""
    pod = make_pod(name, draw(st.sampled_from(NAMESPACES[:2]))).label(draw(LABELS))
    if draw(st.integers(0, 2)) == 0:
        pod.node_selector(disk="ssd")
    if draw(st.booleans()):
        pod.toleration("k", effect="NoSchedule")
    return pod.spec(topologySpreadConstraints=draw(st.lists(spread_constraints(), max_size=3))).obj()


@st.composite
def scene_nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node that may lack a zone or a hostname."""
    labels = {ZONE: st.sampled_from(("z0", "z1")), "rack": st.sampled_from(("r0", "r1")), "disk": st.just("ssd")}
    node = make_node(name).label(draw(st.fixed_dictionaries({}, optional=labels)))
    if draw(st.integers(0, 5)) == 0:
        del node.document()["metadata"]["labels"][HOST]
    for effect in draw(st.sampled_from(((), (), ("NoSchedule",), ("NoExecute",), ("PreferNoSchedule",)))):
        node.taint("k", effect=effect)
    return node.obj()


def change_scene(draw: Draw, scene: Scene, pods: st.SearchStrategy[Pod], number: int) -> None:
    """Change a scene at random: add, update or remove a pod or node, or change a namespace."""
    running, names = sorted(scene.world.pods), sorted(scene.world.nodes)
    kind = draw(st.integers(0, 9))
    if kind <= 3 and names:
        pod = draw(pods)
        pod = replace(pod, metadata=replace(pod.metadata, name=f"r{number}"))
        scene.place(pod, draw(st.sampled_from(names)))
    elif kind <= 5 and running:
        scene.remove_pod(draw(st.sampled_from(running)))
    elif kind == 6 and running:
        pod, _ = scene.world.pods[draw(st.sampled_from(running))]
        changes: Document = {"deletion_timestamp": "2026-01-01T00:00:00Z"}
        if draw(st.booleans()):
            changes = {"labels": draw(LABELS)}
        scene.update_pod(replace(pod, metadata=replace(pod.metadata, **changes)))
    elif kind == 7 and len(names) > 1:
        scene.remove_node(draw(st.sampled_from(names)))
    elif kind == 8:
        name = draw(st.sampled_from(NAMESPACES[:2]))
        scene.set_namespace(name, draw(st.sampled_from(({}, {"team": "red"}, {"team": "blue"}))))
    else:
        scene.set_node(draw(scene_nodes(draw(st.sampled_from(NODES)))))


@st.composite
def scenes(draw: st.DrawFn, pods: st.SearchStrategy[Pod]) -> Scene:
    """Draw a scene with two to four nodes and some pods."""
    scene = Scene()
    scene.set_namespace("default", draw(st.sampled_from(({}, {"team": "red"}))))
    for name in NODES[: draw(st.integers(2, 4))]:
        scene.set_node(draw(scene_nodes(name)))
    for number in range(draw(st.integers(0, 5))):
        change_scene(draw, scene, pods, number)
    return scene
