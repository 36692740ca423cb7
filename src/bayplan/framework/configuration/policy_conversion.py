"""Convert a Policy file of the classic scheduler to a v1 configuration, as far as current plugins allow.

The decisions are similar to the classic scheduler's, but not the same: today's plugins score from 0 to 100 and
normalise scores. To run the classic scheduler itself with a Policy file, use ``--mode classic``.
"""

from __future__ import annotations

from bayplan.framework.configuration.conversion import KIND, Conversion, Document, convert_extender
from bayplan.framework.configuration.encode import API_VERSION
from bayplan.framework.configuration.extension_points import IN_TREE_EXTENSION_POINTS, ExtensionPoint
from bayplan.framework.configuration.json_tree import JsonValue
from bayplan.framework.configuration.legacy_names import (
    ESSENTIAL_FILTERS,
    FIT,
    PREDICATES,
    PRIORITIES,
    REMOVED_PRIORITIES,
    STRATEGY_PRIORITIES,
)
from bayplan.framework.configuration.legacy_profiles import affinity_of_expressions, label_expressions

_ALWAYS = ("SchedulingGates", "PrioritySort")
_AFTERWARDS = ("DefaultPreemption", "DefaultBinder")


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
    extenders = policy.get("extenders") or policy.get("extenderConfigs")
    if isinstance(extenders, list):
        converted = [
            convert_extender(each, f"$.extenders[{number}]", found.note)
            for number, each in enumerate(extenders)
            if isinstance(each, dict)
        ]
        found.document["extenders"] = list[JsonValue](converted)
    return found


def _filters(predicates: list[JsonValue], required: list[Document], found: Conversion) -> list[str]:
    filters: dict[str, None] = dict.fromkeys(ESSENTIAL_FILTERS)
    for number, rule in enumerate(predicates):
        if not isinstance(rule, dict):
            continue
        name, path = str(rule.get("name")), f"$.predicates[{number}] {rule.get('name')}"
        argument = rule.get("argument")
        labels = argument.get("labelsPresence") if isinstance(argument, dict) else None
        if isinstance(labels, dict):
            required += _expressions(labels.get("labels"), labels.get("presence"))
            filters["NodeAffinity"] = None
            found.note(path, "became a required affinity that NodeAffinity adds to all pods")
        elif isinstance(argument, dict) and argument.get("serviceAffinity"):
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
        argument = rule.get("argument")
        given: Document = argument if isinstance(argument, dict) else {}
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
            arguments[FIT] = {"scoringStrategy": _strategy(name, ratio)}
            found.note(path, f"became the strategy {_strategy(name, ratio)['type']} of {FIT}")
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
    both: list[JsonValue] = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    if not isinstance(ratio, dict):
        strategy: Document = {"type": STRATEGY_PRIORITIES[name], "resources": both}
        if strategy["type"] == "RequestedToCapacityRatio":
            # The default shape of the classic priority, which prefers emptier nodes.
            shape: list[JsonValue] = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
            strategy["requestedToCapacityRatio"] = {"shape": shape}
        return strategy
    return {
        "type": "RequestedToCapacityRatio",
        "resources": ratio.get("resources") or both,
        "requestedToCapacityRatio": {"shape": ratio.get("shape") or ratio.get("utilizationShape")},
    }


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
    names: list[JsonValue] = [{"name": name} for name in filters or ()]
    for name, weight in (scores or {}).items():
        names.append({"name": name, "weight": weight})
    point = "filter" if filters is not None else "score"
    return {point: {"disabled": [{"name": "*"}], "enabled": names}}
