"""The extension points of the scheduling framework, as base classes that a plugin inherits from.

A plugin writes each rule once: about one node, as a compiled rule (`bayplan.framework.rule`), or about arrays of rows
(`bayplan.state.views`). What it needs of the pod it compiles once for each distinct pod signature into a *spec*; what it needs of
the whole cluster it computes each cycle into small *params* that compare by value. From these and from the columns it reads, and
from nothing else, its verdicts and scores must follow: then the engine asks again only about rows that changed. Source: KEP-624.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ANY_EVENT, ClusterEvent, QueueingHint
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.rule import MAX_NODE_SCORE as MAX_NODE_SCORE
from bayplan.framework.rule import MIN_NODE_SCORE as MIN_NODE_SCORE
from bayplan.framework.rule import FilterRule, ScoreRule, ready, scores_of, verdicts_of
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
    from bayplan.framework.preemption.dry_runs import DryRuns
    from bayplan.framework.waiting_pods import WaitingPods


class Reads(Flag):
    """Which columns a rule reads; what it does not declare must not influence it.

    NODES: what describes nodes (labels, taints, allocatable, images, cordons). USAGE: requests, pod counts. PORTS: host
    ports in use. OBJECTS: anything else that is not told by params (the catalog, other nodes); a rule that reads such is
    evaluated in full in every cycle.
    """

    NOTHING = 0
    NODES = auto()
    USAGE = auto()
    PORTS = auto()
    OBJECTS = auto()
    EVERYTHING = NODES | USAGE | PORTS | OBJECTS


@dataclass(frozen=True)
class Handle:
    """What a plugin may know of the scheduler that it is part of.

    Attributes:
        cluster: the state.
        feature_gates: settings that change decisions.
        scheduler_name: the profile's name.
        dry_runs: what preemption asks of the engine; None outside of a scheduler.
        extenders: in the order in which they are asked.
        waiting_pods: the pods that wait for a permit; None outside of a scheduler.
        pods: all pods of the cluster that are not finished, with a node or without, by key.
    """

    cluster: ClusterState
    feature_gates: FeatureGates
    scheduler_name: str = "default-scheduler"
    dry_runs: DryRuns | None = None
    extenders: Sequence[Extender] = ()
    waiting_pods: WaitingPods | None = None
    pods: Mapping[str, Pod] = field(default_factory=dict)


REJECTING_POINTS = frozenset(("pre_enqueue", "pre_filter", "filter", "reserve", "permit"))
"""Extension points at which a plugin can reject a pod so that it waits for an event."""

S = TypeVar("S")


REPLACED = {
    "scalar": "remove it: nothing asks about plain numbers any more",
    "amounts_only": "declare `reads = Reads.NODES | Reads.USAGE`",
    "filter_many": "remove it: `filter` is asked for each spec",
    "score_many": "remove it: `score` is asked for each spec",
    "filter_columns": "declare what `filter` reads in `reads`",
    "score_columns": "declare what `score` reads in `reads`, or return it from score_reads()",
    "filter_supposing": "count pods in params_after_changes(), which is asked while they are moved on trial",
    "params_on_bare_nodes": "read pods from `rows.state`, which has none when only nodes are known",
}
"""Names that plugins defined for earlier versions, and what to write now."""


class Plugin(Generic[S]):
    """Base of every plugin. `S` is the type of its spec.

    Class attributes:
        name: how configurations and messages call it.
        reads: what `filter` and `score` read; see `Reads`.
        pre_reads: what `pre_filter` and `pre_score` read. NOTHING: asked once for each spec, not each cycle.
        compiles_requests: whether `compile` looks at requests and claims of containers, or at the pod's resource claims. If it
            does not, pods that differ in nothing else share a spec.
        compiles_volumes: whether `compile` looks at the pod's volumes; likewise.
        sums_in_pre_filter, sums_in_pre_score: how often upstream's plugin sums up a pod's requests there, pod-level ones included.
        earlier_sums: how often that happened before PreScore; set by the profile.
        partial: whether it does only a part of what upstream's plugin of that name does; reports then name it.
    """

    name: ClassVar[str] = ""
    reads: ClassVar[Reads] = Reads.EVERYTHING
    pre_reads: ClassVar[Reads] = Reads.EVERYTHING
    compiles_requests: ClassVar[bool] = True
    compiles_volumes: ClassVar[bool] = True
    partial: ClassVar[bool] = False
    sums_in_pre_filter: int = 0
    sums_in_pre_score: int = 0
    earlier_sums: int = 0

    def __init__(self, arguments: object, handle: Handle) -> None:
        self.arguments = arguments
        self.handle = handle

    @classmethod
    def extension_points(cls) -> tuple[str, ...]:
        """Return the extension points that this class implements, in the order of a cycle."""
        return tuple(point for point, base in EXTENSION_POINTS.items() if issubclass(cls, base))

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return what `compile` reads of a pod beside namespace, labels, controlling owner and spec.

        Pods with equal signatures share specs, and so what was found out about them.
        """
        return None

    def signs(self, spec: PodSpec) -> bool:
        """Return whether `sign_pod` may return anything but None for a pod of this spec; asked once for each spec."""
        return True

    def compile(self, pod: Pod, cluster: ClusterState) -> S:
        """Return the spec of a pod: a value with an attribute ``key`` (hashable) that names all it holds. Once per signature."""
        raise TypeError(f"{type(self).__name__} implements an extension point that needs compile()")

    def observe(self, spec: S, cluster: ClusterState) -> Params:
        """Return what `score` (or `filter`) reads of the cluster as a whole.

        These are the params of plugins without PreScore (PreFilter).
        """
        return ()

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Return the events that may make a pod schedulable that this plugin rejected, each with its hint.

        A plugin that can reject pods and does not override this gets every event, as one without EnqueueExtensions does
        upstream: nothing is known about what it reads.
        """
        rejecting = not REJECTING_POINTS.isdisjoint(self.extension_points())
        return ((ANY_EVENT, None),) if rejecting else ()


class PreEnqueuePlugin(Plugin[S]):
    """Called before a pod is put into the active queue."""

    def pre_enqueue(self, pod: Pod) -> Status:
        """Return SUCCESS, or the status with which the pod is kept out."""
        raise TypeError(f"{type(self).__name__} lacks pre_enqueue()")

    def stop_waiting(self, pod: Pod) -> None:
        """Let a pod go that is kept out for something the host was asked to do, and could not."""


class QueueSortPlugin(Plugin[S]):
    """Orders the active queue."""

    def sort_key(self, pod: Pod, timestamp_ns: int) -> tuple[int, ...]:
        """Return the key by which waiting pods are sorted; the smallest goes first. `timestamp_ns` is when it was queued."""
        raise TypeError(f"{type(self).__name__} lacks sort_key()")


@dataclass(frozen=True)
class PreFilterResult:
    """What PreFilter found out.

    Attributes:
        params: handed to `filter`.
        node_names: the only nodes worth looking at, or None for all. May name nodes that don't exist.
    """

    params: Params = ()
    node_names: frozenset[str] | None = None


PROCEED = PreFilterResult()


class PreFilterPlugin(Plugin[S]):
    """Called once at the start of a cycle; may reject the pod, or take its own Filter out of the cycle with SKIP."""

    def pre_filter_reads(self, spec: S) -> Reads:
        """Return what `pre_filter` reads for a spec, where that can be less than `pre_reads`."""
        return self.pre_reads

    def pre_filter(self, spec: S, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return params for Filter, SKIP, or a rejection."""
        raise TypeError(f"{type(self).__name__} lacks pre_filter()")


class FilterPlugin(Plugin[S]):
    """Says which nodes can hold the pod."""

    def filter(self, spec: S, params: Params | None, rows: Rows) -> Codes:
        """Return uint16 verdicts, one a row: 0 passes, the other values are explained by `reasons`.

        `params` is None where the profile does not run this plugin's PreFilter.
        """
        rule = self.filter_rule(spec, rows.state)
        if rule is None:
            raise TypeError(f"{type(self).__name__} lacks filter()")
        return verdicts_of(rule, params, rows.compiled_columns(), rows.row_numbers())

    def filter_rule(self, spec: S, cluster: ClusterState) -> FilterRule | None:
        """Return the compiled rule for a spec; None if `filter` is to be asked."""
        return None

    def reasons(self, spec: S, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the texts of a verdict other than 0."""
        raise TypeError(f"{type(self).__name__} lacks reasons()")

    def params_after_changes(self, spec: S, params: Params | None, cluster: ClusterState) -> Params | None:
        """Return the params for a state to which pods were added, or from which some were taken, since PreFilter.

        This is PreFilterExtensions (AddPod, RemovePod): called inside a trial for nominated pods and dry runs. Only plugins
        whose params count pods override it. What PreFilter decided once, to skip or to reject, stays decided.
        """
        return params


class PostFilterPlugin(Plugin[S]):
    """Called when no node can hold the pod: preemption is one."""

    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> tuple[PostFilterResult | None, Status]:
        """Try to make room; return what was found and the status."""
        raise TypeError(f"{type(self).__name__} lacks post_filter()")


class PreScorePlugin(Plugin[S]):
    """Called once when the feasible nodes are known; may take its own Score out of the cycle with SKIP.

    Class attributes:
        reads_feasible: whether the answer of `pre_score` depends on which nodes are feasible.
    """

    reads_feasible: ClassVar[bool] = True

    def pre_score_reads(self, spec: S) -> Reads:
        """Return what `pre_score` reads for a spec, where that can be less than `pre_reads`."""
        return self.pre_reads

    def pre_score(self, spec: S, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return params for Score, SKIP, or an error. `feasible` is bool[rows]."""
        raise TypeError(f"{type(self).__name__} lacks pre_score()")


class ScorePlugin(Plugin[S]):
    """Ranks the nodes that passed."""

    def score(self, spec: S, params: Params | None, rows: Rows) -> Ints:
        """Return int64 raw scores, one a row; `params` is None where the profile does not run this plugin's PreScore."""
        rule = self.score_rule(spec, rows.state)
        if rule is None:
            raise TypeError(f"{type(self).__name__} lacks score()")
        return scores_of(rule, params, rows.compiled_columns(), rows.row_numbers())

    def score_rule(self, spec: S, cluster: ClusterState) -> ScoreRule | None:
        """Return the compiled rule for a spec; None if `score` is to be asked."""
        return None

    def score_reads(self, spec: S) -> Reads:
        """Return what `score` reads for a spec, where that is not `reads`."""
        return self.reads

    def score_error(self, spec: S, params: Params | None) -> str:
        """Return why this plugin can't score the pod at all, or the empty text. An error ends the cycle."""
        return ""


class NormalizePlugin(ScorePlugin[S]):
    """A score plugin with NormalizeScore, split into what depends on all feasible nodes and what is elementwise."""

    def scale(self, spec: S, params: Params | None, raw: Ints) -> Params:
        """Return what normalising needs of the raw scores of the feasible nodes (never empty), e.g. their maximum."""
        raise TypeError(f"{type(self).__name__} lacks scale()")

    def scale_over(self, spec: S, params: Params | None, raw: Ints, feasible: Bools, rows: Rows) -> Params:
        """Return `scale` of the feasible rows; overridden where it also depends on what the nodes are.

        `raw` is int64[rows], `feasible` bool[rows] and true somewhere, `rows` all rows.
        """
        rule = self.score_rule(spec, rows.state)
        if rule is None:
            return self.scale(spec, params, raw[feasible])
        ready(rule, params, rows.compiled_columns())
        flags = feasible.view(np.uint8)
        if rule.reads_feasible:
            rule.prepare(flags)
        return rule.scale(np.ascontiguousarray(raw), flags)

    def normalize(self, spec: S, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return scores from 0 to 100, elementwise. `rows` lends its number functions."""
        rule = self.score_rule(spec, rows.state)
        if rule is None:
            raise TypeError(f"{type(self).__name__} lacks normalize()")
        ready(rule, (), rows.compiled_columns())
        numbers = zip(rows.row_numbers().tolist(), raw.tolist(), strict=True)
        return np.array([rule.normalize(scale, score, row) for row, score in numbers], dtype=np.int64)


class ReservePlugin(Plugin[S]):
    """Told when a pod has been given a node, and when that is taken back."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Take what the pod needs beside the node itself."""
        raise TypeError(f"{type(self).__name__} lacks reserve()")

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Give it back. Must be idempotent, and is called even where `reserve` was not."""
        raise TypeError(f"{type(self).__name__} lacks unreserve()")

    def reserved(self, state: CycleState) -> Mapping[str, object]:
        """Return what `reserve` took in this cycle, as plain values by kind, for records; empty where nothing was needed."""
        return {}


class PermitPlugin(Plugin[S]):
    """Lets a pod go on to binding, refuses it, or makes it wait."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        """Return the status and, with WAIT, for how many nanoseconds at most."""
        raise TypeError(f"{type(self).__name__} lacks permit()")


class PreBindPlugin(Plugin[S]):
    """Prepares what binding needs."""

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return SUCCESS, or why the pod can't be bound."""
        raise TypeError(f"{type(self).__name__} lacks pre_bind()")

    def updates(self, state: CycleState) -> Sequence[KubernetesObject]:
        """Return the objects that the host must write before it binds the pod; asked after `pre_bind` succeeded."""
        return ()


class BindPlugin(Plugin[S]):
    """Binds the pod, or leaves that to the next bind plugin with SKIP."""

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return SUCCESS where this plugin asks the host to bind the pod to the node, SKIP to pass it on."""
        raise TypeError(f"{type(self).__name__} lacks bind()")


class PostBindPlugin(Plugin[S]):
    """Told when a pod is bound."""

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Clean up."""
        raise TypeError(f"{type(self).__name__} lacks post_bind()")


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
"""The extension points in the order in which a cycle comes to them."""


@dataclass(frozen=True)
class WeightedPlugin:
    """A score plugin of a profile with its weight."""

    plugin: ScorePlugin[object]
    weight: int = field(default=1)
