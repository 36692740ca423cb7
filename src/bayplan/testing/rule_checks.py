"""Checks of the conformance kit that evaluate rules as the engine does: on all rows, on changed rows, and in a trial."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bayplan.engine.rule_result import FilterResult, ScoreResult
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.rule import FilterRule, Params, ScoreRule, ready
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes, Ints
from bayplan.testing.plugin_subject import Make, PluginFault, Subject
from bayplan.testing.sample_clusters import SampleCluster, typed


def rules_answer_alike_about_all_rows_and_one(make: Make, sample: SampleCluster) -> None:
    """A rule evaluated on all rows agrees with its evaluation on each row. The same holds for the three ways to normalise."""
    subject = make(sample)
    filtered, scored = subject.filter_params() if subject.filters else None, None
    if filtered is not None:
        verdicts = _verdicts(subject, filtered)
        rule = _new_filter_rule(subject, filtered)
        for row in subject.rows:
            if rule.filter(row) != verdicts[row]:
                raise PluginFault(
                    f"the filter rule returns {int(verdicts[row])} for {subject.name(row)} when called for all rows, and "
                    f"{rule.filter(row)} when called for this one"
                )
    scored = subject.score_params() if subject.scores else None
    if scored is not None:
        _check_score_rule(subject, scored)


def _check_score_rule(subject: Subject, params: Params) -> None:
    columns = subject.state.columns
    feasible = _feasible(subject)
    rule = _new_score_rule(subject, params)
    raw: Ints = np.zeros(columns.capacity, dtype=np.int64)
    rule.score_all(raw)
    for row in subject.rows:
        if rule.score(row) != raw[row]:
            raise PluginFault(
                f"the score rule returns {int(raw[row])} for {subject.name(row)} when called for all rows, and "
                f"{rule.score(row)} when called for this one"
            )
    if not rule.normalizes:
        return
    scale = rule.scale(raw, feasible)
    normalized: Ints = np.zeros(columns.capacity, dtype=np.int64)
    some: Ints = np.zeros(columns.capacity, dtype=np.int64)
    rows = np.array(subject.rows, dtype=np.intp)
    rule.normalize_all(scale, raw, normalized)
    rule.normalize_rows(scale, raw, rows, len(rows), some)
    for row in subject.rows:
        alone = rule.normalize(scale, int(raw[row]), row)
        for name, found in (("normalize_all", normalized), ("normalize_rows", some)):
            if alone != found[row]:
                raise PluginFault(
                    f"{name}() returns {int(found[row])} for {subject.name(row)}, but normalize() returns {alone}"
                )


def filter_rules_follow_what_changes(make: Make, sample: SampleCluster) -> None:
    """A filter rule evaluated only on changed rows agrees with a new rule on all rows."""
    subject = make(sample)
    if not subject.filters:
        return
    plugin = subject.plugin
    result = FilterResult(plugin, subject.spec, subject.state)
    for what in _histories(subject, sample):
        params = subject.filter_params()
        if params is None:
            continue
        result.refresh(params, None)
        verdicts = _verdicts(subject, params)
        for row in subject.rows:
            if result.values[row] != verdicts[row]:
                raise PluginFault(
                    f"after {what}, the filter rule still returns {int(result.values[row])} for {subject.name(row)}, but a new "
                    f"rule returns {int(verdicts[row])}: reads declares only {plugin.reads}, and refresh() did not "
                    "report that other rows must be evaluated again"
                )


def score_rules_follow_what_changes(make: Make, sample: SampleCluster) -> None:
    """A score rule evaluated only on changed rows agrees with a new rule on all rows."""
    subject = make(sample)
    if not subject.scores:
        return
    plugin = subject.plugin
    result = ScoreResult(plugin, subject.spec, subject.state)
    for what in _histories(subject, sample):
        params = subject.score_params()
        if params is None:
            continue
        result.refresh(params, _feasible(subject))
        scores: Ints = np.zeros(subject.state.columns.capacity, dtype=np.int64)
        _new_score_rule(subject, params).score_all(scores)
        for row in subject.rows:
            if result.values[row] != scores[row]:
                raise PluginFault(
                    f"after {what}, the score rule still returns {int(result.values[row])} for {subject.name(row)}, but a new "
                    f"rule returns {int(scores[row])}: reads declares only {plugin.score_reads(subject.spec)}, and refresh() "
                    "did not report that other rows must be evaluated again"
                )


def trials_are_answered_and_forgotten(make: Make, sample: SampleCluster) -> None:
    """While pods are moved temporarily, a used rule agrees with a new rule; afterwards, it returns its earlier results again."""
    subject = make(sample)
    state = subject.state
    params = subject.filter_params() if subject.filters else None
    if params is None:
        return
    rule = _new_filter_rule(subject, params)
    before = {row: rule.filter(row) for row in subject.rows}
    for row in subject.rows:
        for what, change in _trials(subject, sample, row):
            with state.trial():
                change()
                rule.after_changes(params)
                got = rule.filter(row)
                fresh = _new_filter_rule(subject, params)
                fresh.after_changes(params)
                want = fresh.filter(row)
                again = subject.pre_filter()
                counted = (
                    _new_filter_rule(subject, again.params).filter(row) if isinstance(again, PreFilterResult) else want
                )
            rule.after_undo(params)
            if got != want:
                raise PluginFault(
                    f"while {what} temporarily, the filter rule returns {got} for {subject.name(row)}, but a new one returns "
                    f"{want}: after_changes() must read again everything that pods can change"
                )
            if want != counted:
                raise PluginFault(
                    f"while {what} temporarily, filter() of {subject.name(row)} returns {subject.describe(params, want)}, and "
                    f"{subject.describe(params, counted)} after PreFilter has run again: params_after_changes() must return "
                    "the params for the changed cluster"
                )
            for other in subject.rows:
                if rule.filter(other) != before[other]:
                    raise PluginFault(
                        f"after {what} temporarily, the filter rule returns {rule.filter(other)} for {subject.name(other)} "
                        f"instead of {before[other]}: after_undo() must restore the rule"
                    )


# --- changes of the cluster -------------------------------------------------------------------------------------------


def _histories(subject: Subject, sample: SampleCluster) -> Iterator[str]:
    """Change the cluster step by step. Yield a description of each change, and at first "nothing"."""
    state, rows = subject.state, subject.rows
    yield "nothing"
    newcomer = state.pod_info(typed(sample.newcomer, Pod))
    state.place(newcomer, rows[0])
    yield f"a pod was placed on {subject.name(rows[0])}"
    state.remove_pod(newcomer.key)
    state.place(newcomer, rows[-1])
    yield f"it went to {subject.name(rows[-1])}"
    for key in list(state.pods)[:2]:
        name = subject.name(state.pods[key].row)
        state.remove_pod(key)
        yield f"pod {key} left {name}"
    node = copy.deepcopy(sample.nodes[-1])
    node["metadata"].setdefault("labels", {})["bayplan.io/checked"] = "yes"
    node.setdefault("status", {}).setdefault("allocatable", {})["cpu"] = "7"
    state.update_node(typed(node, Node))
    yield f"node {node['metadata']['name']} was changed"
    more = copy.deepcopy(sample.nodes[0])
    more["metadata"] |= {"name": "one-more"}
    more["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = "one-more"
    state.add_node(typed(more, Node))
    yield "node one-more was added"
    if len(rows) > 1:
        name = subject.name(rows[0])
        state.remove_node(name)
        yield f"node {name} was removed"


def _trials(subject: Subject, sample: SampleCluster, row: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield (description, function that makes the change) for temporary changes of the pods in a row."""
    state = subject.state

    def fill() -> None:
        state.place(state.pod_info(typed(sample.newcomer, Pod)), row)

    def empty() -> None:
        for key in list(state.pods_on[row]):
            state.remove_pod(key)

    yield f"a pod is on {subject.name(row)}", fill
    yield f"the pods of {subject.name(row)} are gone", empty


# --- rules before their first use -------------------------------------------------------------------------------------


def _new_filter_rule(subject: Subject, params: Params | None) -> FilterRule:
    rule: FilterRule = subject.plugin.filter_rule(subject.spec, subject.state)
    ready(rule, params, subject.state.columns)
    return rule


def _new_score_rule(subject: Subject, params: Params | None) -> ScoreRule:
    rule: ScoreRule = subject.plugin.score_rule(subject.spec, subject.state)
    ready(rule, params, subject.state.columns)
    if rule.reads_feasible:
        rule.prepare(_feasible(subject))
    return rule


def _verdicts(subject: Subject, params: Params | None) -> Codes:
    codes: Codes = np.zeros(subject.state.columns.capacity, dtype=np.uint16)
    _new_filter_rule(subject, params).filter_all(codes)
    return codes


def _feasible(subject: Subject) -> Any:
    return subject.state.nodes.alive.view(np.uint8).copy()
