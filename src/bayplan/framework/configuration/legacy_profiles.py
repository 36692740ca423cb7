"""Convert a profile of an older version to v1: rename, merge or remove plugins, and convert their arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.conversion import Conversion, Document, object_of, objects_in
from bayplan.framework.configuration.legacy_names import (
    FIT,
    LEFT_OUT,
    NODE_LABEL,
    OLD_WEIGHTS,
    REMOVED,
    RENAMED,
    STRATEGIES,
)

_WITH_STRATEGIES = ("v1alpha1", "v1alpha2", "v1beta1")
"""Versions in which the strategies of NodeResourcesFit were plugins."""

_WITH_OLD_WEIGHTS = (*_WITH_STRATEGIES, "v1beta2")

_OLD_POINTS = {"postFilter": "preScore", "unreserve": "reserve"}
"""Extension points of v1alpha1 that were renamed or merged, with the current name."""


def convert_profile(old: Document, version: str, path: str, found: Conversion) -> Document:
    """Return a profile in v1 form, and note each change. `path`: the path of the profile, for notes."""
    new: Document = {name: value for name, value in old.items() if name not in ("plugins", "pluginConfig")}
    plugins = _Plugins(object_of(old.get("plugins")), version, f"{path}.plugins", found)
    arguments, of_strategies = _arguments(old.get("pluginConfig"), f"{path}.pluginConfig", found)
    if plugins.strategies:
        last = plugins.strategies[-1]
        given = of_strategies.get(last, {})
        strategy = scoring_strategy(STRATEGIES[last], given.get("resources"), given.get("shape"))
        arguments[FIT] = {**arguments.get(FIT, {}), "scoringStrategy": strategy}
        found.note(f"{path}.plugins.score", f"{' and '.join(plugins.strategies)} became the strategy of {FIT}")
    if converted := plugins.document():
        new["plugins"] = converted
    if arguments:
        new["pluginConfig"] = [{"name": name, "args": args} for name, args in arguments.items()]
    return new


class _Plugins:
    """The plugin sets of a profile during its conversion.

    Attributes:
        strategies: enabled score plugins that are strategies of NodeResourcesFit today.
    """

    def __init__(self, old: Document, version: str, path: str, found: Conversion) -> None:
        self.strategies: list[str] = []
        self._version = version
        self._path = path
        self._found = found
        self._sets: defaultdict[str, tuple[list[Document], list[Document]]] = defaultdict(lambda: ([], []))
        self._strategy_weight = 0
        self._least_allocated_off = False
        for point, plugin_set in old.items():
            if isinstance(plugin_set, dict):
                self._add(point, plugin_set)

    def _add(self, point: str, plugin_set: Document) -> None:
        name = _OLD_POINTS.get(point, point) if self._version == "v1alpha1" or point == "unreserve" else point
        if name != point:
            self._found.note(f"{self._path}.{point}", f"is {name} today")
        enabled, disabled = self._sets[name]
        for entry in objects_in(plugin_set.get("enabled")):
            is_new = all(each.get("name") != entry.get("name") for each in enabled)
            if self._stays_enabled(entry, f"{self._path}.{point}.enabled") and is_new:
                enabled.append(entry)
        for entry in objects_in(plugin_set.get("disabled")):
            if self._stays_disabled(entry, f"{self._path}.{point}.disabled") and entry not in disabled:
                disabled.append(entry)

    def _stays_enabled(self, entry: Document, path: str) -> bool:
        name = str(entry.get("name"))
        if name in STRATEGIES and self._version in _WITH_STRATEGIES:
            self.strategies.append(name)
            weight = entry.get("weight")
            self._strategy_weight = weight if isinstance(weight, int) else 1
            return False
        if name in LEFT_OUT:
            self._found.note(f"{path} {name}", f"left out: {LEFT_OUT[name]}")
        return name not in LEFT_OUT

    def _stays_disabled(self, entry: Document, path: str) -> bool:
        name = str(entry.get("name"))
        if name == "NodeResourcesLeastAllocated" and self._version in _WITH_STRATEGIES:
            self._least_allocated_off = True
            return False
        is_gone = name in STRATEGIES or name in LEFT_OUT
        if is_gone:
            self._found.note(f"{path} {name}", "left out: there is no such plugin to be disabled")
        return not is_gone

    def document(self) -> Document:
        """Return the plugin sets in v1 form."""
        self._score_fit()
        if self._version in _WITH_OLD_WEIGHTS:
            self._keep_weights()
        document: Document = {}
        for point, (enabled, disabled) in self._sets.items():
            lists = {"enabled": list[JsonValue](enabled), "disabled": list[JsonValue](disabled)}
            if enabled or disabled:
                document[point] = {name: entries for name, entries in lists.items() if entries}
        return document

    def _score_fit(self) -> None:
        """Enable NodeResourcesFit at score if one of its strategies was enabled, else disable it."""
        enabled, disabled = self._sets["score"]
        all_off = any(each.get("name") == "*" for each in disabled)
        if self.strategies:
            if all_off or self._strategy_weight != 1:
                enabled.append({"name": FIT, "weight": self._strategy_weight})
        elif self._least_allocated_off and not all_off:
            disabled.append({"name": FIT})
            text = f"NodeResourcesLeastAllocated became {FIT}, disabled at score"
            self._found.note(f"{self._path}.score.disabled", text)

    def _keep_weights(self) -> None:
        """Set the default weights from before v1beta3 explicitly if the profile relies on them."""
        enabled, disabled = self._sets["score"]
        named = {each.get("name") for each in (*enabled, *disabled)}
        pinned = {name: weight for name, weight in OLD_WEIGHTS.items() if name not in named and "*" not in named}
        if pinned:
            enabled += [{"name": name, "weight": weight} for name, weight in pinned.items()]
            weights = ", ".join(f"{name} {weight}" for name, weight in pinned.items())
            self._found.note(f"{self._path}.score", f"previous default weights: {weights}")


def _arguments(old: JsonValue, path: str, found: Conversion) -> tuple[dict[str, Document], dict[str, Document]]:
    """Return the arguments in v1 form by plugin, and those of plugins that are strategies today."""
    arguments: dict[str, Document] = {}
    of_strategies: dict[str, Document] = {}
    for number, entry in enumerate(objects_in(old)):
        name, given = str(entry.get("name")), object_of(entry.get("args"))
        place = f"{path}[{number}] {name}"
        if str(given.get("apiVersion", "kubescheduler")).startswith("kubescheduler"):
            # Arguments of out-of-tree plugins may have their own versions.
            given = {key: value for key, value in given.items() if key not in ("apiVersion", "kind")}
        if name in STRATEGIES:
            of_strategies[name] = given
        elif name in REMOVED:
            found.note(place, f"left out: {REMOVED[name]}")
        elif name in RENAMED:
            found.note(place, f"left out: {RENAMED[name]} has no such arguments")
        elif name == NODE_LABEL:
            affinity = _affinity_of_labels(given)
            arguments["NodeAffinity"] = {**arguments.get("NodeAffinity", {}), "addedAffinity": affinity}
            found.note(place, "became an added affinity of NodeAffinity")
        else:
            arguments[name] = {**arguments.get(name, {}), **given}
            if name == "PodTopologySpread" and given.get("defaultConstraints") and not given.get("defaultingType"):
                arguments[name]["defaultingType"] = "List"
                found.note(place, "defaultingType List, which the constraints meant")
    return arguments, of_strategies


def scoring_strategy(kind: str, resources: JsonValue, shape: JsonValue) -> Document:
    """Return a scoring strategy of NodeResourcesFit; without resources, CPU and memory count."""
    both: list[JsonValue] = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    strategy: Document = {"type": kind, "resources": resources or both}
    if shape:
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    return strategy


def _affinity_of_labels(args: Document) -> Document:
    """Return the node affinity that is equivalent to the arguments of NodeLabel."""
    required = label_expressions(args.get("presentLabels"), args.get("absentLabels"))
    preferred = label_expressions(args.get("presentLabelsPreference"), args.get("absentLabelsPreference"))
    return affinity_of_expressions(required, preferred)


def affinity_of_expressions(required: Sequence[Document], preferred: Sequence[Document]) -> Document:
    """Return the node affinity with one term for all required, and one term for each preferred expression."""
    affinity: Document = {}
    if required:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [{"matchExpressions": list[JsonValue](required)}]
        }
    if preferred:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 1, "preference": {"matchExpressions": [each]}} for each in preferred
        ]
    return affinity


def label_expressions(present: JsonValue, absent: JsonValue) -> list[Document]:
    """Return a node selector requirement for each label that must be present, and each that must be absent."""
    return [
        {"key": label, "operator": operator}
        for labels, operator in ((present, "Exists"), (absent, "DoesNotExist"))
        for label in (labels if isinstance(labels, list) else ())
    ]
