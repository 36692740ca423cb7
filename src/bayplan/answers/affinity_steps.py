"""Steps that relax required affinity: drop one of its requirements, or make it preferred."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from bayplan.analysis.filter_matrix import NODE_AFFINITY
from bayplan.analysis.node_groups_text import requirement_text
from bayplan.answers.displaced_pods import is_sibling
from bayplan.answers.steps import DROPPED, Step, relaxation, with_spec
from bayplan.answers.trial import Trial
from bayplan.answers.workloads import workload_of
from bayplan.objects.affinity import (
    Affinity,
    NodeSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    WeightedPodAffinityTerm,
)
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.selectors import SelectorError, compile_label_selector, selector_text

_Side = TypeVar("_Side", PodAffinity, PodAntiAffinity)

PREFERENCE_WEIGHT = 100
"""The weight of a preference that replaces a requirement: the highest possible."""


def affinity_relaxations(affinity: Affinity) -> Iterator[Step]:
    """Yield steps that relax required affinity, the largest ones last."""
    smaller: list[str] = []
    for step in (*_of_nodes(affinity), *_of_pods(affinity, anti=False), *_of_pods(affinity, anti=True)):
        smaller.append(step.text)
        yield step
    node, pods, anti = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    rules = [
        node is not None and node.required_during_scheduling_ignored_during_execution is not None,
        pods is not None and bool(pods.required_during_scheduling_ignored_during_execution),
        anti is not None and bool(anti.required_during_scheduling_ignored_during_execution),
    ]
    # If there is only one rule, the step that relaxes it does the same.
    if sum(rules) > 1:
        yield relaxation(
            "make all required affinity preferred",
            "InterPodAffinity",
            cost=0.9,
            edit_pod=_all_soft,
            parts=tuple(smaller),
        )


def unreadable_pod_terms(affinity: Affinity) -> Iterator[Step]:
    """Yield steps that drop the terms of pod affinity and anti-affinity that can't be read; preferred terms fail, too."""
    probe = Pod(spec=PodSpec(affinity=affinity))
    for anti in (False, True):
        if _without_unreadable(anti, probe) != probe:
            yield relaxation(
                f"drop the terms of the pod {_name(anti)} that can't be read",
                "InterPodAffinity",
                cost=0.05,
                edit_pod=partial(_without_unreadable, anti),
                risk=DROPPED,
            )


def _without_unreadable(anti: bool, pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    near, away = affinity.pod_affinity, affinity.pod_anti_affinity
    if anti:
        found = replace(affinity, pod_anti_affinity=None if away is None else _readable(away))
    else:
        found = replace(affinity, pod_affinity=None if near is None else _readable(near))
    return with_spec(pod, affinity=found)


def _readable(side: _Side) -> _Side:
    """Return one side of a pod's affinity without the terms whose selectors can't be read."""
    required = tuple(each for each in side.required_during_scheduling_ignored_during_execution if _can_be_read(each))
    preferred = tuple(
        each
        for each in side.preferred_during_scheduling_ignored_during_execution
        if _can_be_read(each.pod_affinity_term)
    )
    return replace(
        side,
        required_during_scheduling_ignored_during_execution=required,
        preferred_during_scheduling_ignored_during_execution=preferred,
    )


def _can_be_read(term: PodAffinityTerm) -> bool:
    try:
        compile_label_selector(term.label_selector)
        compile_label_selector(term.namespace_selector)
    except SelectorError:
        return False
    return True


def _of_nodes(affinity: Affinity) -> Iterator[Step]:
    node = affinity.node_affinity
    required = node.required_during_scheduling_ignored_during_execution if node is not None else None
    if required is None:
        return
    expressions = {
        f"drop {requirement_text(each)} from the required node affinity": each
        for term in required.node_selector_terms
        for each in (*term.match_expressions, *term.match_fields)
    }
    for text, expression in expressions.items() if len(expressions) > 1 else ():
        yield relaxation(text, NODE_AFFINITY, cost=0.3, edit_pod=partial(_without_expression, expression), risk=DROPPED)
    softened = "make the required node affinity preferred"
    yield relaxation(softened, NODE_AFFINITY, cost=0.4, edit_pod=_soft_node_affinity, parts=tuple(expressions))
    # For an affinity that can't be read, which is an error as a preference, too.
    yield relaxation(
        "drop the required node affinity",
        NODE_AFFINITY,
        cost=0.5,
        edit_pod=partial(without_node_affinity, "required_during_scheduling_ignored_during_execution"),
        risk=DROPPED,
        parts=(*expressions, softened),
    )


def _of_pods(affinity: Affinity, *, anti: bool) -> Iterator[Step]:
    name, terms = _name(anti), _terms(affinity, anti)
    texts = [f"make the required pod {name} to {_term_text(term)} preferred" for term in terms]
    for place, text in enumerate(texts):
        yield relaxation(text, "InterPodAffinity", cost=0.3, edit_pod=partial(_soft_pod_term, anti, place))
    if len(terms) > 1:
        yield relaxation(
            f"make all required pod {name} preferred",
            "InterPodAffinity",
            cost=0.6,
            edit_pod=partial(_soft_side, anti),
            parts=tuple(texts),
        )


def shared_relaxations(pod: Pod, trial: Trial) -> Iterator[Step]:
    """Yield steps that relax an anti-affinity in all pods of the workload, because running pods would still reject the pod."""
    owner, affinity = pod.metadata.controller(), pod.spec.affinity
    terms = () if affinity is None else _terms(affinity, anti=True)
    if owner is None or not terms:
        return
    siblings = [
        info.pod
        for info in trial.state.pods.values()
        if info.pod.spec.affinity == affinity and is_sibling(info.pod, pod)
    ]
    kind, name = workload_of(pod, trial.catalog)
    for place, term in enumerate(terms if siblings else ()):
        alone = f"make the required pod anti-affinity to {_term_text(term)} preferred"
        yield relaxation(
            f"{alone} in all pods of {kind} {name}, which restarts them",
            "InterPodAffinity",
            cost=0.6,
            edit_pod=partial(_soft_pod_term, True, place),
            replaces=tuple(_soft_pod_term(True, place, each) for each in siblings),
            parts=(alone,),
        )


def _name(anti: bool) -> str:
    return "anti-affinity" if anti else "affinity"


def _term_text(term: PodAffinityTerm) -> str:
    return f"{selector_text(term.label_selector)} in {term.topology_key}"


def _terms(affinity: Affinity, anti: bool) -> tuple[PodAffinityTerm, ...]:
    side = affinity.pod_anti_affinity if anti else affinity.pod_affinity
    return () if side is None else side.required_during_scheduling_ignored_during_execution


# --- edits ------------------------------------------------------------------------------------------------------------


def _without_expression(expression: NodeSelectorRequirement, pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    required = node.required_during_scheduling_ignored_during_execution if node is not None else None
    if affinity is None or node is None or required is None:
        return pod
    terms = [
        replace(
            term,
            match_expressions=tuple(each for each in term.match_expressions if each != expression),
            match_fields=tuple(each for each in term.match_fields if each != expression),
        )
        for term in required.node_selector_terms
    ]
    # A term without expressions matches nothing; terms are alternatives, so if one requires nothing, drop the rule.
    found = (
        None
        if any(not (each.match_expressions or each.match_fields) for each in terms)
        else replace(required, node_selector_terms=tuple(terms))
    )
    node = replace(node, required_during_scheduling_ignored_during_execution=found)
    return with_spec(pod, affinity=replace(affinity, node_affinity=node))


def _soft_node_affinity(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    required = node.required_during_scheduling_ignored_during_execution if node is not None else None
    if affinity is None or node is None or required is None:
        return pod
    more = [PreferredSchedulingTerm(weight=PREFERENCE_WEIGHT, preference=term) for term in required.node_selector_terms]
    node = replace(
        node,
        required_during_scheduling_ignored_during_execution=None,
        preferred_during_scheduling_ignored_during_execution=(
            *(node.preferred_during_scheduling_ignored_during_execution or ()),
            *more,
        ),
    )
    return with_spec(pod, affinity=replace(affinity, node_affinity=node))


def without_node_affinity(field: str, pod: Pod) -> Pod:
    """Return a pod without the required or the preferred node affinity; `field` is its name in the struct."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return pod
    return with_spec(pod, affinity=replace(affinity, node_affinity=replace(affinity.node_affinity, **{field: None})))


def _soft_pod_term(anti: bool, place: int, pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    side = None if affinity is None else affinity.pod_anti_affinity if anti else affinity.pod_affinity
    if affinity is None or side is None:
        return pod
    terms = side.required_during_scheduling_ignored_during_execution
    soft = WeightedPodAffinityTerm(weight=PREFERENCE_WEIGHT, pod_affinity_term=terms[place])
    left = replace(
        side,
        required_during_scheduling_ignored_during_execution=(*terms[:place], *terms[place + 1 :]),
        preferred_during_scheduling_ignored_during_execution=(
            *side.preferred_during_scheduling_ignored_during_execution,
            soft,
        ),
    )
    return with_spec(pod, affinity=replace(affinity, **{"pod_anti_affinity" if anti else "pod_affinity": left}))


def _soft_side(anti: bool, pod: Pod) -> Pod:
    for _ in range(0 if pod.spec.affinity is None else len(_terms(pod.spec.affinity, anti))):
        pod = _soft_pod_term(anti, 0, pod)
    return pod


def _all_soft(pod: Pod) -> Pod:
    return _soft_side(True, _soft_side(False, _soft_node_affinity(pod)))
