"""Tools for plugin authors and tests: builders of objects, and the conformance kit for plugins."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayplan.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
    from bayplan.testing.object_builders import (
        make_budget,
        make_claim,
        make_namespace,
        make_object,
        make_priority_class,
        make_service,
        make_storage_class,
        make_volume,
    )
    from bayplan.testing.plugin_kit import check_plugin
    from bayplan.testing.plugin_subject import PluginFault
    from bayplan.testing.sample_clusters import SampleCluster

__all__ = [
    "make_pod",
    "make_node",
    "make_claim",
    "make_volume",
    "make_storage_class",
    "make_namespace",
    "make_priority_class",
    "make_budget",
    "make_service",
    "make_object",
    "PodBuilder",
    "NodeBuilder",
    "check_plugin",
    "PluginFault",
    "SampleCluster",
]

# Builders are imported often. The conformance kit, which imports the engine, is imported only when it is used.
_HOMES = {
    "PodBuilder": "builders",
    "NodeBuilder": "builders",
    "make_pod": "builders",
    "make_node": "builders",
    "check_plugin": "plugin_kit",
    "PluginFault": "plugin_subject",
    "SampleCluster": "sample_clusters",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'bayplan.testing' has no attribute {name!r}")
    module = importlib.import_module(f"bayplan.testing.{_HOMES.get(name, 'object_builders')}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
