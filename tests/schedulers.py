"""Schedulers with the default configuration for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Plugin
from bayplan.plugins.registry import in_tree_registry


def default_scheduler(
    plugins: Sequence[type[Plugin[Any]]] = (),
    *,
    seed: int = 1,
    start_ns: int = 0,
    record_level: RecordLevel = RecordLevel.SUMMARY,
    queue_type: type[SchedulingQueue] = SchedulingQueue,
) -> Scheduler:
    """Return a scheduler with the default plugins, and these plugins with weight 1; see `assemble_scheduler`."""
    registry = in_tree_registry().with_plugins(*plugins)
    configuration = default_configuration(extension_points_of=registry.extension_points_for_configuration)
    return assemble_scheduler(
        configuration.with_plugins((plugin, 1) for plugin in plugins),
        registry,
        feature_gates=FeatureGates(),
        seed=seed,
        start_ns=start_ns,
        record_level=record_level,
        queue_type=queue_type,
    )
