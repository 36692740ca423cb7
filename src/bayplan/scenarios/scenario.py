"""The structs of a scenario file, from which `docs/scenario.schema.json` is generated."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from bayplan.formats.typed_documents import Part

API_VERSION = "bayplan.io/v1alpha1"
KIND = "Scenario"

ZONE = "topology.kubernetes.io/zone"
RACK = "topology.kubernetes.io/rack"

SETTLED = "settled"
"""The value of `wait` that means "until nothing changes any more"."""

Duration: TypeAlias = Annotated[str, Meta(description="A duration: 90s, 1h30m, 7d.")]
Pods: TypeAlias = Annotated[
    str,
    Meta(
        description="Pods: a workload (deployment/web, deployment/shop/web), a pod (web-1, shop/web-1), "
        "a pattern (shop/*), or label:key=value."
    ),
]
Nodes: TypeAlias = Annotated[
    str, Meta(description="Nodes: a name, a pattern (pool-a-*), label:key=value, or label:key.")
]
Target: TypeAlias = Annotated[
    str,
    Meta(
        description="An object as kubectl names it: deployment/web, pod/shop/web-1, node/n1; the name may be a pattern."
    ),
]
Objects: TypeAlias = Annotated[
    tuple[str | dict[str, Any], ...],
    Meta(description="Objects, or paths of manifests, relative to this file."),
]
Number: TypeAlias = Annotated[int, Meta(ge=0)]
Count: TypeAlias = Annotated[Number | None, Meta(description="Exactly this many.")]
AtLeast: TypeAlias = Annotated[Number | None, Meta(description="This many or more.")]
AtMost: TypeAlias = Annotated[Number | None, Meta(description="This many or fewer.")]
Share: TypeAlias = Annotated[float, Meta(ge=0.0)]


# --- assertions -------------------------------------------------------------------------------------------------------


class PlacedCheck(Part, frozen=True, kw_only=True):
    """Pods have a node, or had one until they finished. Without a number, all pods must, and there must be at least one."""

    pods: Pods = "*"
    count: Count = None
    at_least: AtLeast = None
    at_most: AtMost = None


class WaitingCheck(Part, frozen=True, kw_only=True):
    """Pods wait for a node. Without a number, all pods must wait, and there must be at least one."""

    pods: Pods = "*"
    count: Count = None
    at_least: AtLeast = None
    at_most: AtMost = None
    reason: Annotated[str, Meta(description="Text that the scheduler's message or the explanation contains.")] = ""


class SpreadCheck(Part, frozen=True, kw_only=True):
    """Placed pods are spread over the domains of a label."""

    pods: Pods = "*"
    over: Annotated[str, Meta(description="A label of nodes.")] = ZONE
    max_skew: Annotated[
        Annotated[int, Meta(ge=0)],
        Meta(description="Maximum difference between the numbers of pods in the fullest and the emptiest domain."),
    ] = 1
    domains: Annotated[Number | None, Meta(description="Minimum number of domains with pods.")] = None


class OnNodesCheck(Part, frozen=True, kw_only=True):
    """All pods are on some of these nodes."""

    pods: Pods = "*"
    nodes: Nodes


class EvictionsCheck(Part, frozen=True, kw_only=True):
    """The number of evictions since the start: by preemption, taints, drains, and with deleted nodes."""

    pods: Pods = "*"
    count: Count = None
    at_least: AtLeast = None
    at_most: AtMost = None


class WaitingTimeCheck(Part, frozen=True, kw_only=True):
    """The waiting times of pods until they got a node; for waiting pods, the time so far."""

    pods: Pods = "*"
    at_most: Duration
    percentile: Annotated[
        int, Meta(ge=1, le=100, description="The percentile of the waiting times; 100 is the longest.")
    ] = 100


class UtilisationCheck(Part, frozen=True, kw_only=True):
    """The requested share of a resource on nodes."""

    resource: Annotated[str, Meta(description="A resource: cpu, memory, pods, nvidia.com/gpu.")] = "cpu"
    nodes: Nodes = "*"
    at_least: Annotated[Share | None, Meta(description="A share: 0.4 is 40 %.")] = None
    at_most: Annotated[Share | None, Meta(description="A share: 0.8 is 80 %.")] = None


class NodesCheck(Part, frozen=True, kw_only=True):
    """The number of nodes."""

    nodes: Nodes = "*"
    count: Count = None
    at_least: AtLeast = None
    at_most: AtMost = None


class CostCheck(Part, frozen=True, kw_only=True):
    """The cost so far of the nodes in the autoscaler's groups."""

    group: Annotated[str, Meta(description="A node group; all of them by default.")] = "*"
    at_most: Annotated[float, Meta(ge=0.0, description="The maximum cost, in the unit of the groups' prices.")]


class Check(Part, frozen=True, kw_only=True):
    """One assertion, with exactly one field."""

    placed: PlacedCheck | None = None
    waiting: WaitingCheck | None = None
    spread: SpreadCheck | None = None
    on_nodes: OnNodesCheck | None = None
    evictions: EvictionsCheck | None = None
    waiting_time: WaitingTimeCheck | None = None
    utilisation: UtilisationCheck | None = None
    nodes: NodesCheck | None = None
    cost: CostCheck | None = None


# --- actions ----------------------------------------------------------------------------------------------------------


class Patch(Part, frozen=True, kw_only=True):
    """A patch of an object, as by ``kubectl patch``."""

    target: Target
    patch: Annotated[
        dict[str, Any] | list[Any], Meta(description="The fields to change, or the operations of a JSON patch.")
    ]
    type: Literal["strategic", "merge", "json"] = "strategic"


class Scale(Part, frozen=True, kw_only=True):
    """The number of replicas to set for a workload, as by ``kubectl scale``."""

    target: Target
    replicas: Number


class Failure(Part, frozen=True, kw_only=True):
    """Nodes that fail or recover, with exactly one field."""

    nodes: Annotated[Nodes | None, Meta(description="Nodes by name, pattern or label.")] = None
    zone: Annotated[str | None, Meta(description=f"The nodes of a zone, by the label {ZONE}.")] = None
    rack: Annotated[str | None, Meta(description="The nodes of a rack, by the label in rackLabel.")] = None


class Step(Part, frozen=True, kw_only=True):
    """One step: when it begins, and at most one action. By default, it begins when the previous step has ended."""

    name: Annotated[str, Meta(description="The purpose of the step; shown in results.")] = ""
    at: Annotated[Duration | None, Meta(description="Begin at this time after the start of the scenario.")] = None
    after: Annotated[Duration | None, Meta(description="Begin this long after the end of the previous step.")] = None
    when: Annotated[tuple[Check, ...], Meta(description="Begin as soon as all of these are true.")] = ()
    timeout: Annotated[
        Duration, Meta(description="Time limit of when, wait and drain, after which the step fails.")
    ] = "1h"
    create: Annotated[Objects, Meta(description="Create objects; it is an error if one exists.")] = ()
    apply: Annotated[Objects, Meta(description="Create objects, or change those that exist.")] = ()
    patch: Patch | None = None
    scale: Scale | None = None
    delete: Annotated[tuple[Target, ...], Meta(description="Delete objects and their dependents.")] = ()
    drain: Annotated[
        Nodes | None, Meta(description="Cordon nodes and evict their pods, as disruption budgets allow.")
    ] = None
    cordon: Annotated[Nodes | None, Meta(description="Mark nodes unschedulable.")] = None
    uncordon: Annotated[Nodes | None, Meta(description="Mark nodes schedulable again.")] = None
    fail: Annotated[Failure | None, Meta(description="Stop nodes: they become unreachable.")] = None
    restore: Annotated[Failure | None, Meta(description="Make failed nodes ready again.")] = None
    configure: Annotated[
        str | dict[str, Any] | None,
        Meta(description="A KubeSchedulerConfiguration, or its path, that replaces the current one."),
    ] = None
    wait: Annotated[str | None, Meta(description=f"A duration, or '{SETTLED}': until nothing changes any more.")] = None
    assert_: Annotated[
        tuple[Check, ...], Meta(description="Checks that must be true now; each false one is reported.")
    ] = msgspec.field(default=(), name="assert")


class Scenario(Part, frozen=True, kw_only=True):
    """A scenario: a cluster, and steps in virtual time."""

    api_version: Literal["bayplan.io/v1alpha1"]
    kind: Literal["Scenario"]
    name: Annotated[str, Meta(description="The name shown in results; the file's name by default.")] = ""
    cluster: Annotated[
        Objects, Meta(description="The cluster at the start: objects, or paths of manifests, dumps and traces.")
    ] = ()
    config: Annotated[str | None, Meta(description="Path of a KubeSchedulerConfiguration.")] = None
    feature_gates: Annotated[str, Meta(description="Feature gates, as for kube-scheduler: A=true,B=false.")] = ""
    plugins: Annotated[
        tuple[str, ...], Meta(description="Plugins for every profile: FILE.py:CLASS or installed name.")
    ] = ()
    seed: Annotated[int, Meta(description="Seed for tie-breaking and generated names.")] = 0
    workload: Annotated[
        str | dict[str, Any] | None, Meta(description="A Workload, or its path, that shapes the trace in cluster.")
    ] = None
    autoscaler: Annotated[
        str | dict[str, Any] | None, Meta(description="An Autoscaler, or its path: node groups that grow and shrink.")
    ] = None
    descheduler: Annotated[
        str | dict[str, Any] | None, Meta(description="A DeschedulerPolicy, or its path: evicts badly placed pods.")
    ] = None
    descheduling_interval: Annotated[Duration, Meta(description="Time between two runs of the descheduler.")] = "5m"
    rack_label: Annotated[str, Meta(description="The label of nodes whose value is the rack.")] = RACK
    steps: Annotated[tuple[Step, ...], Meta(description="The steps, in order.")] = ()


ACTIONS = (
    "create",
    "apply",
    "patch",
    "scale",
    "delete",
    "drain",
    "cordon",
    "uncordon",
    "fail",
    "restore",
    "configure",
    "wait",
    "assert",
)
"""The fields of a step that are actions, by their names in the file."""


def action_of(step: Step) -> str:
    """Return the action of a step, by its name in the file; "" if the step only waits for its time or conditions."""
    return next((name for name in ACTIONS if _is_set(step, name)), "")


def actions_of(step: Step) -> list[str]:
    """Return all actions of a step. More than one is an error."""
    return [name for name in ACTIONS if _is_set(step, name)]


def _is_set(step: Step, name: str) -> bool:
    value = getattr(step, "assert_" if name == "assert" else name)
    return value is not None and value != ()
