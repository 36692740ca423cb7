"""Checks of the conformance kit, one for each clause of the contract in docs/plugins.md; each raises `PluginFault`.

The first line of a check's docstring is printed as the violated clause.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from bayplan.base.random_streams import RandomStreams
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, EventResource, HintAnswer
from bayplan.framework.plugin import MAX_NODE_SCORE, NormalizePlugin, PreFilterResult, Reads
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.framework.status import MAX_PLUGIN_CODE, Status
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.views import Rows
from bayplan.testing.form_checks import filter_answers_alike_in_every_form, score_answers_alike_in_every_form
from bayplan.testing.plugin_subject import Make, PluginFault, Subject, skips
from bayplan.testing.rule_checks import (
    filter_rules_follow_what_changes,
    rules_answer_alike_about_all_rows_and_one,
    score_rules_follow_what_changes,
    trials_are_answered_and_forgotten,
)
from bayplan.testing.sample_clusters import SampleCluster, typed

Check: TypeAlias = Callable[[Make, SampleCluster], None]


# --- messages ---------------------------------------------------------------------------------------------------------


def verdicts_have_reasons(make: Make, sample: SampleCluster) -> None:
    """Every verdict other than 0 has a code in range and at least one reason."""
    subject = make(sample)
    params = subject.filter_params() if subject.filters else None
    if params is None:
        return
    verdicts = subject.verdicts(params)
    for row in subject.rows:
        verdict = int(verdicts[row])
        if not verdict:
            continue
        if not verdict & MAX_PLUGIN_CODE:
            raise PluginFault(
                f"filter() of {subject.name(row)}: verdict {verdict:#06x} has no code of its own, only bits"
            )
        reasons = subject.plugin.reasons(subject.spec, params, verdict)
        texts = isinstance(reasons, tuple | list) and reasons and all(isinstance(it, str) and it for it in reasons)
        if not texts:
            raise PluginFault(
                f"reasons() of verdict {verdict:#06x} ({subject.name(row)}) are {reasons!r}, not a list or tuple of "
                "non-empty strings"
            )


def answers_have_the_right_types(make: Make, sample: SampleCluster) -> None:
    """PreFilter returns a result and PreScore params, or a status other than success; params are hashable; rules are rules."""
    subject = make(sample)
    if "pre_filter" in subject.points:
        answer = subject.plugin.pre_filter(subject.spec, subject.state, CycleState())
        if not isinstance(answer, PreFilterResult | Status):
            raise PluginFault(f"pre_filter() returned {answer!r}, not a PreFilterResult or a Status")
        if isinstance(answer, Status) and answer.ok:
            raise PluginFault(
                "pre_filter() returned SUCCESS; return a PreFilterResult (PROCEED) if the pod may proceed"
            )
        if isinstance(answer, PreFilterResult):
            _check_params("pre_filter()", answer.params)
    if "pre_score" in subject.points:
        answer = subject.plugin.pre_score(subject.spec, subject.state, subject.alive)
        if isinstance(answer, Status) and answer.ok:
            raise PluginFault("pre_score() returned SUCCESS; return params, () if there are none")
        if not isinstance(answer, Status):
            _check_params("pre_score()", answer)
    for point in ("filter", "score"):
        if point in subject.points and f"pre_{point}" not in subject.points:
            _check_params("observe()", subject.plugin.observe(subject.spec, subject.state))
    for method, kind in (("filter_rule", FilterRule), ("score_rule", ScoreRule)):
        if method.removesuffix("_rule") in subject.points:
            rule = getattr(subject.plugin, method)(subject.spec, subject.state)
            if not isinstance(rule, kind):
                raise PluginFault(f"{method}() returned {rule!r}, not a {kind.__name__}; return super().{method}(...)")
    if subject.spec is not None:
        if not hasattr(subject.spec, "key"):
            raise PluginFault(f"compile() returned {subject.spec!r}, which has no attribute key")
        _hashable("the key of the spec", subject.spec.key)


def scores_are_normalized(make: Make, sample: SampleCluster) -> None:
    """Normalised scores of feasible nodes are from 0 to 100, and each depends only on its node's raw score and on scale()."""
    subject = make(sample)
    if not subject.scores:
        return
    for feasible in _feasible_sets(subject):
        params = subject.score_params(feasible)
        if params is None:
            continue
        scale, scores = subject.normalized(params, feasible)
        for row in np.flatnonzero(feasible).tolist():
            if not 0 <= int(scores[row]) <= MAX_NODE_SCORE:
                names = ", ".join(subject.name(other) for other in np.flatnonzero(feasible).tolist())
                raise PluginFault(
                    f"the normalised score of {subject.name(row)} is {int(scores[row])}, not from 0 to {MAX_NODE_SCORE}; "
                    f"feasible nodes: {names}"
                )
        if isinstance(subject.plugin, NormalizePlugin) and scale is not None:
            _check_normalizing(subject, params, scale, scores, feasible)


def _check_normalizing(subject: Subject, params: Any, scale: Any, scores: Any, feasible: Any) -> None:
    raw = subject.raw(params, feasible=feasible)
    _check_params("scale()", scale)
    for row in np.flatnonzero(feasible).tolist():
        index = np.array([row], dtype=np.intp)
        one = subject.normalize(scale, raw[index], Rows(subject.state, index))
        if int(one[0]) != int(scores[row]):
            raise PluginFault(
                f"normalize() returns {int(scores[row])} for {subject.name(row)} if called for all rows, and {int(one[0])} if "
                "called for this row: it may read other rows only through scale(), and normalize_all() must agree with it"
            )
    spoiled = raw.copy()
    spoiled[~feasible] = 1 << 40
    again = subject.scale(params, spoiled, feasible)
    if again != scale:
        raise PluginFault(f"scale() depends on scores of nodes that are not feasible: {scale!r} becomes {again!r}")


# --- purity -----------------------------------------------------------------------------------------------------------


def asking_changes_nothing(make: Make, sample: SampleCluster) -> None:
    """Calls change neither the cluster nor the pod nor the params."""
    subject = make(sample)
    pod = msgspec.msgpack.encode(subject.pod)
    before = _fingerprint(subject)
    subject.outcome()
    params = subject.filter_params() if subject.filters else None
    hashed = hash(params)
    subject.outcome()
    for what, was in before.items():
        if _fingerprint(subject)[what] != was:
            raise PluginFault(f"calling the plugin changed {what}")
    if msgspec.msgpack.encode(subject.pod) != pod:
        raise PluginFault("calling the plugin changed the pod")
    if hash(params) != hashed:
        raise PluginFault("calling the plugin changed its params")
    subject.state.check_invariants()


def the_same_question_has_the_same_answer(make: Make, sample: SampleCluster) -> None:
    """A plugin returns the same when called twice, and when created again for the same cluster."""
    subject = make(sample)
    first = subject.outcome()
    _compare(first, subject.outcome(), "called a second time")
    again = make(sample)
    again.outcome()
    _compare(first, again.outcome(), "created and called again")


def what_is_not_declared_has_no_influence(make: Make, sample: SampleCluster) -> None:
    """Results change only if the params change, or if data changes that `reads` (for PreFilter, `pre_reads`) declares."""
    subject = make(sample)
    before, row = _cached_results(subject), subject.rows[0]
    newcomer = typed(sample.newcomer, Pod)
    subject.state.place(subject.state.pod_info(newcomer), row)
    touched = Reads.USAGE | (Reads.PORTS if _has_ports(newcomer) else Reads.NOTHING)
    _compare_cached(subject, before, _Change(f"a pod was placed on {subject.name(row)}", row, touched))
    before = _cached_results(subject)
    subject.state.catalog.put("elsewhere", Namespace(metadata=ObjectMeta(name="elsewhere")))
    _compare_cached(subject, before, _Change("a namespace was made", -1, Reads.NOTHING))
    if len(subject.rows) > 1:
        before = _cached_results(subject)
        node = copy.deepcopy(sample.nodes[0])
        node["metadata"].setdefault("labels", {})["bayplan.io/checked"] = "yes"
        node.setdefault("status", {}).setdefault("allocatable", {})["cpu"] = "7"
        subject.state.update_node(typed(node, Node))
        row = subject.state.nodes.row_of[node["metadata"]["name"]]
        _compare_cached(subject, before, _Change(f"node {subject.name(row)} was changed", row, Reads.EVERYTHING))


def pods_that_look_alike_are_treated_alike(make: Make, sample: SampleCluster) -> None:
    """Pods with equal signatures, and pods with equal keys of their specs, get the same results."""
    subject = make(sample)
    if subject.spec is None:
        return
    for what, document in _variants(sample):
        pod = typed(document, Pod)
        spec = subject.compiled(pod)
        if what in UNSIGNED:
            # The engine would not compile such a pod, but use the plan of the other one.
            if subject.plugin.sign_pod(pod) != subject.plugin.sign_pod(subject.pod):
                continue
            how = f"the pod has another {what}, which its signature leaves out; return it from sign_pod()"
        else:
            if spec.key != subject.spec.key:
                continue
            how = f"the pod has another {what}, and the key of its spec is the same"
        _compare(subject.outcome(), subject.outcome(pod), how)


def hints_answer(make: Make, sample: SampleCluster) -> None:
    """Hints about nodes and pods return whether to retry a waiting pod."""
    subject = make(sample)
    nodes = [typed(document, Node) for document in sample.nodes]
    pods = [typed(document, Pod) for document in (sample.newcomer, *sample.running)]
    kinds: dict[str, list[Any]] = {EventResource.NODE: nodes, EventResource.POD: pods, EventResource.ASSIGNED_POD: pods}
    for event, hint in subject.plugin.events_to_register():
        for item in kinds.get(event.resource, ())[:2] if hint is not None else ():
            for action, old, new in (
                (ActionType.ADD, None, item),
                (ActionType.DELETE, item, None),
                (~(ActionType.ADD | ActionType.DELETE), item, item),
            ):
                answer = hint(subject.pod, old, new) if event.actions & action else HintAnswer.SKIP
                if not isinstance(answer, HintAnswer | bool):
                    raise PluginFault(f"the hint of {event.label} returned {answer!r}, not a HintAnswer")


def skipped_pods_need_no_binding(make: Make, sample: SampleCluster) -> None:
    """With ``binds_skipped_pods = False``, Reserve and PreBind do nothing for pods that PreFilter skipped."""
    subject = make(sample)
    plugin, pod = subject.plugin, subject.pod
    if plugin.binds_skipped_pods or not skips(subject.pre_filter()):
        return
    state, node_name = CycleState(), subject.name(subject.rows[0])
    calls: list[tuple[str, Any]] = []
    if "reserve" in subject.points:
        calls.append(("reserve", plugin.reserve(state, pod, node_name)))
        calls.append(("reserved", plugin.reserved(state)))
    if "pre_bind" in subject.points:
        calls.append(("pre_bind", plugin.pre_bind(state, pod, node_name)))
        calls.append(("updates", plugin.updates(state)))
    for method, answer in calls:
        if not (answer.ok if isinstance(answer, Status) else not answer):
            raise PluginFault(
                f"PreFilter skips the pod and binds_skipped_pods is False, so {method}() would not be called, but it returned "
                f"{answer!r}; remove binds_skipped_pods = False"
            )


# --- differences of pods, and comparisons of results ------------------------------------------------------------------

UNSIGNED = ("name", "annotation")
"""Differences that pods of one workload have, and that the engine ignores unless the plugin's signature contains them."""


def _variants(sample: SampleCluster) -> list[tuple[str, dict[str, Any]]]:
    """Return (what differs, pod) for pods that differ from the sample cluster's pod in one field."""
    found = []
    for what in (*UNSIGNED, "label", "priority", "request", "toleration"):
        document = copy.deepcopy(sample.pod)
        if what == "name":
            document["metadata"] |= {"name": "another", "uid": "another-uid"}
        elif what == "annotation":
            document["metadata"]["annotations"] = sample.newcomer["metadata"].get("annotations", {})
        elif what == "label":
            document["metadata"]["labels"] = sample.newcomer["metadata"].get("labels", {})
        elif what == "priority":
            document["spec"]["priority"] = document["spec"].get("priority", 0) + 7
        elif what == "request":
            document["spec"]["containers"] = sample.newcomer["spec"]["containers"]
        else:
            document["spec"]["tolerations"] = [{"operator": "Exists"}]
        found.append((what, document))
    return found


def a_scheduler_runs_it(make: Make, sample: SampleCluster) -> None:
    """A scheduler with the plugin schedules a pod; no extension point raises an exception or returns a wrong type."""
    make(sample).schedule()


class _Change(NamedTuple):
    """A change of the cluster: in words, the row of the node (-1 for none), and the data that changed there."""

    text: str
    row: int
    touched: Reads


class _CachedResults(NamedTuple):
    """PreFilter's result, verdicts, params for Score and raw scores; None for what the plugin lacks or skips."""

    pre_filter: Any
    verdicts: Any
    params: Any
    raw: Any


def _cached_results(subject: Subject) -> _CachedResults:
    pre_filter = subject.pre_filter() if subject.filters else None
    params = subject.score_params() if subject.scores else None
    return _CachedResults(
        pre_filter,
        subject.verdicts(pre_filter.params).copy() if isinstance(pre_filter, PreFilterResult) else None,
        params,
        None if params is None else subject.raw(params).copy(),
    )


def _compare_cached(subject: Subject, before: _CachedResults, change: _Change) -> None:
    plugin, now = subject.plugin, _cached_results(subject)
    if subject.filters:
        if "pre_filter" in subject.points and not change.touched & Reads.NODES:
            pre_reads = plugin.pre_filter_reads(subject.spec)
            static = not pre_reads & ~Reads.NODES
            if static and now.pre_filter != before.pre_filter and not skips(before.pre_filter):
                raise PluginFault(
                    f"after {change.text}, pre_filter() returns {now.pre_filter!r} instead of {before.pre_filter!r}, but "
                    f"pre_reads declares {pre_reads}"
                )
        # `filter_rules_follow_what_changes` checks the data that a rule reads itself.
        is_array = plugin.filter_rule(subject.spec, subject.state).evaluates_arrays
        if is_array and now.pre_filter == before.pre_filter and before.verdicts is not None:
            _compare_rows(subject, "filter()", before.verdicts, now.verdicts, plugin.reads, change)
    is_array = subject.scores and plugin.score_rule(subject.spec, subject.state).evaluates_arrays
    if is_array and now.params == before.params and before.raw is not None:
        _compare_rows(subject, "score()", before.raw, now.raw, plugin.score_reads(subject.spec), change)


def _compare_rows(subject: Subject, point: str, before: Any, after: Any, reads: Reads, change: _Change) -> None:
    if reads & (Reads.OBJECTS | Reads.COUNTERS | Reads.CATALOG):
        # The engine evaluates such plugins in full in every cycle.
        return
    for row in subject.rows:
        if row == change.row and change.touched & reads:
            continue
        if int(before[row]) != int(after[row]):
            raise PluginFault(
                f"after {change.text}, {point} of {subject.name(row)} changed from {int(before[row])} to {int(after[row])}, "
                f"although its params did not change and reads declares only {reads}: cached results would be wrong"
            )


def _fingerprint(subject: Subject) -> Mapping[str, object]:
    state = subject.state
    nodes = state.nodes
    return {
        "the allocatable resources of nodes": nodes.allocatable.tobytes(),
        "the resources in use": state.usage.tobytes(),
        "the set of nodes": nodes.alive.tobytes(),
        "a node": msgspec.msgpack.encode([node for node in nodes.nodes if node is not None]),
        "the pods of each node": [list(pods) for pods in state.pods_on],
        "a running pod": msgspec.msgpack.encode([info.pod for info in state.pods.values()]),
    }


def _feasible_sets(subject: Subject) -> list[Any]:
    """Return masks of feasible nodes: all nodes, a random half, and a single node."""
    alive = subject.alive
    draw = RandomStreams(len(subject.rows)).stream("plugin check")
    some = alive & np.array([draw.random() < 0.5 for _ in alive], dtype=np.bool_)
    one = np.zeros_like(alive)
    one[subject.rows[0]] = True
    return [found for found in (alive, some, one) if found.any()]


def _compare(first: Mapping[str, object], second: Mapping[str, object], how: str) -> None:
    for what in dict.fromkeys((*first, *second)):
        one, other = first.get(what, "nothing"), second.get(what, "nothing")
        if one != other:
            raise PluginFault(f"{what} is {one}, but {other} when {how}")


def _check_params(point: str, params: object) -> None:
    if not isinstance(params, tuple):
        raise PluginFault(f"{point} returned params {params!r}, which are not a tuple")
    _hashable(f"the params of {point}", params)


def _hashable(what: str, value: object) -> None:
    try:
        hash(value)
    except TypeError:
        raise PluginFault(f"{what} is not hashable: {value!r}") from None


def _has_ports(pod: Pod) -> bool:
    return any(port.host_port for container in pod.spec.containers for port in container.ports)


CHECKS: tuple[Check, ...] = (
    answers_have_the_right_types,
    filter_answers_alike_in_every_form,
    score_answers_alike_in_every_form,
    verdicts_have_reasons,
    scores_are_normalized,
    rules_answer_alike_about_all_rows_and_one,
    asking_changes_nothing,
    the_same_question_has_the_same_answer,
    what_is_not_declared_has_no_influence,
    pods_that_look_alike_are_treated_alike,
    filter_rules_follow_what_changes,
    score_rules_follow_what_changes,
    trials_are_answered_and_forgotten,
    skipped_pods_need_no_binding,
    hints_answer,
    a_scheduler_runs_it,
)
"""The order matters: an error that one check finds may make later checks fail."""
