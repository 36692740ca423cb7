"""The configuration of the autoscaler: options under cluster-autoscaler's names and with its defaults, and node groups.

Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bayplan.base.errors import InputError
from bayplan.formats.documents import Document
from bayplan.formats.inputs import load_documents
from bayplan.formats.typed_documents import duration_at, read_single, read_typed
from bayplan.objects.meta import ApiStruct
from bayplan.objects.node import Node

API_VERSION = "bayplan.io/v1alpha1"
KIND = "Autoscaler"
GROUP_LABEL = "bayplan.io/node-group"
"""The label of nodes that names their group."""

Expander = Literal["random", "least-waste", "most-pods", "price", "priority"]
Number = Annotated[int, Meta(ge=0)]


class Part(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of the file; unknown fields are refused."""


class Options(Part, frozen=True, kw_only=True):
    """The flags of cluster-autoscaler, in camel case.

    Attributes:
        scan_interval: how often it looks at the cluster. expander: which group grows if several could.
        max_nodes_total: of all groups and other nodes; 0: no limit. new_pod_scale_up_delay: age from which waiting pods count.
        expendable_pods_priority_cutoff: pods below it neither cause a scale-up nor stop a scale-down.
        scale_down_enabled: whether nodes are removed at all.
        scale_down_utilization_threshold: a node is unneeded only below it. scale_down_unneeded_time: and for so long.
        scale_down_delay_after_add, scale_down_delay_after_delete: after the last scale-up, and the last removed node; "" for the
            latter is the scan interval.
        max_empty_bulk_delete: empty nodes that are removed at once; nodes with pods go one by one.
        ignore_daemonsets_utilization: whether pods of DaemonSets don't count as utilization.
        skip_nodes_with_system_pods, skip_nodes_with_local_storage: whether such pods keep their node.
    """

    scan_interval: str = "10s"
    expander: Expander = "random"
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


class GroupSpec(Part, frozen=True, kw_only=True):
    """A node group as written.

    Attributes:
        name: of the group; its nodes have it in the label ``bayplan.io/node-group``.
        min_size, max_size: number of nodes. price: of a node for an hour. priority: for the expander of that name.
        start_up_delay: from the decision until a new node is ready. template: a Node; its name does not count.
    """

    name: str
    min_size: Number = 0
    max_size: Number
    price: Annotated[float, Meta(ge=0.0)] = 0.0
    priority: int = 0
    start_up_delay: str = "2m"
    template: dict[str, Any]


class AutoscalerSpec(Part, frozen=True, kw_only=True):
    """The file."""

    api_version: Literal["bayplan.io/v1alpha1"]
    kind: Literal["Autoscaler"]
    options: Options = Options()
    node_groups: tuple[GroupSpec, ...]


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A node group: see `GroupSpec`; the template is typed."""

    name: str
    min_size: int
    max_size: int
    price: float
    priority: int
    start_up_delay_ns: int
    template: Node


class AutoscalerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration, checked; times in nanoseconds."""

    options: Options
    groups: Sequence[NodeGroup]
    scan_interval_ns: int
    unneeded_ns: int
    delay_after_add_ns: int
    delay_after_delete_ns: int
    new_pod_delay_ns: int


def read_autoscaler(path: Path) -> AutoscalerConfiguration:
    """Read a file.

    Raises:
        InputError: it can't be read, or is no Autoscaler; with file and line.
    """
    return autoscaler_of(read_single(path, kind=KIND))


def autoscaler_of(document: Document) -> AutoscalerConfiguration:
    """Return the configuration of a document.

    Raises:
        InputError: anything is wrong with it; with file and line.
    """
    spec = read_typed(document, AutoscalerSpec, kind=KIND, api_version=API_VERSION)
    names = [group.name for group in spec.node_groups]
    for index, group in enumerate(spec.node_groups):
        path = f"$.nodeGroups[{index}]"
        if group.name in names[:index]:
            raise InputError(f"{KIND} {path}.name", where=document.where(f"{path}.name"), got="a name used before")
        if group.min_size > group.max_size:
            where = document.where(f"{path}.maxSize")
            wanted = f"a number of at least {group.min_size}, the minSize"
            raise InputError(f"{KIND} {path}.maxSize", where=where, wanted=wanted, got=str(group.max_size))
    options = spec.options
    interval_ns = duration_at(document, options.scan_interval, "$.options.scanInterval", kind=KIND)
    if not interval_ns:
        where = document.where("$.options.scanInterval")
        raise InputError(f"{KIND} $.options.scanInterval", where=where, wanted="a duration above 0", got="'0s'")
    after_delete = options.scale_down_delay_after_delete or options.scan_interval
    return AutoscalerConfiguration(
        options=options,
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
