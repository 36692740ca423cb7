"""Check a plugin against the contract of the framework, in one call from a test: ``check_plugin(MyPlugin)``."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.base.errors import BayplanError, InputError, PluginError
from bayplan.base.random_streams import RandomStreams
from bayplan.framework.events import ClusterEvent
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import REJECTING_POINTS, Plugin
from bayplan.live.plugin_results import check_created
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing.plugin_checks import CHECKS, Check
from bayplan.testing.plugin_subject import Make, PluginFault, Subject, is_in_tree
from bayplan.testing.sample_clusters import SampleCluster, Vocabulary, random_cluster, smallest

CLUSTERS = 40


def check_plugin(
    plugin: type[Plugin[Any]],
    *,
    arguments: object = None,
    feature_gates: Mapping[str, bool] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    annotations: Mapping[str, Sequence[str]] | None = None,
    resources: Mapping[str, Sequence[str]] | None = None,
    sample_clusters: Sequence[SampleCluster] | None = None,
    clusters: int = CLUSTERS,
    seed: int = 0,
) -> None:
    """Call a plugin on small random clusters in all the ways in which the engine does, and check its contract.

    It checks that all evaluation forms agree, calls change nothing, equal calls return equal results, verdicts have
    reasons, scores are from 0 to 100, data that `reads` does not declare has no influence, pods with equal signatures
    and keys are treated alike, registered events are valid, and a scheduler can run the plugin.
    The random clusters contain what most plugins read; declare any other labels, annotations and resources that yours
    reads.

    Args:
        plugin: the class of the plugin.
        arguments: the arguments of the plugin.
        feature_gates: the feature gates to set.
        labels: additional label values by key, for nodes and pods.
        annotations: additional annotation values by key, for nodes and pods.
        resources: for each extended resource, the possible amounts of nodes; pods request amounts from the first half.
        sample_clusters: clusters to use instead of random ones.
        clusters: the number of random clusters.
        seed: the seed of all random choices.

    Raises:
        PluginFault: the plugin violates the contract. The text explains how, on the smallest cluster found that shows
            it.
        InputError: there is no cluster to check the plugin on.
    """
    check_declarations(plugin)
    gates = FeatureGates.from_mapping(dict(feature_gates or {}))
    if sample_clusters is None:
        usual = Vocabulary()
        words = Vocabulary({**usual.labels, **(labels or {})}, annotations or {}, resources or {})
        draw = RandomStreams(seed).stream("plugin check")
        sample_clusters = [random_cluster(draw, words) for _ in range(clusters)]
    if not sample_clusters:
        raise InputError("check_plugin()", got="none", wanted="at least one cluster in `sample_clusters` or `clusters`")

    def make(sample: SampleCluster) -> Subject:
        return Subject(plugin, arguments, gates, sample)

    created = make(sample_clusters[0]).plugin
    try:
        check_created(created, plugin.__name__)
    except PluginError as problem:
        raise PluginFault(str(problem)) from None
    check_events(plugin, created)
    for number, sample in enumerate(sample_clusters):
        for check in CHECKS:
            if _fault_of(check, make, sample) is not None:
                raise PluginFault(_fault_text(plugin, check, make, sample, f"cluster {number}, seed {seed}"))


def check_declarations(plugin: type[Plugin[Any]]) -> None:
    """Check that a plugin is a class, has a name, and implements the extension points that it inherits from.

    Raises:
        PluginFault: it is not a class, has no name, lacks the method of an extension point or the base class of a method,
            has a constructor with other parameters, or an attribute of the wrong type.
    """
    if not isinstance(plugin, type) or not issubclass(plugin, Plugin):
        raise PluginFault(
            f"{plugin!r} is not a plugin class: expected a subclass of bayplan.PerNodePlugin or of an extension point"
        )
    try:
        if not is_in_tree(plugin):
            in_tree_registry().with_plugins(plugin)
    except PluginError as problem:
        raise PluginFault(str(problem)) from None
    points = plugin.extension_points()
    missing = [point for point in points if not _implements(plugin, point)]
    if "reserve" in points and not missing and not _implements(plugin, "unreserve"):
        raise PluginFault(f"{plugin.__name__} has a method reserve() without a method unreserve(), which undoes it")
    if missing:
        raise PluginFault(
            f"{plugin.__name__} inherits from the extension point {missing[0]} without a method {missing[0]}()"
        )


def _implements(plugin: type[Plugin[Any]], point: str) -> bool:
    methods = ("sort_key",) if point == "queue_sort" else (point, f"{point}_rule")
    found = [getattr(plugin, method, None) for method in methods]
    # The base classes' methods only raise an error, so they don't count.
    return any(it is not None and getattr(it, "__module__", "") != "bayplan.framework.plugin" for it in found)


def check_events(kind: type[Plugin[Any]], plugin: Plugin[Any]) -> None:
    """Check the events that a plugin registers. A plugin that can reject pods needs at least one.

    Raises:
        PluginFault: an entry is malformed, or a plugin that can reject pods registers none.
    """
    events = plugin.events_to_register()
    for entry in events:
        pair = isinstance(entry, tuple) and len(entry) == 2
        if not pair or not isinstance(entry[0], ClusterEvent) or not (entry[1] is None or callable(entry[1])):
            raise PluginFault(f"events_to_register() contains {entry!r}, not a (ClusterEvent, hint or None)")
        if not int(entry[0].actions):
            raise PluginFault(f"events_to_register() contains an event without an action: {entry[0]!r}")
    rejecting = REJECTING_POINTS.intersection(kind.extension_points())
    if rejecting and not events:
        point = sorted(rejecting)[0]
        raise PluginFault(
            f"{kind.__name__} can reject pods ({point}) but registers no event: rejected pods would be retried "
            "only after five minutes"
        )


ANSWERS = "No call raises an exception."
"""The clause of the contract that all checks verify implicitly."""

REPEATS = "The same call returns the same result."


def _fault_of(check: Check, make: Make, sample: SampleCluster) -> tuple[str, str] | None:
    """Run a check. Return its finding and the clause of the contract that is violated, or None."""
    try:
        check(make, sample)
    except PluginFault as fault:
        return str(fault), (check.__doc__ or "").partition("\n")[0]
    except BayplanError as problem:
        return f"{type(problem).__name__}: {problem}", ANSWERS
    except Exception as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        return f"{type(problem).__name__} in {last.name}(), line {last.lineno} of {last.filename}: {problem}", ANSWERS
    return None


def _fault_text(plugin: type[Plugin[Any]], check: Check, make: Make, sample: SampleCluster, where: str) -> str:
    small = smallest(sample, lambda smaller: _fault_of(check, make, smaller) is not None)
    text, clause = _fault_of(check, make, small) or ("it failed once, and not when called again", REPEATS)
    return (
        f"{plugin.__name__} breaks its contract: {text}\n\nThe contract: {clause}\n\n"
        f"The smallest cluster that shows the fault (reduced from {where}):\n\n{small.text()}"
    )
