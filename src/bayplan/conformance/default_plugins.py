"""The plugins of the default configuration, with a cluster to look at: for queue traces that ask them."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.queue import PreEnqueue
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.events import Registration, registrations
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.meta import KubernetesObject
from bayplan.plugins.registry import in_tree_registry

PROFILE = "default-scheduler"


def default_plugins(objects: Sequence[KubernetesObject]) -> tuple[list[Registration], list[tuple[str, PreEnqueue]]]:
    """Return the registrations and the PreEnqueue plugins of the default profile in a cluster with these objects."""
    scheduler = assemble_scheduler(default_configuration(), in_tree_registry(), feature_gates=FeatureGates())
    for item in objects:
        scheduler.handle(None, item, 0)
    profile = scheduler.profiles[PROFILE]
    table = registrations([(plugin.name, plugin.events_to_register()) for plugin in profile.plugins.values()])
    return table, [(plugin.name, plugin.pre_enqueue) for plugin in profile.pre_enqueue]
