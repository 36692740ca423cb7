"""The extension points of the scheduling framework, as base classes of plugins.

A plugin implements its rule for one node (`bayplan.framework.rule`), or for arrays of rows (`bayplan.state.views`). It
compiles a pod into a *spec* once per distinct pod signature, and reads the whole cluster into *params*, which compare by
value, once per cycle. Verdicts and scores must depend only on spec, params and the columns that the rule reads, because
the engine runs the rule again only on rows that changed. Source: KEP-624.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from bayplan.base.errors import PluginError
from bayplan.framework.array_rule import ArrayFilterRule, ArrayScoreRule, NormalizedArrayRule
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ANY_EVENT, ClusterEvent, QueueingHint
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.rule import MAX_NODE_SCORE as MAX_NODE_SCORE
from bayplan.framework.rule import MIN_NODE_SCORE as MIN_NODE_SCORE
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.framework.rule import Params as Params
from bayplan.framework.status import Status
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod, PodSpec
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

if TYPE_CHECKING:
    from bayplan.framework.diagnosis import Diagnosis, PostFilterResult
    from bayplan.framework.extender import Extender
    from bayplan.framework.preemption.evaluator import PreemptionChoices
    from bayplan.framework.waiting_pods import WaitingPods


class Reads(Flag):
    """The data that a rule reads; its result must not depend on data that it does not declare.

    NODES: descriptions of nodes (labels, taints, allocatable, images, unschedulable). USAGE: requests, pod counts.
    PORTS: host ports in use. COUNTERS: counters of pods (`ClusterState.counters`). CATALOG: objects other than nodes
    and pods. OBJECTS: anything else that params don't cover (other nodes, single pods).

    PreFilter and PreScore run again only if something that they read may have changed. A rule that reads COUNTERS,
    CATALOG or OBJECTS is evaluated on all nodes in every cycle, unless its params or `refresh` report their changes.
    """

    NOTHING = 0
    NODES = auto()
    USAGE = auto()
    PORTS = auto()
    OBJECTS = auto()
    COUNTERS = auto()
    CATALOG = auto()
    EVERYTHING = NODES | USAGE | PORTS | OBJECTS | COUNTERS | CATALOG


@dataclass(frozen=True)
class Handle:
    """The interface of the scheduler for its plugins.

    Attributes:
        choices: the random choices of preemption; None outside of a scheduler.
        extenders: the extenders in calling order.
        waiting_pods: the pods that wait at Permit; None outside of a scheduler.
        pods: all unfinished pods of the cluster by key, assigned or not.
    """

    cluster: ClusterState
    feature_gates: FeatureGates
    scheduler_name: str = "default-scheduler"
    choices: PreemptionChoices | None = None
    extenders: Sequence[Extender] = ()
    waiting_pods: WaitingPods | None = None
    pods: Mapping[str, Pod] = field(default_factory=dict)


REJECTING_POINTS = frozenset(("pre_enqueue", "pre_filter", "filter", "reserve", "permit"))
"""Extension points at which a plugin can reject a pod, so that the pod waits for an event."""

S = TypeVar("S")


REPLACED = {
    "scalar": "remove it: nothing calls it any more",
    "amounts_only": "declare `reads = Reads.NODES | Reads.USAGE`",
    "filter_many": "remove it: `filter` is called for each spec",
    "score_many": "remove it: `score` is called for each spec",
    "filter_columns": "declare what `filter` reads in `reads`",
    "score_columns": "declare what `score` reads in `reads`, or return it from score_reads()",
    "filter_supposing": "count pods in params_after_changes(), which is called while pods are moved temporarily",
    "params_on_bare_nodes": "read pods from `rows.state`, which has none when only nodes are known",
    "before_changes": "rename it to after_undo(), which is called when pods have been moved back",
}
"""Names that plugins and rules used in earlier versions, with a hint on their replacement."""


_BINDING_METHODS = ("reserve", "unreserve", "reserved", "pre_bind", "updates")


class Plugin(Generic[S]):
    """Base of every plugin. `S` is the type of its spec.

    Class attributes:
        name: the name in configurations and messages.
        reads: the data that `filter` and `score` read; see `Reads`.
        pre_reads: the data that `pre_filter`, `pre_score` and `observe` read. With NOTHING, they run once per spec, and
            after changes of nodes, instead of once per cycle.
        compiles_requests: whether `compile` reads requests and claims of containers, or the pod's resource claims;
            otherwise, pods that differ only in these share a spec.
        compiles_volumes: the same for the pod's volumes.
        binds_skipped_pods: whether Reserve and PreBind run even for pods that the plugin's PreFilter skipped. A class may
            declare False if they would do nothing for such pods; a subclass that overrides them declares it again.
        sums_in_pre_filter, sums_in_pre_score: how often upstream's plugin sums a pod's requests, including pod-level
            ones, at that extension point.
        earlier_sums: how often the plugins of the profile did so before PreScore; set by the profile.
        partial: whether it implements only a part of upstream's plugin of that name; reports then mention it.
    """

    name: ClassVar[str] = ""
    reads: ClassVar[Reads] = Reads.EVERYTHING
    pre_reads: ClassVar[Reads] = Reads.EVERYTHING
    compiles_requests: ClassVar[bool] = True
    compiles_volumes: ClassVar[bool] = True
    binds_skipped_pods: ClassVar[bool] = True
    partial: ClassVar[bool] = False
    sums_in_pre_filter: int = 0
    sums_in_pre_score: int = 0
    earlier_sums: int = 0

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        bodies = [vars(base) for base in cls.__mro__]
        declared = next(place for place, body in enumerate(bodies) if "binds_skipped_pods" in body)
        if any(method in body for body in bodies[:declared] for method in _BINDING_METHODS):
            cls.binds_skipped_pods = True

    def __init__(self, arguments: object, handle: Handle) -> None:
        self.arguments = arguments
        self.handle = handle

    @classmethod
    def extension_points(cls) -> tuple[str, ...]:
        """Return the extension points that this class implements, in the order of a cycle."""
        return tuple(point for point, base in EXTENSION_POINTS.items() if issubclass(cls, base))

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return the data of a pod that `compile` reads in addition to namespace, labels, controlling owner and spec."""
        return None

    def signs(self, spec: PodSpec) -> bool:
        """Return whether `sign_pod` may return anything but None for pods with this spec; called once per pod spec."""
        return True

    def compile(self, pod: Pod, cluster: ClusterState) -> S:
        """Return the spec of a pod: a value with a hashable attribute ``key`` that identifies its contents."""
        raise PluginError(
            f"{type(self).__name__} must define compile(pod, cluster): an extension point that it implements needs it"
        )

    def observe(self, spec: S, cluster: ClusterState) -> Params:
        """Return the params of `filter` or `score` if the plugin has no PreFilter or PreScore.

        Called when data in `pre_reads` may have changed.
        """
        return ()

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Return the events that may make pods schedulable after this plugin rejected them, each with its hint.

        By default, every event for a plugin that can reject pods, like a plugin without EnqueueExtensions upstream.
        """
        rejecting = not REJECTING_POINTS.isdisjoint(self.extension_points())
        return ((ANY_EVENT, None),) if rejecting else ()


class PreEnqueuePlugin(Plugin[S]):
    """A plugin that runs before a pod enters the active queue, and may gate it."""

    def pre_enqueue(self, pod: Pod) -> Status:
        """Return SUCCESS, or the status with which the pod is gated."""
        raise PluginError(f"{type(self).__name__} lacks pre_enqueue()")

    def stop_waiting(self, pod: Pod) -> None:
        """Stop gating a pod that waits for an action which the host failed to execute."""


class QueueSortPlugin(Plugin[S]):
    """A plugin that orders the active queue."""

    def sort_key(self, pod: Pod, timestamp_ns: int) -> tuple[int, ...]:
        """Return the sort key of a waiting pod, which was queued at `timestamp_ns`; the smallest key comes first."""
        raise PluginError(f"{type(self).__name__} lacks sort_key()")


@dataclass(frozen=True)
class PreFilterResult:
    """A successful result of PreFilter.

    Attributes:
        params: the params of `filter`.
        node_names: the only nodes to consider, or None for all. May name nodes that don't exist.
    """

    params: Params = ()
    node_names: frozenset[str] | None = None


PROCEED = PreFilterResult()


class PreFilterPlugin(Plugin[S]):
    """A plugin that runs at the start of a cycle; it may reject the pod, or return SKIP to skip its own Filter."""

    def pre_filter_reads(self, spec: S) -> Reads:
        """Return the data that `pre_filter` reads for a spec; override it if this can be less than `pre_reads`."""
        return self.pre_reads

    def pre_filter(self, spec: S, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return the params for Filter, SKIP, or a rejection."""
        raise PluginError(f"{type(self).__name__} lacks pre_filter()")


class FilterPlugin(Plugin[S]):
    """A plugin that decides which nodes can run the pod.

    Class attributes:
        texts: the text of each verdict; plugins whose texts depend on the spec override `reasons`.
    """

    texts: ClassVar[Mapping[int, str]] = {}

    def filter(self, spec: S, params: Params | None, rows: Rows) -> Codes:
        """Return uint16 verdicts, one per row: 0 passes, `reasons` explains the other values.

        `params` is None if the profile does not run this plugin's PreFilter. Not called if `filter_rule` is overridden.
        """
        raise PluginError(f"{type(self).__name__} lacks filter()")

    def filter_rule(self, spec: S, cluster: ClusterState) -> FilterRule:
        """Return the rule for a spec; by default, one that calls `filter`."""
        counts_moved_pods = type(self).params_after_changes is not FilterPlugin.params_after_changes
        return ArrayFilterRule(self, spec, cluster, reads_others=counts_moved_pods)

    def reasons(self, spec: S, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the texts of a verdict other than 0."""
        if verdict not in self.texts:
            raise PluginError(f"{self.name}.filter", got=f"verdict {verdict:#x}", wanted="0, or a verdict in `texts`")
        return (self.texts[verdict],)

    def params_after_changes(self, spec: S, params: Params | None, cluster: ClusterState) -> Params | None:
        """Return the params for a state in which nominated pods or a dry run moved pods since PreFilter.

        Corresponds to upstream's PreFilterExtensions (AddPod, RemovePod). PreFilter's decision to skip or to reject is
        final.
        """
        return params


class PostFilterPlugin(Plugin[S]):
    """A plugin that runs if no node is feasible, e.g. preemption."""

    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> tuple[PostFilterResult | None, Status]:
        """Try to make the pod schedulable, for example by preemption; return the result and the status."""
        raise PluginError(f"{type(self).__name__} lacks post_filter()")


class PreScorePlugin(Plugin[S]):
    """A plugin that runs when the feasible nodes are known; it may return SKIP to skip its own Score.

    Class attributes:
        reads_feasible: whether the result of `pre_score` depends on which nodes are feasible.
    """

    reads_feasible: ClassVar[bool] = True

    def pre_score_reads(self, spec: S) -> Reads:
        """Return the data that `pre_score` reads for a spec; override it if this can be less than `pre_reads`."""
        return self.pre_reads

    def pre_score(self, spec: S, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return the params for Score, SKIP, or an error. `feasible` is bool[rows]."""
        raise PluginError(f"{type(self).__name__} lacks pre_score()")


class ScorePlugin(Plugin[S]):
    """A plugin that scores the feasible nodes.

    Class attributes:
        error_without_pre_score: the error if PreScore of this plugin is disabled; "" if Score does not need it.
    """

    error_without_pre_score: ClassVar[str] = ""

    def score(self, spec: S, params: Params | None, rows: Rows) -> Ints:
        """Return int64 raw scores, one per row. Not called if `score_rule` is overridden.

        `params` is None if the profile does not run this plugin's PreScore.
        """
        raise PluginError(f"{type(self).__name__} lacks score()")

    def score_rule(self, spec: S, cluster: ClusterState) -> ScoreRule:
        """Return the rule for a spec; by default, one that calls `score`."""
        return ArrayScoreRule(self, spec, cluster)

    def score_reads(self, spec: S) -> Reads:
        """Return the data that `score` reads for a spec; override it if this differs from `reads`."""
        return self.reads

    def score_error(self, spec: S, params: Params | None) -> str:
        """Return why this plugin can't score the pod at all, or "". A text ends the cycle with an error."""
        return self.error_without_pre_score if params is None else ""


class NormalizePlugin(ScorePlugin[S]):
    """A score plugin with NormalizeScore: `scale` depends on all feasible nodes, `normalize` on one score."""

    def score_rule(self, spec: S, cluster: ClusterState) -> ScoreRule:
        """Return the rule for a spec; by default, one that calls `score`, `scale_over` and `normalize`."""
        return NormalizedArrayRule(self, spec, cluster)

    def scale(self, spec: S, params: Params | None, raw: Ints) -> Params:
        """Return the data (never empty) that `normalize` needs from feasible nodes' raw scores, e.g. their maximum."""
        raise PluginError(f"{type(self).__name__} lacks scale()")

    def scale_over(self, spec: S, params: Params | None, raw: Ints, feasible: Bools, rows: Rows) -> Params:
        """Return the scale over the feasible rows; override this if the scale also depends on the nodes themselves.

        `raw` is int64[rows], `feasible` bool[rows] and true somewhere, `rows` all rows.
        """
        return self.scale(spec, params, raw[feasible])

    def normalize(self, spec: S, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return the normalised scores, from 0 to 100, each computed from its raw score alone. `rows`: those of `raw`."""
        raise PluginError(f"{type(self).__name__} lacks normalize()")


class ReservePlugin(Plugin[S]):
    """A plugin that runs when a pod has been assumed on a node, and when that is undone."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Reserve the resources that the pod needs besides those of the node."""
        raise PluginError(f"{type(self).__name__} lacks reserve()")

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Release the reserved resources. Must be idempotent; may be called even if `reserve` was not."""
        raise PluginError(f"{type(self).__name__} lacks unreserve()")

    def reserved(self, state: CycleState) -> Mapping[str, object]:
        """Return the resources that `reserve` reserved in this cycle, as plain values by kind, for records."""
        return {}


class PermitPlugin(Plugin[S]):
    """A plugin that allows the binding of a pod, rejects it, or delays it."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        """Return the status, and the timeout in nanoseconds if the status is WAIT."""
        raise PluginError(f"{type(self).__name__} lacks permit()")


class PreBindPlugin(Plugin[S]):
    """A plugin that prepares the binding, for example by provisioning volumes."""

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return SUCCESS, or the status with which the binding fails."""
        raise PluginError(f"{type(self).__name__} lacks pre_bind()")

    def updates(self, state: CycleState) -> Sequence[KubernetesObject]:
        """Return the objects that the host must write before it binds the pod; called after `pre_bind` succeeded."""
        return ()


class BindPlugin(Plugin[S]):
    """A plugin that binds the pod, or leaves that to the next bind plugin with SKIP."""

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return SUCCESS to let the host bind the pod to the node, SKIP to leave it to the next plugin."""
        raise PluginError(f"{type(self).__name__} lacks bind()")


class PostBindPlugin(Plugin[S]):
    """A plugin that runs after a pod is bound."""

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Clean up after the binding. Called when the cluster reports the pod on its node."""
        raise PluginError(f"{type(self).__name__} lacks post_bind()")


EXTENSION_POINTS: Mapping[str, type[Plugin[object]]] = {
    "pre_enqueue": PreEnqueuePlugin,
    "queue_sort": QueueSortPlugin,
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "post_filter": PostFilterPlugin,
    "pre_score": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind": PreBindPlugin,
    "bind": BindPlugin,
    "post_bind": PostBindPlugin,
}
"""The extension points in the order of a cycle."""


@dataclass(frozen=True)
class WeightedPlugin:
    """A score plugin of a profile with its weight."""

    plugin: ScorePlugin[object]
    weight: int = 1
