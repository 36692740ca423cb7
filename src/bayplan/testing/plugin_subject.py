"""One plugin on one cluster with one pod, for the checks of the conformance kit, which evaluate it in all forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from bayplan.engine.select_host import first_by_name
from bayplan.framework.array_rule import NormalizedArrayRule
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import (
    FilterPlugin,
    Handle,
    NormalizePlugin,
    Params,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from bayplan.framework.preemption.evaluator import PreemptionChoices
from bayplan.framework.rule import ready
from bayplan.framework.status import Code, Status
from bayplan.library import Cluster
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.row_results import scores_of, verdicts_of
from bayplan.testing.sample_clusters import SampleCluster, typed

COMPILING = frozenset(("pre_filter", "filter", "pre_score", "score"))
"""Extension points for which the plugin compiles a spec."""


CONFIGURATION_TYPE = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


class PluginFault(AssertionError):
    """A plugin violates its contract. The text explains how, and on which cluster."""


def is_in_tree(kind: type[Plugin[Any]]) -> bool:
    """Return whether a plugin is one of kube-scheduler's, which every scheduler has."""
    return in_tree_registry().plugins.get(kind.name) is kind


class Subject:
    """A plugin, created for a sample cluster.

    Args:
        kind: the class of the plugin.
        arguments: the arguments of the plugin.
        gates: the feature gates.
        sample: the cluster and the pod.

    Attributes:
        sample: the argument of this name.
        plugin, state, pod: the plugin, the state with the cluster, and the typed pod.
        points: the extension points that the class implements.
    """

    def __init__(self, kind: type[Plugin[Any]], arguments: object, gates: FeatureGates, sample: SampleCluster) -> None:
        self.sample = sample
        self._arguments, self._gates = arguments, gates
        self.state: ClusterState = sample.state()
        choices = PreemptionChoices(lambda count: 0, partial(first_by_name, self.state))
        self.plugin: Any = kind(arguments, Handle(self.state, gates, choices=choices))
        self.pod: Pod = typed(sample.pod, Pod)
        self.points = frozenset(kind.extension_points())

    @cached_property
    def spec(self) -> Any:
        """The plugin's spec for the pod; None if no extension point needs one."""
        return self.compiled(self.pod)

    def compiled(self, pod: Pod) -> Any:
        """Return the plugin's spec for a pod; None if no extension point needs one."""
        return self.plugin.compile(pod, self.state) if COMPILING & self.points else None

    @property
    def rows(self) -> list[int]:
        """Return the rows that have a node."""
        return list(self.state.nodes.row_of.values())

    @property
    def alive(self) -> Bools:
        """Return bool[rows]: the rows that have a node."""
        return self.state.nodes.alive[: self.state.nodes.count].copy()

    def name(self, row: int) -> str:
        """Return the name of the node in a row."""
        return self.state.nodes.names[row] or "a row without node"

    def schedule(self) -> None:
        """Schedule the pod by a scheduler with this plugin, unless it is one of kube-scheduler's.

        Raises:
            PluginError: a method returned something of the wrong type. Exceptions of the plugin are raised unchanged.
        """
        kind: type[Plugin[Any]] = type(self.plugin)
        sample = self.sample
        if is_in_tree(kind):
            return
        given = []
        if isinstance(self._arguments, Mapping):
            given = [{"name": kind.name, "args": self._arguments}]
        elif self._arguments is not None:
            kind = _with_arguments(kind, self._arguments)
        configuration = {**CONFIGURATION_TYPE, "profiles": [{"pluginConfig": given}]}
        documents = (*sample.nodes, *sample.others, *sample.running)
        gates = dict(self._gates.given())
        cluster = Cluster(documents, configuration=configuration, plugins=[kind], feature_gates=gates)
        cluster.schedule(sample.pod)

    # Filter.

    @property
    def filters(self) -> bool:
        """Return whether the plugin implements Filter."""
        return "filter" in self.points and isinstance(self.plugin, FilterPlugin)

    def pre_filter(self, spec: Any = None) -> PreFilterResult | Status:
        """Return the result of PreFilter. For a plugin without PreFilter, return the params from `observe`."""
        spec = self.spec if spec is None else spec
        if "pre_filter" in self.points and isinstance(self.plugin, PreFilterPlugin):
            answer: PreFilterResult | Status = self.plugin.pre_filter(spec, self.state, CycleState())
            return answer
        return PreFilterResult(self.plugin.observe(spec, self.state))

    def filter_params(self, spec: Any = None) -> Params | None:
        """Return the params for Filter; None if PreFilter rejects the pod or returns Skip."""
        answer = self.pre_filter(spec)
        return answer.params if isinstance(answer, PreFilterResult) else None

    def verdicts(self, params: Params, rows: Rows | None = None, spec: Any = None) -> Any:
        """Return Filter's verdicts for the given rows, by default for all."""
        spec, rows = self.spec if spec is None else spec, Rows(self.state) if rows is None else rows
        return verdicts_of(self.plugin, spec, params, rows)

    def describe(self, params: Params, verdict: int) -> str:
        """Return a verdict and its reasons as text."""
        return f"{verdict:#06x} {list(self.plugin.reasons(self.spec, params, verdict))}" if verdict else "0 (passes)"

    # Score.

    @property
    def scores(self) -> bool:
        """Return whether the plugin implements Score."""
        return "score" in self.points and isinstance(self.plugin, ScorePlugin)

    def score_params(self, feasible: Bools | None = None, spec: Any = None) -> Params | None:
        """Return the params for Score; None if PreScore returns Skip, or the plugin can't score this pod."""
        spec = self.spec if spec is None else spec
        feasible = self.alive if feasible is None else feasible
        if "pre_score" in self.points and isinstance(self.plugin, PreScorePlugin):
            answer: Params | Status = self.plugin.pre_score(spec, self.state, feasible)
        else:
            answer = self.plugin.observe(spec, self.state)
        if isinstance(answer, Status) or self.plugin.score_error(spec, answer):
            return None
        return answer

    def raw(self, params: Params, rows: Rows | None = None, spec: Any = None, *, feasible: Bools | None = None) -> Any:
        """Return the raw scores of the given rows, by default of all, given the feasible rows, by default all nodes."""
        spec, rows = self.spec if spec is None else spec, Rows(self.state) if rows is None else rows
        return scores_of(self.plugin, spec, params, rows, feasible)

    def normalized(self, params: Params, feasible: Bools) -> tuple[Params | None, Any]:
        """Return the scale (None without NormalizeScore) and the normalised scores of all rows, given the feasible rows."""
        raw = self.raw(params, feasible=feasible)
        if not isinstance(self.plugin, NormalizePlugin):
            return None, raw
        scale = self.scale(params, raw, feasible)
        return scale, self.normalize(scale, raw, Rows(self.state))

    def scale(self, params: Params, raw: Any, feasible: Bools) -> Params:
        """Return the scale for raw scores of all rows."""
        rule = self.plugin.score_rule(self.spec, self.state)
        ready(rule, params, self.state.columns)
        flags = feasible.view(np.uint8)
        if rule.reads_feasible:
            rule.prepare(flags)
        found: Params = rule.scale(np.ascontiguousarray(raw), flags)
        return found

    def normalize(self, scale: Params, raw: Any, rows: Rows) -> Any:
        """Return the normalised scores for raw scores of the given rows."""
        rule = self.plugin.score_rule(self.spec, self.state)
        if isinstance(rule, NormalizedArrayRule):
            return self.plugin.normalize(self.spec, scale, raw, rows)
        ready(rule, (), self.state.columns)
        each = zip(rows.row_numbers().tolist(), raw.tolist(), strict=True)
        return np.array([rule.normalize(scale, score, row) for row, score in each], dtype=np.int64)

    # Filter and Score.

    def outcome(self, pod: Pod | None = None) -> dict[str, object]:
        """Return all results of the plugin for a pod, as plain values by extension point and node name, to compare them."""
        spec = self.spec if pod is None else self.compiled(pod)
        found: dict[str, object] = {}
        if self.filters:
            answer = self.pre_filter(spec)
            if isinstance(answer, Status):
                found["PreFilter"] = (answer.code.text, answer.reasons)
            else:
                verdicts = self.verdicts(answer.params, spec=spec)
                found |= {
                    f"Filter of {self.name(row)}": self._verdict(spec, answer.params, int(verdicts[row]))
                    for row in self.rows
                }
        params = self.score_params(spec=spec) if self.scores else None
        if params is not None:
            raw = self.raw(params, spec=spec)
            found |= {f"Score of {self.name(row)}": int(raw[row]) for row in self.rows}
        return found

    def _verdict(self, spec: Any, params: Params, verdict: int) -> object:
        return (verdict, tuple(self.plugin.reasons(spec, params, verdict))) if verdict else "passes"

    def one_row(self, row: int) -> Rows:
        """Return a selection of one row."""
        return Rows(self.state, np.array([row], dtype=np.intp))


Make: TypeAlias = Callable[[SampleCluster], Subject]
"""Creates a plugin for a sample cluster."""


def skips(answer: PreFilterResult | Status) -> bool:
    """Return whether a result is Skip, which skips the plugin's Filter for the cycle."""
    return isinstance(answer, Status) and answer.code is Code.SKIP


def _with_arguments(kind: type[Plugin[Any]], arguments: object) -> type[Plugin[Any]]:
    """Return a subclass of a plugin that gets these arguments, which a configuration can't express."""

    def create(self: Plugin[Any], _: object, handle: Handle) -> None:
        kind.__init__(self, arguments, handle)

    return type(kind.__name__, (kind,), {"__init__": create, "__module__": kind.__module__})
