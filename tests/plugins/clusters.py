"""Hypothesis strategies for small clusters and pods, with close amounts, so that limits are often met exactly."""

from __future__ import annotations

from hypothesis import strategies as st

from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from tests.plugins.builders import make_node, make_pod, make_state

GPU, NIC = "example.com/gpu", "vendor.io/nic"
ZONES, SIZES = ("a", "b"), ("1", "2", "10", "x")
IMAGES = ("a:latest", "b:1")
Document = dict[str, object]


def subset(amounts: dict[str, tuple[str, ...]]) -> st.SearchStrategy[dict[str, str]]:
    """Draw a subset of the resources with an amount for each."""
    optional = {name: st.sampled_from(values) for name, values in amounts.items()}
    return st.fixed_dictionaries({}, optional=optional)


REQUESTS = subset(
    {
        "cpu": ("0", "500m", "1", "1001m", "2"),
        "memory": ("0", "1", "1Gi", "2Gi"),
        "ephemeral-storage": ("1Gi",),
        GPU: ("0", "1", "2"),
        NIC: ("1",),
    }
)
OFFERS = subset(
    {
        "cpu": ("0", "1", "2", "3500m"),
        "memory": ("1Gi", "2Gi", "4Gi"),
        "ephemeral-storage": ("0", "2Gi"),
        "pods": ("0", "1", "2", "9"),
        GPU: ("0", "1", "2", "3"),
        NIC: ("1",),
    }
)
TAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(("k", "j")),
            "value": st.sampled_from(("", "v")),
            "effect": st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
        }
    ),
    max_size=2,
)
TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from(("k", "node.kubernetes.io/unschedulable")),
            "operator": st.sampled_from(("Exists", "Equal")),
            "value": st.sampled_from(("", "v")),
            "effect": st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
        },
    ),
    max_size=2,
)
PORTS = st.lists(
    st.fixed_dictionaries(
        {
            "containerPort": st.just(1),
            "hostPort": st.sampled_from((0, 80, 81)),
            "hostIP": st.sampled_from(("", "10.0.0.1", "10.0.0.2")),
            "protocol": st.sampled_from(("TCP", "UDP")),
        }
    ),
    max_size=2,
)


def _requirement(operator: str, values: tuple[str, ...]) -> Document:
    return {"key": "size" if operator in ("Gt", "Lt") else "zone", "operator": operator, "values": list(values)}


EXPRESSIONS = st.one_of(
    st.builds(_requirement, st.sampled_from(("In", "NotIn")), st.lists(st.sampled_from(ZONES), min_size=1).map(tuple)),
    st.builds(_requirement, st.sampled_from(("Exists", "DoesNotExist")), st.just(())),
    st.builds(_requirement, st.sampled_from(("Gt", "Lt")), st.sampled_from((("1",), ("5",)))),
)
FIELDS = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.sampled_from((["n0"], ["n1"])),
    }
)
TERMS = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(EXPRESSIONS, max_size=2), "matchFields": st.lists(FIELDS, max_size=1)}
)


@st.composite
def node_affinities(draw: st.DrawFn) -> Document:
    """Draw required node affinity, preferred node affinity, both or neither."""
    affinity: Document = {}
    if draw(st.booleans()):
        terms = draw(st.lists(TERMS, max_size=2))
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if draw(st.booleans()):
        weighted = st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": TERMS})
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = draw(st.lists(weighted, max_size=3))
    return affinity


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node."""
    labels = draw(st.fixed_dictionaries({}, optional={"zone": st.sampled_from(ZONES), "size": st.sampled_from(SIZES)}))
    images = [((image,), draw(st.integers(0, 1200)) << 20) for image in IMAGES if draw(st.booleans())]
    return make_node(
        name,
        draw(OFFERS),
        labels=labels,
        taints=draw(TAINTS),
        unschedulable=draw(st.booleans()),
        images=images,
    )


@st.composite
def pods(draw: st.DrawFn, name: str = "p") -> Pod:
    """Draw a pod of one or two containers."""
    containers = [
        {
            "name": f"c{number}",
            "image": draw(st.sampled_from((*IMAGES, "a"))),
            "ports": draw(PORTS),
            "resources": {"requests": draw(REQUESTS)},
        }
        for number in range(draw(st.integers(1, 2)))
    ]
    return make_pod(
        name,
        containers=containers,
        tolerations=draw(TOLERATIONS),
        nodeSelector=draw(st.sampled_from((None, {}, {"zone": "a"}))),
        affinity={"nodeAffinity": draw(node_affinities())},
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[ClusterState, dict[str, list[Pod]]]:
    """Draw a cluster state with up to four nodes, and the running pods by node; some node may have been deleted."""
    found = [draw(nodes(f"n{number}")) for number in range(draw(st.integers(1, 4)))]
    running: dict[str, list[Pod]] = {node.metadata.name: [] for node in found}
    for number in range(draw(st.integers(0, 4))):
        name = draw(st.sampled_from(sorted(running)))
        running[name].append(draw(pods(f"r{number}")))
    gone = [make_node("gone")] if draw(st.booleans()) else []
    state = make_state([*gone, *found], [(pod, name) for name, held in running.items() for pod in held])
    if gone:
        state.remove_node("gone")
    return state, running
