"""Assembled profiles: running order, weights, custom plugins, and upstream's errors for invalid ones."""

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.extension_points import (
    IN_TREE_EXTENSION_POINTS,
    ExtensionPoint,
    ExtensionPointsOf,
    in_tree_extension_points,
)
from bayplan.framework.configuration.loading import examine_configuration, load_configuration
from bayplan.framework.configuration.profiles import PluginWeight
from tests.framework.configuration.configurations import HEADER, examine
from tests.oracle.plugin_order import plugin_order, plugin_weight

CUSTOM = {"Mine": {"filter", "score"}, "Sorter": {"queue_sort"}, "Binder": {"bind"}, "Late": {"post_bind"}}


def with_custom_plugins(custom: Mapping[str, Collection[str]]) -> ExtensionPointsOf:
    return lambda plugin: custom.get(plugin) or in_tree_extension_points(plugin)


def at(body: str, point: str) -> list[PluginWeight]:
    found = examine_configuration(HEADER + body, extension_points_of=with_custom_plugins(CUSTOM))
    assert found.configuration is not None, found.error
    return list(found.configuration.profiles[0].plugins[point])


def plugins(text: str) -> str:
    return f"profiles:\n- plugins: {text}\n"


@pytest.mark.parametrize(
    ("body", "point", "want"),
    [
        ("", "queue_sort", ["PrioritySort"]),
        ("", "pre_enqueue", ["SchedulingGates", "DynamicResources", "DefaultPreemption"]),
        ("", "post_filter", ["DynamicResources", "DefaultPreemption"]),
        ("", "reserve", ["VolumeBinding", "DynamicResources"]),
        ("", "permit", []),
        ("", "post_bind", []),
        ("", "placement_score", ["NodeResourcesFit"]),
        (plugins("{bind: {disabled: [{name: '*'}], enabled: [{name: Binder}]}}"), "bind", ["Binder"]),
        (plugins("{bind: {enabled: [{name: Binder}]}}"), "bind", ["DefaultBinder", "Binder"]),
        (plugins("{bind: {enabled: [{name: DefaultBinder}, {name: Binder}]}}"), "bind", ["DefaultBinder", "Binder"]),
        (
            plugins("{bind: {enabled: [{name: Binder}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}}"),
            "bind",
            ["Binder", "DefaultBinder"],
        ),
        (plugins("{multiPoint: {enabled: [{name: Late}]}}"), "post_bind", ["Late"]),
        (plugins("{reserve: {enabled: [{name: DynamicResources}]}}"), "reserve", ["DynamicResources", "VolumeBinding"]),
        (plugins("{reserve: {disabled: [{name: VolumeBinding}]}}"), "reserve", ["DynamicResources"]),
        (plugins("{multiPoint: {disabled: [{name: VolumeBinding}]}}"), "reserve", ["DynamicResources"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_plugins_run_in_upstreams_order(body: str, point: str, want: list[str]) -> None:
    assert [plugin.name for plugin in at(body, point)] == want


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("", {"TaintToleration": 3, "NodeAffinity": 2, "VolumeBinding": 1, "ImageLocality": 1}),
        (plugins("{score: {enabled: [{name: NodeAffinity, weight: 7}]}}"), {"NodeAffinity": 7, "TaintToleration": 3}),
        (plugins("{score: {enabled: [{name: NodeAffinity}]}}"), {"NodeAffinity": 1}),
        (plugins("{multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}}"), {"NodeAffinity": 7}),
        (plugins("{multiPoint: {enabled: [{name: NodeAffinity}]}}"), {"NodeAffinity": 1}),
        (plugins("{multiPoint: {enabled: [{name: Mine, weight: 5}]}}"), {"Mine": 5}),
    ],
    ids=["defaults", "of the point", "none at the point", "of multiPoint", "none at multiPoint", "of a custom plugin"],
)
def test_only_score_plugins_have_weights(body: str, want: dict[str, int]) -> None:
    got = dict(at(body, "score"))
    assert {name: got[name] for name in want} == want
    assert {plugin.weight for plugin in at(body, "filter")} == {0}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (plugins("{multiPoint: {enabled: [{name: Nope}]}}"), 'PreFilterPlugin "Nope" does not exist'),
        (plugins("{score: {enabled: [{name: Nope}]}}"), 'ScorePlugin "Nope" does not exist'),
        (plugins("{preBind: {enabled: [{name: NodeName}]}}"), 'plugin "NodeName" does not extend PreBindPlugin plugin'),
        (
            plugins("{bind: {disabled: [{name: '*'}]}}"),
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        (
            plugins("{queueSort: {disabled: [{name: '*'}]}}"),
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
        (
            plugins("{multiPoint: {enabled: [{name: Sorter}]}}"),
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 2',
        ),
        (
            plugins("{filter: {enabled: [{name: NodeName}, {name: NodeName}]}}"),
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            plugins("{multiPoint: {enabled: [{name: Mine}, {name: Mine}]}}"),
            'plugin "Mine" already registered as "FilterPlugin"',
        ),
        (
            plugins("{score: {enabled: [{name: NodeAffinity, weight: -1}]}}"),
            "score plugins: total score of Score plugins could overflow",
        ),
        (
            "profiles:\n- pluginConfig:\n"
            "  - {name: NodeResourcesFit, args: {scoringStrategy: {type: X}, ignoredResourceGroups: [a/b]}}\n",
            'initializing plugin "NodeResourcesFit": [ignoredResourceGroups[0]: Invalid value: "a/b": resource group name '
            'can\'t contain \'/\', scoringStrategy.type: Unsupported value: "X": supported values: "LeastAllocated", '
            '"MostAllocated", "RequestedToCapacityRatio"]',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_profiles_with_invalid_plugins_are_refused(body: str, want: str) -> None:
    found = examine_configuration(HEADER + body, extension_points_of=with_custom_plugins(CUSTOM))
    assert found.stage == "build"
    assert found.error == f"initializing profiles: creating profile for scheduler name default-scheduler: {want}"


@pytest.mark.parametrize("point", ["multiPoint", "score"])
def test_the_path_of_an_enabled_plugin_ends_with_its_name(point: str) -> None:
    found = examine_configuration(HEADER + plugins(f"{{{point}: {{enabled: [{{name: NodeName}}, {{name: Nope}}]}}}}"))
    name = "Nope" if point == "multiPoint" else "NodeName"
    assert [remark.steps for remark in found.remarks] == [("profiles", 0, "plugins", point, "enabled", name)]


def test_only_one_placement_generator_is_allowed() -> None:
    known = with_custom_plugins({"A": {"placement_generate"}, "B": {"placement_generate"}})
    body = plugins("{placementGenerate: {enabled: [{name: A}, {name: B}]}}")
    assert (examine_configuration(HEADER + body, extension_points_of=known).error or "").endswith(
        'at most one placement generate plugin is allowed for profile with scheduler name "default-scheduler"'
    )


def test_a_negative_weight_of_the_last_plugin_is_accepted_like_upstream() -> None:
    weights = at(plugins("{multiPoint: {enabled: [{name: Mine, weight: -1}]}}"), "score")
    assert weights[-1] == PluginWeight("Mine", -1)


TWO_SORTERS = """profiles:
- schedulerName: a
- schedulerName: b
  plugins: {multiPoint: {disabled: [{name: PrioritySort}], enabled: [{name: Sorter}]}}
"""
TWO_SORTER_ARGUMENTS = """profiles:
- schedulerName: a
  pluginConfig: [{name: PrioritySort, args: {x: 1}}]
- schedulerName: b
"""


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (TWO_SORTERS, 'different queue sort plugins for profile "b": "Sorter", first: "PrioritySort"'),
        (TWO_SORTER_ARGUMENTS, 'different queue sort plugin args for profile "b"'),
    ],
    ids=["plugins", "arguments"],
)
def test_all_profiles_must_use_the_same_queue_sort(body: str, want: str) -> None:
    found = examine_configuration(HEADER + body, extension_points_of=with_custom_plugins(CUSTOM))
    assert found.error == f"initializing profiles: {want}"


def test_all_in_tree_score_plugins_are_enabled_by_default() -> None:
    scoring = {name for name, points in IN_TREE_EXTENSION_POINTS.items() if ExtensionPoint.SCORE in points}
    assert {plugin.name for plugin in at("", "score")} == scoring


def test_custom_plugins_get_their_arguments_as_plain_data() -> None:
    config = load_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": {"multiPoint": {"enabled": [{"name": "Mine"}]}},
                    "pluginConfig": [{"name": "Mine", "args": {"a": [1, 2.5, "x"]}}, {"name": "NotEnabled", "args": 1}],
                }
            ],
        },
        extension_points_of=with_custom_plugins(CUSTOM),
    )
    arguments = config.profiles[0].plugin_arguments
    assert arguments["Mine"] == {"a": [1, 2.5, "x"]}
    assert "NotEnabled" not in arguments
    assert list(arguments) == sorted(arguments)


def test_the_percentage_of_a_profile_is_separate_from_the_global_one() -> None:
    found = examine(
        "percentageOfNodesToScore: 20\nprofiles: [{schedulerName: a, percentageOfNodesToScore: 0}, {schedulerName: b}]\n"
    )
    config = found.configuration
    assert config is not None
    assert config.percentage_of_nodes_to_score == 20
    assert [profile.percentage_of_nodes_to_score for profile in config.profiles] == [0, None]
    assert config.profile("b") is config.profiles[1]
    assert config.profile("c") is None


_FILTERS = sorted(name for name, points in IN_TREE_EXTENSION_POINTS.items() if ExtensionPoint.SCORE in points)
_NAMES = sorted(set(IN_TREE_EXTENSION_POINTS) - {"PrioritySort", "DefaultBinder"})
_WEIGHTS = st.integers(0, 9)


@given(
    own=st.lists(st.tuples(st.sampled_from(_FILTERS), _WEIGHTS), unique_by=lambda item: item[0], max_size=5),
    spread=st.lists(st.tuples(st.sampled_from(_NAMES), _WEIGHTS), unique_by=lambda item: item[0], max_size=8),
    disabled=st.sets(st.sampled_from(["*", *_NAMES]), max_size=4),
)
def test_plugin_order_and_weights_match_the_oracle(
    own: list[tuple[str, int]], spread: list[tuple[str, int]], disabled: set[str]
) -> None:
    everywhere = [("PrioritySort", 0), ("DefaultBinder", 0), *spread]
    entry: dict[str, JsonValue] = {
        "score": {"enabled": _entries(own), "disabled": [{"name": name} for name in sorted(disabled)]},
        "multiPoint": {"enabled": _entries(everywhere), "disabled": [{"name": "*"}]},
    }
    config = load_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": entry}],
        }
    )
    names = plugin_order([name for name, _ in own], [name for name, _ in everywhere], disabled, set(_FILTERS))
    want = [(name, plugin_weight(name, own, everywhere)) for name in names]
    assert list(config.profiles[0].plugins["score"]) == want


def _entries(items: list[tuple[str, int]]) -> list[JsonValue]:
    return [{"name": name, "weight": weight} for name, weight in items]


def test_an_unknown_plugin_has_no_extension_points() -> None:
    assert in_tree_extension_points("Nope") is None
    assert in_tree_extension_points("NodeName") == frozenset({ExtensionPoint.FILTER})
