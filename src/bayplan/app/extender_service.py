"""Assembles plugins into an HTTP extender: files, configuration, plugins and engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bayplan.app.custom_plugins import CustomPlugin, load_custom_plugins, reported_plugin_errors
from bayplan.app.scheduler_setup import read_configuration
from bayplan.base.errors import InputError
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.extender.plugin_extender import PluginExtender
from bayplan.formats.inputs import load_inputs
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.framework.configuration.profiles import PluginWeight, ProfileConfiguration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.registry import Registry
from bayplan.live.plugin_results import CheckedRegistry
from bayplan.plugins.registry import in_tree_registry

SERVED_POINTS = ("pre_filter", "filter", "pre_score", "score")
NEEDED_POINTS = ("queue_sort", "bind")
"""Every profile must have a queue-sort and a bind plugin, even though an extender does not call them."""


class ExtenderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an extender.

    Attributes:
        plugins: the plugins to serve, at least one; see `bayplan.app.custom_plugins.load_custom_plugins`.
        paths: the manifests of the cluster, for a scheduler that sends only node names, and for the pods on nodes.
        config: a KubeSchedulerConfiguration, for the arguments of the plugins.
        feature_gates: the gates, as for ``--feature-gates`` of kube-scheduler.
    """

    plugins: Sequence[str]
    paths: Sequence[str] = ()
    config: Path | None = None
    feature_gates: str = ""


def make_extender(options: ExtenderOptions) -> ServedExtender:
    """Return an extender that serves the given plugins.

    Raises:
        InputError: a plugin, a configuration or a file is invalid, or the plugins neither filter nor score.
    """
    gates = FeatureGates.from_text(options.feature_gates, where="--feature-gates")
    registry, served = load_custom_plugins(options.plugins, in_tree_registry())
    for custom in served:
        points = custom.plugin.extension_points()
        if not {"filter", "score"}.intersection(points):
            got = f"one that implements {', '.join(sorted(points))}"
            raise InputError(f"--plugin {custom.plugin.name}", wanted="a plugin that filters or scores", got=got)
    configuration = only_plugins(read_configuration(options.config, gates, registry), registry, served)
    with reported_plugin_errors(served):
        scheduler = assemble_scheduler(
            configuration, CheckedRegistry.of(registry), feature_gates=gates, record_level=RecordLevel.OFF
        )
        for item in load_inputs(options.paths).manifest.objects() if options.paths else ():
            scheduler.handle(None, item, 0)
    return ServedExtender(scheduler, served)


class ServedExtender(PluginExtender):
    """A `PluginExtender` with custom plugins; errors in them are reported with file and line.

    Args:
        scheduler: see `PluginExtender`.
        plugins: the plugins to serve.
    """

    def __init__(self, scheduler: Scheduler, plugins: Sequence[CustomPlugin]) -> None:
        super().__init__(scheduler)
        self.plugins = plugins

    def filter(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Filter nodes; see `PluginExtender.filter`."""
        with reported_plugin_errors(self.plugins):
            return super().filter(arguments)

    def prioritize(self, arguments: Mapping[str, object]) -> list[dict[str, object]]:
        """Score nodes; see `PluginExtender.prioritize`."""
        with reported_plugin_errors(self.plugins):
            return super().prioritize(arguments)

    def preempt(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Reduce the victims of preemption; see `PluginExtender.preempt`."""
        with reported_plugin_errors(self.plugins):
            return super().preempt(arguments)


def only_plugins(
    configuration: SchedulerConfiguration, registry: Registry, served: Sequence[CustomPlugin]
) -> SchedulerConfiguration:
    """Return the configuration with profiles that filter and score only with these plugins, in the given order."""
    profiles = tuple(_only(profile, registry, served) for profile in configuration.profiles)
    return replace(configuration, profiles=profiles, extenders=())


def _only(profile: ProfileConfiguration, registry: Registry, served: Sequence[CustomPlugin]) -> ProfileConfiguration:
    plugins: dict[str, tuple[PluginWeight, ...]] = {}
    for point, entries in profile.plugins.items():
        if point in NEEDED_POINTS:
            plugins[point] = entries
        elif point in SERVED_POINTS:
            mine = [custom for custom in served if point in registry.extension_points_of(custom.plugin.name)]
            plugins[point] = tuple(PluginWeight(custom.plugin.name, custom.weight) for custom in mine)
        else:
            plugins[point] = ()
    return replace(profile, plugins=plugins)
