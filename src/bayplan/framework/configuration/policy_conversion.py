"""Convert a Policy file of the classic scheduler to a v1 configuration, as far as current plugins allow.

The decisions are similar to the classic scheduler's, but not the same: today's plugins score from 0 to 100 and
normalise scores. To run the classic scheduler itself with a Policy file, use ``--mode classic``.
"""

from __future__ import annotations

from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.conversion import Conversion, Document, object_of
from bayplan.framework.configuration.document import API_VERSION, KIND
from bayplan.framework.configuration.extension_points import IN_TREE_EXTENSION_POINTS, ExtensionPoint
from bayplan.framework.configuration.legacy_names import (
    ESSENTIAL_FILTERS,
    FIT,
    PREDICATES,
    PRIORITIES,
    RATIO,
    REMOVED_PRIORITIES,
    STRATEGY_PRIORITIES,
)
from bayplan.framework.configuration.legacy_profiles import affinity_of_expressions, label_expressions, scoring_strategy

_ALWAYS = ("SchedulingGates", "PrioritySort")
_AFTERWARDS = ("DefaultPreemption", "DefaultBinder")
_CLASSIC_SHAPE: list[JsonValue] = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
"""The default shape of the classic priority, which prefers emptier nodes."""


def convert_policy(policy: Document) -> Conversion:
    """Return the v1 configuration closest to a Policy."""
    found = Conversion("Policy")
    arguments: dict[str, Document] = {}
    required: list[Document] = []
    preferred: list[Document] = []
    profile: Document = {"schedulerName": "default-scheduler"}
    predicates, priorities = policy.get("predicates"), policy.get("priorities")
    filters = _filters(predicates, required, found) if isinstance(predicates, list) else None
    if required:
        arguments["NodeAffinity"] = {}
    scores = _scores(priorities, arguments, preferred, found) if isinstance(priorities, list) else None
    if required or preferred:
        arguments["NodeAffinity"] = {"addedAffinity": affinity_of_expressions(required, preferred)}
    if filters is not None or scores is not None:
        profile["plugins"] = _plugins(filters, scores)
    weight = policy.get("hardPodAffinitySymmetricWeight")
    if isinstance(weight, int):
        arguments["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
        found.note("$.hardPodAffinitySymmetricWeight", "became hardPodAffinityWeight of InterPodAffinity")
    if policy.get("alwaysCheckAllPredicates"):
        found.note("$.alwaysCheckAllPredicates", "left out: filters end at the first that fails")
    if arguments:
        profile["pluginConfig"] = [{"name": name, "args": args} for name, args in arguments.items()]
    found.document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
    found.add_extenders(policy.get("extenders") or policy.get("extenderConfigs"))
    return found


def _filters(predicates: list[JsonValue], required: list[Document], found: Conversion) -> list[str]:
    filters: dict[str, None] = dict.fromkeys(ESSENTIAL_FILTERS)
    for number, rule in enumerate(predicates):
        if not isinstance(rule, dict):
            continue
        name, path = str(rule.get("name")), f"$.predicates[{number}] {rule.get('name')}"
        argument = object_of(rule.get("argument"))
        if isinstance(labels := argument.get("labelsPresence"), dict):
            required += _expressions(labels.get("labels"), labels.get("presence"))
            filters["NodeAffinity"] = None
            found.note(path, "became a required affinity that NodeAffinity adds to all pods")
        elif argument.get("serviceAffinity"):
            found.note(path, "left out: pods of a service are no longer kept together by node labels")
        elif name in PREDICATES:
            filters |= dict.fromkeys(PREDICATES[name])
            if (name,) != PREDICATES[name]:
                found.note(path, f"is the filter of {', '.join(PREDICATES[name])}")
        else:
            found.note(path, "left out: no plugin of today stands for it")
    return [*filters]


def _scores(
    priorities: list[JsonValue], arguments: dict[str, Document], preferred: list[Document], found: Conversion
) -> dict[str, int]:
    scores: dict[str, int] = {}
    for number, rule in enumerate(priorities):
        if not isinstance(rule, dict):
            continue
        name, path = str(rule.get("name")), f"$.priorities[{number}] {rule.get('name')}"
        weight = rule.get("weight")
        points = weight if isinstance(weight, int) else 1
        given = object_of(rule.get("argument"))
        ratio, label = given.get("requestedToCapacityRatioArguments"), given.get("labelPreference")
        if isinstance(label, dict):
            preferred += _expressions([label.get("label")], label.get("presence"))
            arguments.setdefault("NodeAffinity", {})
            scores["NodeAffinity"] = max(scores.get("NodeAffinity", 0), points)
            found.note(path, "became a preferred affinity that NodeAffinity adds to all pods")
        elif given.get("serviceAntiAffinity"):
            found.note(path, "left out: topology spread constraints of pods do this")
        elif isinstance(ratio, dict) or name in STRATEGY_PRIORITIES:
            if FIT in scores:
                found.note(path, f"left out: {FIT} has one strategy, and another priority has set it")
                continue
            scores[FIT] = points
            strategy = _strategy(name, ratio)
            arguments[FIT] = {"scoringStrategy": strategy}
            found.note(path, f"became the strategy {strategy['type']} of {FIT}")
        elif name in PRIORITIES:
            plugin = PRIORITIES[name]
            scores[plugin] = max(scores.get(plugin, 0), points)
            found.note(path, f"is the score of {plugin}")
        else:
            found.note(path, f"left out: {REMOVED_PRIORITIES.get(name, 'no plugin of today stands for it')}")
    return scores


def _expressions(labels: JsonValue, presence: JsonValue) -> list[Document]:
    return label_expressions(labels, None) if presence else label_expressions(None, labels)


def _strategy(name: str, ratio: JsonValue) -> Document:
    if isinstance(ratio, dict):
        return scoring_strategy(RATIO, ratio.get("resources"), ratio.get("shape") or ratio.get("utilizationShape"))
    kind = STRATEGY_PRIORITIES[name]
    return scoring_strategy(kind, None, _CLASSIC_SHAPE if kind == RATIO else None)


def _plugins(filters: list[str] | None, scores: dict[str, int] | None) -> Document:
    """Return plugin sets that enable only these filters and score plugins; None stands for the default plugins."""
    if filters is None or scores is None:
        return _narrowed(filters, scores)
    names = dict.fromkeys((*_ALWAYS, *filters, *scores, *_AFTERWARDS))
    enabled: list[JsonValue] = [
        {"name": name, "weight": scores[name]} if scores.get(name, 1) != 1 else {"name": name} for name in names
    ]
    plugins: Document = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    for point, wanted in ((ExtensionPoint.FILTER, filters), (ExtensionPoint.SCORE, [*scores])):
        unwanted = [name for name in names if name not in wanted and point in IN_TREE_EXTENSION_POINTS[name]]
        if unwanted:
            plugins[point.json_name] = {"disabled": [{"name": name} for name in unwanted]}
    return plugins


def _narrowed(filters: list[str] | None, scores: dict[str, int] | None) -> Document:
    """Return plugin sets with the plugins of a Policy at one extension point, and the default plugins at the other."""
    enabled: list[JsonValue] = [{"name": name} for name in filters or ()]
    enabled += [{"name": name, "weight": weight} for name, weight in (scores or {}).items()]
    return {"score" if filters is None else "filter": {"disabled": [{"name": "*"}], "enabled": enabled}}
