"""The configuration of the autoscaler: cluster-autoscaler's options with its names and defaults, and node groups.

Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.formats.documents import Document
from bayplan.formats.inputs import load_documents
from bayplan.formats.typed_documents import Part, duration_at, read_single, read_typed
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.names import check_dns1123_subdomain
from bayplan.objects.node import Node, NodeCondition
from bayplan.sim.scaling import GROUP_LABEL

API_VERSION = "bayplan.io/v1alpha1"
KIND = "Autoscaler"
HOSTNAME = "kubernetes.io/hostname"
MAX_NAME_LENGTH = 63 - len("-999999")
"""Maximum length of a group's name: with a number, it is the name of a node and so the value of a label."""
_READY = NodeCondition(type="Ready", status="True", reason="KubeletReady", message="kubelet is posting ready status")
Expander = Literal["random", "least-waste", "most-pods", "price", "priority"]
Policy = Literal["WhenEmpty", "WhenEmptyOrUnderutilized"]
Reason = Literal["Empty", "Underutilized", "Drifted"]
Number = Annotated[int, Meta(ge=0)]
Price = Annotated[float, Meta(ge=0.0)]


class Options(Part, frozen=True, kw_only=True):
    """The flags of cluster-autoscaler, in camel case.

    Attributes:
        scan_interval: the time between scans.
        expander: the expander, which chooses one of several groups.
        cpu_price, memory_price, gpu_price: the price of a core, a GiB and a GPU per hour, for the expander `price`.
        max_nodes_total: the maximum number of nodes in the cluster; 0 for no limit.
        new_pod_scale_up_delay: the minimum age of the waiting pods for which nodes are added.
        expendable_pods_priority_cutoff: pods with a lower priority neither cause a scale-up nor prevent a scale-down.
        scale_down_enabled: whether to remove nodes.
        scale_down_utilization_threshold: nodes with a lower utilization are unneeded if their pods fit elsewhere.
        scale_down_unneeded_time: how long a node must be unneeded before it is removed.
        scale_down_delay_after_add, scale_down_delay_after_delete: the delay after the last scale-up, and after the last
            removal of a node; for the latter, `""` means the scan interval.
        max_empty_bulk_delete: the maximum number of empty nodes to remove at once; nodes with pods are removed one by
            one.
        ignore_daemonsets_utilization: whether pods of DaemonSets do not count in the utilization.
        skip_nodes_with_system_pods, skip_nodes_with_local_storage: whether to keep nodes with pods of kube-system, and with
        pods that have emptyDir or hostPath volumes.
    """

    scan_interval: str = "10s"
    expander: Expander = "random"
    cpu_price: Price = 0.033174
    memory_price: Price = 0.004446
    gpu_price: Price = 0.7
    max_nodes_total: Number = 0
    new_pod_scale_up_delay: str = "0s"
    expendable_pods_priority_cutoff: int = -10
    scale_down_enabled: bool = True
    scale_down_utilization_threshold: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.5
    scale_down_unneeded_time: str = "10m"
    scale_down_delay_after_add: str = "10m"
    scale_down_delay_after_delete: str = ""
    max_empty_bulk_delete: Number = 10
    ignore_daemonsets_utilization: bool = False
    skip_nodes_with_system_pods: bool = True
    skip_nodes_with_local_storage: bool = True


class BudgetSpec(Part, frozen=True, kw_only=True):
    """The number or percentage (rounded up) of a group's nodes that may be disrupted at a time.

    The budget applies to the given reasons, or to all reasons if none are given.
    """

    nodes: Annotated[str, Meta(pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$")] | Number = "10%"
    reasons: tuple[Reason, ...] = ()


class DisruptionSpec(Part, frozen=True, kw_only=True):
    """Consolidation by Karpenter's rules, instead of cluster-autoscaler's scale-down; fields as in a NodePool.

    Attributes:
        consolidation_policy: whether to remove only empty nodes, or all.
        consolidate_after: the time after the last pod was bound to or removed from a node until the node may be disrupted.
        budgets: the budgets of each group; the strictest one applies.
    """

    consolidation_policy: Policy = "WhenEmptyOrUnderutilized"
    consolidate_after: str = "0s"
    budgets: tuple[BudgetSpec, ...] = (BudgetSpec(),)


class GroupSpec(Part, frozen=True, kw_only=True):
    """A node group in the file.

    Attributes:
        name: the name of the group, which is the label `bayplan.io/node-group` of its nodes.
        min_size, max_size: the minimum and maximum number of nodes.
        price: the price of a node per hour.
        priority: the priority of the group for the expander `priority`.
        start_up_delay: the time from the decision until a new node is ready.
        template: a Node, which new nodes copy except for its name.
    """

    name: str
    min_size: Number = 0
    max_size: Number
    price: Price = 0.0
    priority: int = 0
    start_up_delay: str = "2m"
    template: dict[str, Any]


class AutoscalerSpec(Part, frozen=True, kw_only=True):
    """An Autoscaler file."""

    api_version: Literal["bayplan.io/v1alpha1"]
    kind: Literal["Autoscaler"]
    options: Options = Options()
    disruption: DisruptionSpec | None = None
    node_groups: tuple[GroupSpec, ...]


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A node group, as in `GroupSpec`, but with a typed template."""

    name: str
    min_size: int
    max_size: int
    price: float
    priority: int
    start_up_delay_ns: int
    template: Node


class Disruption(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of consolidation, see `DisruptionSpec`."""

    policy: Policy
    consolidate_after_ns: int
    budgets: Sequence[BudgetSpec]

    def allowed(self, nodes: int, reason: Reason) -> int:
        """Return how many of a group's nodes may be disrupted for a reason."""
        found = nodes
        for budget in self.budgets:
            if not budget.reasons or reason in budget.reasons:
                text = str(budget.nodes)
                most = -(-nodes * int(text[:-1]) // 100) if text.endswith("%") else int(text)
                found = min(found, most)
        return found


class AutoscalerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The validated configuration; times in nanoseconds."""

    options: Options
    disruption: Disruption | None
    groups: Sequence[NodeGroup]
    scan_interval_ns: int
    unneeded_ns: int
    delay_after_add_ns: int
    delay_after_delete_ns: int
    new_pod_delay_ns: int


def read_autoscaler(path: Path) -> AutoscalerConfiguration:
    """Read a configuration from a file.

    Raises:
        InputError: the file cannot be read, or is not an Autoscaler; the message names file and line.
    """
    return autoscaler_of(read_single(path, kind=KIND))


def autoscaler_of(document: Document) -> AutoscalerConfiguration:
    """Return the configuration in a document.

    Raises:
        InputError: the document is invalid; the message names file and line.
    """
    spec = read_typed(document, AutoscalerSpec, kind=KIND, api_version=API_VERSION)
    names = [group.name for group in spec.node_groups]
    for index, group in enumerate(spec.node_groups):
        path = f"$.nodeGroups[{index}]"
        if group.name in names[:index]:
            raise InputError(
                f"{KIND} {path}.name",
                where=document.where(f"{path}.name"),
                wanted="a unique name",
                got=f"'{group.name}', which an earlier node group has",
            )
        if len(group.name) > MAX_NAME_LENGTH or check_dns1123_subdomain(group.name):
            wanted = f"at most {MAX_NAME_LENGTH} lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
            where = document.where(f"{path}.name")
            raise InputError(f"{KIND} {path}.name", where=where, wanted=wanted, got=repr(group.name))
        if group.min_size > group.max_size:
            where = document.where(f"{path}.maxSize")
            wanted = f"at least {group.min_size} (minSize)"
            raise InputError(f"{KIND} {path}.maxSize", where=where, wanted=wanted, got=str(group.max_size))
    options = spec.options
    interval_ns = duration_at(document, options.scan_interval, "$.options.scanInterval", kind=KIND)
    if not interval_ns:
        where = document.where("$.options.scanInterval")
        raise InputError(f"{KIND} $.options.scanInterval", where=where, wanted="a duration above 0", got="'0s'")
    after_delete = options.scale_down_delay_after_delete or options.scan_interval
    return AutoscalerConfiguration(
        options=options,
        disruption=None if spec.disruption is None else _disruption(document, spec.disruption),
        groups=[_group(document, group, f"$.nodeGroups[{index}]") for index, group in enumerate(spec.node_groups)],
        scan_interval_ns=interval_ns,
        unneeded_ns=duration_at(
            document, options.scale_down_unneeded_time, "$.options.scaleDownUnneededTime", kind=KIND
        ),
        delay_after_add_ns=duration_at(
            document, options.scale_down_delay_after_add, "$.options.scaleDownDelayAfterAdd", kind=KIND
        ),
        delay_after_delete_ns=duration_at(document, after_delete, "$.options.scaleDownDelayAfterDelete", kind=KIND),
        new_pod_delay_ns=duration_at(
            document, options.new_pod_scale_up_delay, "$.options.newPodScaleUpDelay", kind=KIND
        ),
    )


def _disruption(document: Document, spec: DisruptionSpec) -> Disruption:
    after_ns = duration_at(document, spec.consolidate_after, "$.disruption.consolidateAfter", kind=KIND)
    return Disruption(policy=spec.consolidation_policy, consolidate_after_ns=after_ns, budgets=spec.budgets)


def node_of(group: NodeGroup, name: str) -> Node:
    """Return a new, ready node of a group."""
    template = group.template
    labels = {**template.metadata.labels, HOSTNAME: name, GROUP_LABEL: group.name}
    metadata = ObjectMeta(name=name, labels=labels, annotations=template.metadata.annotations)
    others = tuple(each for each in template.status.conditions if each.type != "Ready")
    return replace(template, metadata=metadata, status=replace(template.status, conditions=(*others, _READY)))


def _group(document: Document, spec: GroupSpec, path: str) -> NodeGroup:
    template = {"apiVersion": "v1", "kind": "Node", **spec.template}
    template["metadata"] = {"name": spec.name, **(template.get("metadata") or {})}
    nodes = load_documents([document.part(f"{path}.template", template)]).nodes
    if len(nodes) != 1:
        where = document.where(f"{path}.template")
        raise InputError(f"{KIND} {path}.template", where=where, wanted="a Node", got=str(template["kind"]))
    return NodeGroup(
        name=spec.name,
        min_size=spec.min_size,
        max_size=spec.max_size,
        price=spec.price,
        priority=spec.priority,
        start_up_delay_ns=duration_at(document, spec.start_up_delay, f"{path}.startUpDelay", kind=KIND),
        template=nodes[0],
    )
