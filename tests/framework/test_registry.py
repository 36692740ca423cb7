"""The registry: names must be unique, and a plugin must implement something."""

from __future__ import annotations

import sys
from functools import cached_property
from types import ModuleType
from typing import Any

import pytest

from bayplan.base.errors import PluginError
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import Plugin, Reads
from bayplan.framework.registry import Registry
from bayplan.framework.rule import FilterRule
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from tests.framework.plugins import Both, Filters, Idle, Scores, make_handle


def test_a_registry_lists_and_creates_plugins() -> None:
    registry = Registry({}).with_plugins(Filters, Both)
    assert list(registry) == ["Filters", "Both"]
    assert "Both" in registry
    assert "Scores" not in registry
    handle = make_handle()
    plugin = registry.make("Both", {"a": 1}, handle)
    assert isinstance(plugin, Both)
    assert plugin.arguments == {"a": 1}
    assert plugin.handle is handle


def test_with_plugins_leaves_the_original_registry_unchanged() -> None:
    old = Registry({}).with_plugins(Filters)
    assert "Scores" in old.with_plugins(Scores)
    assert "Scores" not in old


def test_custom_plugins_lists_all_enabled_out_of_tree_plugins() -> None:
    class InBayplan(Both):
        __module__ = "bayplan.plugins.mine"

    registry = in_tree_registry().with_plugins(InBayplan, Scores, Both)
    enabled = {
        "filter": [("NodeName", 0), ("Both", 0), ("InBayplan", 0), ("Unheard", 0)],
        "score": [("ImageLocality", 2), ("InBayplan", 3)],
    }
    assert registry.custom_plugins(enabled) == ["Both", "InBayplan=3"]


def test_extension_points_are_in_the_order_of_a_cycle() -> None:
    registry = Registry({}).with_plugins(Both)
    assert registry.extension_points_of("Both") == ("pre_filter", "filter", "score", "reserve")
    assert registry.extension_points_for_configuration("Both") == ("pre_filter", "filter", "score", "reserve")


def test_extension_points_of_in_tree_plugins_are_known_even_if_unregistered() -> None:
    registry = Registry({})
    assert "filter" in (registry.extension_points_for_configuration("NodeResourcesFit") or ())
    assert registry.extension_points_for_configuration("Unheard") is None


def test_a_duplicate_plugin_name_is_refused() -> None:
    class Twin(Filters):
        name = "NodeResourcesFit"

    with pytest.raises(PluginError, match="a plugin named NodeResourcesFit already exists; try another `name`"):
        in_tree_registry().with_plugins(Twin)
    with pytest.raises(PluginError, match="a plugin named Filters already exists"):
        Registry({}).with_plugins(Filters, Filters)


class WithoutHandle(Filters):
    def __init__(self, arguments: object) -> None:
        super().__init__(arguments, make_handle())


class WithMethod(Filters):
    def reads(self) -> Reads:  # type: ignore[override]
        return Reads.NODES


def test_other_attributes_may_have_the_names_of_extension_points() -> None:
    class Prices(Scores):
        bind = type("Currency", (), {})
        permit = None

        def reserve(self, node: str) -> int:
            return len(node)

    assert "Prices" in Registry({}).with_plugins(Prices)


def test_a_constructor_without_a_signature_and_computed_reads_are_accepted() -> None:
    class Extension(Filters):
        __init__ = max  # A builtin without a signature, as extension modules have them.

    class Computed(Filters):
        @cached_property
        def reads(self) -> Reads:  # type: ignore[override]
            return Reads.NODES

    assert list(Registry({}).with_plugins(Extension, Computed)) == ["Extension", "Computed"]


class PlainPerNode(PerNodePlugin):
    pass


class Misspelt(PerNodePlugin):
    def filternode(self, pod: Pod, node: NodeInfo) -> None:
        return None


class Permits(Scores):
    def permit(self, state: object, pod: Pod, node_name: str) -> None:
        return None


class PermitsStatically(Scores):
    @staticmethod
    def permit(state: object, pod: Pod, node_name: str) -> None:
        return None


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(
            Permits,
            r"plugin Permits: expected the base class PermitPlugin, without which the scheduler never calls permit\(\), "
            r"got a subclass of Scores; try class Permits\(Scores, PermitPlugin\): \.\.\.",
            id="a method of an extension point without its base class",
        ),
        pytest.param(
            PermitsStatically, "plugin PermitsStatically: expected the base class PermitPlugin", id="a static method"
        ),
        pytest.param(
            Idle, "plugin Idle implements no extension point: expected a subclass", id="a plugin of no extension point"
        ),
        pytest.param(
            PlainPerNode,
            r"plugin PlainPerNode: expected a method filter_node\(\) or a method score_node\(\), got neither$",
            id="a per-node plugin that overrides nothing",
        ),
        pytest.param(
            Misspelt,
            r"expected a method filter_node\(\) or .*, got filternode\(\); try filter_node\(\)$",
            id="a per-node plugin with a misspelt method",
        ),
        pytest.param(WithoutHandle, r"expected __init__\(self, arguments, handle\), got __init__", id="a constructor"),
        pytest.param(WithMethod, "expected reads of the type bayplan.Reads", id="a method for an attribute"),
    ],
)
def test_an_unusable_plugin_class_is_refused(plugin: type[Plugin[Any]], want: str) -> None:
    with pytest.raises(PluginError, match=want):
        Registry({}).with_plugins(plugin)


def test_a_renamed_rule_method_is_refused_with_its_replacement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("old_plugin")
    vars(module)["OldRule"] = type("OldRule", (FilterRule,), {"before_changes": lambda self, params: None})
    monkeypatch.setitem(sys.modules, "old_plugin", module)
    old = type("Filters", (Filters,), {"__module__": "old_plugin"})
    want = r"plugin Filters defines before_changes in OldRule, .*: rename it to after_undo\(\)"
    with pytest.raises(PluginError, match=want):
        Registry({}).with_plugins(old)


def test_a_plugin_without_a_name_is_named_after_its_class() -> None:
    class Nameless(PerNodePlugin):
        def score_node(self, pod: Pod, node: NodeInfo) -> int:
            return 1

    registry = Registry({}).with_plugins(Nameless)
    assert Nameless.name == "Nameless"
    assert registry.make("Nameless", None, make_handle()).name == "Nameless"

    class Refined(Nameless):
        def score_node(self, pod: Pod, node: NodeInfo) -> int:
            return 2

    assert "Refined" in registry.with_plugins(Refined)
