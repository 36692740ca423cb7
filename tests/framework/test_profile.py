"""A profile creates each plugin once and orders the plugins of each extension point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from bayplan.base.errors import PluginError
from bayplan.framework.profile import Profile
from bayplan.framework.registry import Registry
from tests.framework.plugins import Both, Filters, Scores, make_handle

REGISTRY = Registry({}).with_plugins(Filters, Scores, Both)


def make(plugins: Mapping[str, Sequence[tuple[str, int]]], **arguments: object) -> Profile:
    return Profile("mine", plugins, arguments=arguments, registry=REGISTRY, handle=make_handle())


def test_plugins_run_in_the_given_order_at_each_extension_point() -> None:
    profile = make({"filter": [("Both", 0), ("Filters", 0)], "score": [("Scores", 0), ("Both", 0)]})
    assert [plugin.name for plugin in profile.filter] == ["Both", "Filters"]
    assert [entry.plugin.name for entry in profile.score] == ["Scores", "Both"]
    assert [plugin.name for plugin in profile.compiling] == ["Both", "Filters", "Scores"]
    assert not any((profile.pre_filter, profile.bind, profile.reserve))


def test_a_plugin_at_several_points_is_a_single_object_with_its_arguments() -> None:
    profile = make({"pre_filter": [("Both", 0)], "filter": [("Both", 0)], "reserve": [("Both", 0)]}, Both={"x": 1})
    both = profile.plugins["Both"]
    assert {id(plugin) for plugin in (*profile.pre_filter, *profile.filter, *profile.reserve)} == {id(both)}
    assert both.arguments == {"x": 1}
    assert list(profile.plugins) == ["Both"]
    assert [plugin.name for plugin in profile.pre_filter] == ["Both"]
    assert not profile.pre_score


def test_a_plugin_is_called_only_at_points_where_it_is_enabled() -> None:
    profile = make({"filter": [("Both", 0)]})
    assert not any((profile.pre_filter, profile.score, profile.reserve))


@pytest.mark.parametrize(
    ("weight", "want"),
    [pytest.param(0, 1, id="no weight counts as 1"), pytest.param(7, 7, id="a weight is kept")],
)
def test_a_score_weight_of_0_counts_as_1(weight: int, want: int) -> None:
    assert make({"score": [("Scores", weight)]}).score[0].weight == want


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param({"filter": [("Gone", 0)]}, "profile mine: plugin 'Gone' does not exist", id="an unknown plugin"),
        pytest.param(
            {"score": [("Filters", 1)]},
            "profile mine: plugin Filters does not implement score: expected one of filter, got score",
            id="a plugin at a point that it does not implement",
        ),
        pytest.param(
            {"bind": [("Both", 0)]},
            "profile mine: plugin Both does not implement bind: expected one of pre_filter, filter, score, reserve, got bind",
            id="a plugin of several points at a different one",
        ),
    ],
)
def test_invalid_profiles_are_refused(plugins: Mapping[str, Sequence[tuple[str, int]]], want: str) -> None:
    with pytest.raises(PluginError) as refused:
        make(plugins)
    assert str(refused.value) == want
