"""DeschedulerPolicy files (descheduler/v1alpha2), limited to the supported plugins.

Source: https://github.com/kubernetes-sigs/descheduler/blob/master/README.md
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.selectors import parse_labels
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.formats.documents import Document
from bayplan.formats.typed_documents import Part, check_fields, placed, read_single, read_typed
from bayplan.objects.kinds import convert
from bayplan.objects.meta import LabelSelector
from bayplan.objects.selectors import Selector

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"
Number: TypeAlias = Annotated[int, Meta(ge=0)]
Percent: TypeAlias = Annotated[float, Meta(ge=0.0, le=100.0)]


class Namespaces(Part, frozen=True, kw_only=True):
    """A choice of namespaces: only some, or all except some."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def has(self, namespace: str) -> bool:
        """Return whether a namespace is chosen."""
        return (not self.include or namespace in self.include) and namespace not in self.exclude


class PriorityThreshold(Part, frozen=True, kw_only=True):
    """Pods with this priority or a higher one are not evicted."""

    value: int | None = None
    name: str = ""


class EvictorArgs(Part, frozen=True, kw_only=True):
    """DefaultEvictor: decides which pods may be evicted at all."""

    evict_local_storage_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    node_fit: bool = False
    min_replicas: Number = 0
    label_selector: LabelSelector | None = None
    priority_threshold: PriorityThreshold | None = None


class PodLifeTimeArgs(Part, frozen=True, kw_only=True):
    """PodLifeTime: evicts pods older than a given number of seconds."""

    max_pod_life_time_seconds: Number
    states: tuple[str, ...] = ()
    label_selector: LabelSelector | None = None
    namespaces: Namespaces = Namespaces()


class RemoveDuplicatesArgs(Part, frozen=True, kw_only=True):
    """RemoveDuplicates: evicts pods of the same owner that share a node."""

    exclude_owner_kinds: tuple[str, ...] = ()
    namespaces: Namespaces = Namespaces()


class TopologySpreadArgs(Part, frozen=True, kw_only=True):
    """RemovePodsViolatingTopologySpreadConstraint: evicts pods from the fullest domains."""

    constraints: tuple[Literal["DoNotSchedule", "ScheduleAnyway"], ...] = ("DoNotSchedule",)
    label_selector: LabelSelector | None = None
    namespaces: Namespaces = Namespaces()
    topology_balance_node_fit: bool = True


class LowNodeUtilizationArgs(Part, frozen=True, kw_only=True):
    """LowNodeUtilization: evicts pods from overutilized nodes if there are underutilized nodes.

    Thresholds are percentages.
    """

    thresholds: dict[str, Percent]
    target_thresholds: dict[str, Percent]
    use_deviation_thresholds: bool = False
    number_of_nodes: Number = 0
    evictable_namespaces: Namespaces = Namespaces()


PluginArgs: TypeAlias = (
    EvictorArgs | PodLifeTimeArgs | RemoveDuplicatesArgs | TopologySpreadArgs | LowNodeUtilizationArgs
)

EVICTOR = "DefaultEvictor"
PLUGINS: Mapping[str, type[PluginArgs]] = {
    EVICTOR: EvictorArgs,
    "PodLifeTime": PodLifeTimeArgs,
    "RemoveDuplicates": RemoveDuplicatesArgs,
    "RemovePodsViolatingTopologySpreadConstraint": TopologySpreadArgs,
    "LowNodeUtilization": LowNodeUtilizationArgs,
}
"""The supported plugins, and the classes of their arguments."""

DESCHEDULE = ("PodLifeTime",)
BALANCE = ("RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint", "LowNodeUtilization")


class PluginConfig(Part, frozen=True, kw_only=True):
    """The arguments of a plugin."""

    name: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class PluginSet(Part, frozen=True, kw_only=True):
    """The plugins at an extension point."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class ProfilePlugins(Part, frozen=True, kw_only=True):
    """The plugins of a profile, by extension point."""

    filter: PluginSet = PluginSet()
    pre_eviction_filter: PluginSet = PluginSet()
    deschedule: PluginSet = PluginSet()
    balance: PluginSet = PluginSet()


class ProfileSpec(Part, frozen=True, kw_only=True):
    """A profile in the file."""

    name: str = ""
    plugin_config: tuple[PluginConfig, ...] = ()
    plugins: ProfilePlugins = ProfilePlugins()


class PolicySpec(Part, frozen=True, kw_only=True):
    """A DeschedulerPolicy file."""

    api_version: Literal["descheduler/v1alpha2"]
    kind: Literal["DeschedulerPolicy"]
    node_selector: str | None = None
    max_no_of_pods_to_evict_per_node: Number | None = None
    max_no_of_pods_to_evict_per_namespace: Number | None = None
    max_no_of_pods_to_evict_total: Number | None = None
    profiles: tuple[ProfileSpec, ...]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile: the evictor's arguments, and the enabled plugins with their arguments, in order."""

    evictor: EvictorArgs
    plugins: tuple[tuple[str, PluginArgs], ...]


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A validated policy. `node_selector` is compiled; it selects all nodes if the file has none."""

    spec: PolicySpec
    node_selector: Selector
    profiles: tuple[Profile, ...]


def read_policy(path: Path) -> Policy:
    """Read a policy from a file.

    Raises:
        InputError: the file cannot be read, or is not a supported policy; the message names file and line.
    """
    return policy_of(read_single(path, kind=KIND))


def policy_of(document: Document) -> Policy:
    """Return the policy in a document.

    Raises:
        InputError: the document is invalid; the message names file and line.
    """
    spec = read_typed(document, PolicySpec, kind=KIND, api_version=API_VERSION)
    profiles = [_profile(document, each, f"$.profiles[{index}]") for index, each in enumerate(spec.profiles)]
    return Policy(spec=spec, node_selector=_node_selector(document, spec.node_selector or ""), profiles=tuple(profiles))


def _node_selector(document: Document, text: str) -> Selector:
    try:
        return Selector(parse_labels(text))
    except ApiError as problem:
        where = document.where("$.nodeSelector")
        raise InputError(
            f"{KIND} $.nodeSelector", where=where, wanted="a label selector", got=f"{text!r}: {problem}"
        ) from None


def _profile(document: Document, spec: ProfileSpec, path: str) -> Profile:
    # The arguments of the other plugins have no defaults.
    arguments: dict[str, PluginArgs] = {
        EVICTOR: EvictorArgs(),
        "RemoveDuplicates": RemoveDuplicatesArgs(),
        "RemovePodsViolatingTopologySpreadConstraint": TopologySpreadArgs(),
    }
    for index, config in enumerate(spec.plugin_config):
        here = f"{path}.pluginConfig[{index}]"
        struct = PLUGINS[_known(document, config.name, f"{here}.name", tuple(PLUGINS))]
        part = document.part(f"{here}.args", config.args) if config.args else document
        if config.args:
            check_fields(part, struct, kind=config.name)
        try:
            arguments[config.name] = convert(config.args, struct, what=config.name)
            _check_arguments(config.name, arguments[config.name])
        except InputError as problem:
            raise placed(problem, part) from None
    plugins: list[tuple[str, PluginArgs]] = []
    for point, enabled, known in (
        ("deschedule", spec.plugins.deschedule.enabled, DESCHEDULE),
        ("balance", spec.plugins.balance.enabled, BALANCE),
    ):
        for index, name in enumerate(enabled):
            here = f"{path}.plugins.{point}.enabled[{index}]"
            _known(document, name, here, known)
            if name not in arguments:
                wanted = f"arguments of {name} in pluginConfig"
                raise InputError(f"{KIND} {here}", where=document.where(here), wanted=wanted, got="none")
            plugins.append((name, arguments[name]))
    evictor = arguments[EVICTOR]
    assert isinstance(evictor, EvictorArgs)
    return Profile(evictor=evictor, plugins=tuple(plugins))


def _check_arguments(name: str, arguments: PluginArgs) -> None:
    """Check the arguments of a plugin as the descheduler does.

    Raises:
        InputError: they contradict each other.
    """
    namespaces = getattr(arguments, "namespaces", Namespaces())
    if namespaces.include and namespaces.exclude:
        raise InputError(f"{name} $.namespaces", got="both", wanted="include or exclude")
    match arguments:
        case EvictorArgs(priority_threshold=PriorityThreshold(value=int(), name=str(text))) if text:
            raise InputError(f"{name} $.priorityThreshold", got="both", wanted="value or name")
        case LowNodeUtilizationArgs():
            _check_thresholds(name, arguments)


def _check_thresholds(name: str, arguments: LowNodeUtilizationArgs) -> None:
    low, high = arguments.thresholds, arguments.target_thresholds
    if arguments.evictable_namespaces.include:
        raise InputError(f"{name} $.evictableNamespaces.include", got="namespaces", wanted="none", hint="exclude")
    if not low:
        raise InputError(f"{name} $.thresholds", got="none", wanted="a percentage of a resource", hint="{cpu: 20}")
    if low.keys() != high.keys():
        wanted = f"the resources of thresholds, {', '.join(low)}"
        raise InputError(f"{name} $.targetThresholds", got=", ".join(high) or "none", wanted=wanted)
    for resource, percent in low.items():
        if percent > high[resource] and not arguments.use_deviation_thresholds:
            wanted = f"a percentage of at least {percent:g} (thresholds)"
            raise InputError(f"{name} $.targetThresholds.{resource}", got=f"{high[resource]:g}", wanted=wanted)


def _known(document: Document, name: str, path: str, known: tuple[str, ...]) -> str:
    """Check the name of a plugin, and return it.

    Raises:
        InputError: the plugin is not supported, or not at this extension point.
    """
    if name not in known:
        close = near_name(name, known)
        raise InputError(
            f"{KIND} {path}",
            where=document.where(path),
            wanted=f"one of {', '.join(known)}",
            got=f"'{name}'",
            hint=f"'{close}'" if close else "",
        )
    return name
