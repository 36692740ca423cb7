"""Convert a profile of an older version to v1: rename, merge or remove plugins, and convert their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.framework.configuration.conversion import Document, Note
from bayplan.framework.configuration.json_tree import JsonValue
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
"""Versions in which the strategies of NodeResourcesFit were plugins.

In later versions, disabling them has no effect.
"""

_WITH_OLD_WEIGHTS = (*_WITH_STRATEGIES, "v1beta2")

_POINTS_OF_OLD = {"postFilter": "preScore", "unreserve": "reserve"}
"""Extension points of v1alpha1 that were renamed or merged, with the current name."""


def convert_profile(old: Document, version: str, path: str, note: Note) -> Document:
    """Return a profile in v1 form; call `note` for each change.

    Args:
        old: the profile.
        version: the version of the profile.
        path: the path of the profile, for notes.
        note: the function to call with the path and text of each change.
    """
    new: Document = {name: value for name, value in old.items() if name not in ("plugins", "pluginConfig")}
    plugins = _Plugins(old.get("plugins"), version, f"{path}.plugins", note)
    arguments = _Arguments(old.get("pluginConfig"), f"{path}.pluginConfig", note)
    strategy = arguments.strategy(plugins.strategies)
    if strategy is not None:
        arguments.merge(FIT, {"scoringStrategy": strategy})
        note(f"{path}.plugins.score", f"{' and '.join(plugins.strategies)} became the strategy of {FIT}")
    converted = plugins.document()
    if converted:
        new["plugins"] = converted
    if arguments.entries:
        new["pluginConfig"] = [{"name": name, "args": args} for name, args in arguments.entries.items()]
    return new


class _Plugins:
    """The plugin sets of a profile during its conversion.

    Attributes:
        strategies: enabled score plugins that are strategies of NodeResourcesFit today.
    """

    def __init__(self, old: JsonValue, version: str, path: str, note: Note) -> None:
        self.strategies: list[str] = []
        self._version = version
        self._path = path
        self._note = note
        self._sets: dict[str, tuple[list[Document], list[Document]]] = {}
        self._strategy_weight = 0
        self._least_allocated_off = False
        for point, plugin_set in old.items() if isinstance(old, dict) else ():
            if isinstance(plugin_set, dict):
                self._take(point, plugin_set)

    def _take(self, point: str, plugin_set: Document) -> None:
        name = point
        if self._version == "v1alpha1" or point == "unreserve":
            name = _POINTS_OF_OLD.get(point, point)
            if name != point:
                self._note(f"{self._path}.{point}", f"is {name} today")
        enabled, disabled = self._sets.setdefault(name, ([], []))
        for entry in _entries(plugin_set.get("enabled")):
            kept = self._enabled(entry, f"{self._path}.{point}.enabled")
            if kept is not None and all(each["name"] != kept["name"] for each in enabled):
                enabled.append(kept)
        for entry in _entries(plugin_set.get("disabled")):
            kept = self._disabled(entry, f"{self._path}.{point}.disabled")
            if kept is not None and kept not in disabled:
                disabled.append(kept)

    def _enabled(self, entry: Document, path: str) -> Document | None:
        name = str(entry.get("name"))
        if name in STRATEGIES and self._version in _WITH_STRATEGIES:
            self.strategies.append(name)
            weight = entry.get("weight")
            self._strategy_weight = weight if isinstance(weight, int) else 1
            return None
        if name in LEFT_OUT:
            self._note(f"{path} {name}", f"left out: {LEFT_OUT[name]}")
            return None
        return entry

    def _disabled(self, entry: Document, path: str) -> Document | None:
        name = str(entry.get("name"))
        if name == "NodeResourcesLeastAllocated" and self._version in _WITH_STRATEGIES:
            self._least_allocated_off = True
            return None
        if name in STRATEGIES or name in LEFT_OUT:
            self._note(f"{path} {name}", "left out: there is no such plugin to be disabled")
            return None
        return entry

    def document(self) -> Document:
        """Return the plugin sets in v1 form."""
        self._score_fit()
        if self._version in _WITH_OLD_WEIGHTS:
            self._keep_weights()
        found: Document = {}
        for point, (enabled, disabled) in self._sets.items():
            lists = {"enabled": list[JsonValue](enabled), "disabled": list[JsonValue](disabled)}
            if enabled or disabled:
                found[point] = {name: entries for name, entries in lists.items() if entries}
        return found

    def _score_fit(self) -> None:
        """Enable NodeResourcesFit at score if one of its strategies was enabled, else disable it."""
        enabled, disabled = self._sets.get("score", ([], []))
        all_off = any(each["name"] == "*" for each in disabled)
        if self.strategies:
            if all_off or self._strategy_weight != 1:
                enabled.append({"name": FIT, "weight": self._strategy_weight})
                self._sets["score"] = (enabled, disabled)
        elif self._least_allocated_off and not all_off:
            disabled.append({"name": FIT})
            self._sets["score"] = (enabled, disabled)
            self._note(f"{self._path}.score.disabled", f"NodeResourcesLeastAllocated became {FIT}, disabled at score")

    def _keep_weights(self) -> None:
        """Set the default weights from before v1beta3 explicitly if the profile relies on them."""
        enabled, disabled = self._sets.get("score", ([], []))
        named = {each["name"] for each in (*enabled, *disabled)}
        pinned: list[Document] = [
            {"name": name, "weight": weight}
            for name, weight in OLD_WEIGHTS.items()
            if name not in named and "*" not in named
        ]
        if pinned:
            self._sets["score"] = ([*enabled, *pinned], disabled)
            weights = ", ".join(f"{each['name']} {each['weight']}" for each in pinned)
            self._note(f"{self._path}.score", f"previous default weights: {weights}")


class _Arguments:
    """The arguments of a profile's plugins during its conversion.

    Attributes:
        entries: the arguments in v1 form, by plugin.
    """

    def __init__(self, old: JsonValue, path: str, note: Note) -> None:
        self.entries: dict[str, Document] = {}
        self._strategies: dict[str, Document] = {}
        for number, entry in enumerate(_entries(old)):
            name, args = str(entry.get("name")), entry.get("args")
            given: Document = dict(args) if isinstance(args, dict) else {}
            if str(given.get("apiVersion", "kubescheduler")).startswith("kubescheduler"):
                # Arguments of out-of-tree plugins may have their own versions.
                given = {key: value for key, value in given.items() if key not in ("apiVersion", "kind")}
            self._take(name, given, f"{path}[{number}]", note)

    def _take(self, name: str, given: Document, path: str, note: Note) -> None:
        if name in STRATEGIES:
            self._strategies[name] = given
        elif name == NODE_LABEL:
            self.merge("NodeAffinity", {"addedAffinity": affinity_of_labels(given)})
            note(f"{path} {name}", "became an added affinity of NodeAffinity")
        elif name in REMOVED:
            note(f"{path} {name}", f"left out: {REMOVED[name]}")
        elif name in RENAMED:
            note(f"{path} {name}", f"left out: {RENAMED[name]} has no such arguments")
        else:
            if name == "PodTopologySpread" and given.get("defaultConstraints") and not given.get("defaultingType"):
                given["defaultingType"] = "List"
                note(f"{path} {name}", "defaultingType List, which the constraints meant")
            self.merge(name, given)

    def merge(self, name: str, args: Document) -> None:
        """Merge arguments into those that a plugin already has."""
        self.entries[name] = {**self.entries.get(name, {}), **args}

    def strategy(self, names: Sequence[str]) -> Document | None:
        """Return the scoring strategy of NodeResourcesFit for these former plugins; the last one counts.

        None if there are none.
        """
        found: Document | None = None
        for name in names:
            given = self._strategies.get(name, {})
            default: list[JsonValue] = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
            found = {"type": STRATEGIES[name], "resources": given.get("resources") or default}
            if given.get("shape"):
                found["requestedToCapacityRatio"] = {"shape": given["shape"]}
        return found


def affinity_of_labels(args: Document) -> Document:
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


def _entries(value: JsonValue) -> list[Document]:
    return [dict(each) for each in value if isinstance(each, dict)] if isinstance(value, list) else []
