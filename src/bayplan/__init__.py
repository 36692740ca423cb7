"""Bayplan: kube-scheduler's decisions in Python, in virtual time, explained.

These names are the public surface; everything is loaded when it is first used, so that ``import bayplan`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from bayplan.base.build import install

install()  # Before any other import, so that compiled modules are found.

from bayplan.base.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from bayplan.analysis.result_directory import open_result
    from bayplan.analysis.rows import Rows
    from bayplan.app.simulation import SimulationOptions, simulate
    from bayplan.app.sources.cluster_source import SourceOptions
    from bayplan.app.sources.opening import open_source
    from bayplan.base.errors import BayplanError, InputError
    from bayplan.engine.decision import Decision
    from bayplan.engine.records import RecordLevel
    from bayplan.examples import example_path
    from bayplan.framework.node_info import NodeInfo
    from bayplan.framework.per_node_plugin import PerNodePlugin
    from bayplan.framework.plugin import Reads
    from bayplan.framework.status import Status, unresolvable, unschedulable
    from bayplan.library import Cluster
    from bayplan.testing.builders import make_node, make_pod

__all__ = [
    "Cluster",
    "Decision",
    "simulate",
    "SimulationOptions",
    "open_result",
    "open_source",
    "SourceOptions",
    "Rows",
    "example_path",
    "RecordLevel",
    "make_node",
    "make_pod",
    "PerNodePlugin",
    "NodeInfo",
    "Reads",
    "Status",
    "unschedulable",
    "unresolvable",
    "BayplanError",
    "InputError",
    "__version__",
]

_HOMES = {
    "Cluster": "bayplan.library",
    "Decision": "bayplan.engine.decision",
    "simulate": "bayplan.app.simulation",
    "SimulationOptions": "bayplan.app.simulation",
    "open_result": "bayplan.analysis.result_directory",
    "open_source": "bayplan.app.sources.opening",
    "SourceOptions": "bayplan.app.sources.cluster_source",
    "Rows": "bayplan.analysis.rows",
    "example_path": "bayplan.examples",
    "RecordLevel": "bayplan.engine.records",
    "make_node": "bayplan.testing.builders",
    "make_pod": "bayplan.testing.builders",
    "PerNodePlugin": "bayplan.framework.per_node_plugin",
    "NodeInfo": "bayplan.framework.node_info",
    "Reads": "bayplan.framework.plugin",
    "Status": "bayplan.framework.status",
    "unschedulable": "bayplan.framework.status",
    "unresolvable": "bayplan.framework.status",
    "BayplanError": "bayplan.base.errors",
    "InputError": "bayplan.base.errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'bayplan' has no attribute {name!r}")
    from bayplan.base.extras import named_extras

    with named_extras():
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
