"""Settings of a server's scheduler: builds schedulers from configuration, plugins, feature gates and seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from bayplan.app.custom_plugins import CustomPlugin, load_custom_plugins
from bayplan.app.mode import Mode, reject_provider
from bayplan.app.scheduler_setup import load_text, read_configuration
from bayplan.base.clock import Clock
from bayplan.base.errors import ConfigurationError
from bayplan.engine.assemble import Assemble, assemble_scheduler
from bayplan.engine.scheduler import Scheduler
from bayplan.extender.connections import ExtenderConnections
from bayplan.extender.tls_check import check_extender_tls
from bayplan.formats.bounded_reading import read_configuration_bytes
from bayplan.framework.configuration.loading import (
    Examination,
    SchedulerConfiguration,
    examine_configuration,
)
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.registry import Registry
from bayplan.live.instrumented_queue import InstrumentedQueue
from bayplan.live.plugin_guard import GuardedRegistry
from bayplan.live.plugin_runner import PluginRunner
from bayplan.plugins.registry import in_tree_registry

NO_SCHEDULER = "none.bayplan.io"
"""The scheduler name of the built-in scheduler if all pods are left to external schedulers; no pod has it."""


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the scheduler.

    Attributes:
        mode: the scheduler mode.
        config: the file with a KubeSchedulerConfiguration; None for the default one. In classic mode a Policy.
        algorithm_provider: the algorithm provider in classic mode, instead of a Policy; "" for the default provider.
        plugins: see `bayplan.app.custom_plugins.load_custom_plugins`.
        feature_gates: the gates, as for ``--feature-gates`` of kube-scheduler.
        seed: the seed for tie-breaking.
        enabled: whether to schedule; False leaves all pods to external schedulers.
    """

    mode: Mode = Mode.CURRENT
    config: Path | None = None
    algorithm_provider: str = ""
    plugins: Sequence[str] = ()
    feature_gates: str = ""
    seed: int = 0
    enabled: bool = True


@dataclass(frozen=True, kw_only=True)
class SchedulerSettings:
    """A validated scheduler setup.

    Attributes:
        options: the options it was built from.
        configuration_text: the configuration as given; "" for the default.
        configuration: the effective configuration, including custom plugins.
        registry: the available plugins; custom ones are guarded.
        feature_gates: the gates that change decisions.
        custom_plugins: the plugins that options enable.
        connections: the connections to the extenders of the configuration.
    """

    options: SchedulerOptions
    configuration_text: str
    configuration: SchedulerConfiguration
    registry: Registry
    feature_gates: FeatureGates
    custom_plugins: Sequence[CustomPlugin]
    connections: ExtenderConnections = field(repr=False)

    @property
    def assemble(self) -> Assemble:
        """The function that creates a scheduler from a configuration."""
        return assemble_scheduler

    def connect(self, configuration: SchedulerConfiguration) -> ExtenderConnections:
        """Return connections to the extenders of a configuration."""
        return ExtenderConnections(configuration.extenders)

    @property
    def seed(self) -> int:
        """The seed for the choice among equally good nodes."""
        return self.options.seed

    @property
    def plugin_files(self) -> Mapping[str, str]:
        """The files of the custom plugins, by plugin name; "" for a plugin of an installed package."""
        return {custom.plugin.name: custom.file for custom in self.custom_plugins}

    def factory(self, clock: Clock) -> Callable[[], Scheduler]:
        """Return a function that creates a scheduler for an empty cluster."""
        configuration = self.configuration
        if not self.options.enabled:
            profile = msgspec.structs.replace(configuration.profiles[0], scheduler_name=NO_SCHEDULER)
            configuration = msgspec.structs.replace(configuration, profiles=(profile,))

        def make() -> Scheduler:
            return self.assemble(
                configuration,
                self.registry,
                feature_gates=self.feature_gates,
                seed=self.seed,
                start_ns=clock.now_ns(),
                queue_type=InstrumentedQueue,
                extenders=self.connections.extenders,
            )

        return make

    def examine(self, text: str) -> Examination:
        """Run all checks on the text of a configuration and return what they found."""
        return examine_configuration(
            text,
            feature_gates=self.feature_gates,
            extension_points_of=self.registry.extension_points_for_configuration,
            check_tls=check_extender_tls,
        )

    def default_configuration(self) -> SchedulerConfiguration:
        """Return the configuration that is used if none is given."""
        return read_configuration(None, self.feature_gates, self.registry)

    def with_text(self, text: str) -> SchedulerSettings:
        """Return the settings with another configuration.

        Raises:
            ConfigurationError: the configuration is invalid.
        """
        configuration = _configuration(text, "", self.feature_gates, self.registry, self.custom_plugins)
        connections = ExtenderConnections(configuration.extenders)
        return replace(self, configuration_text=text, configuration=configuration, connections=connections)

    def with_plugins_read_again(self, runner: PluginRunner) -> SchedulerSettings:
        """Return the settings with the custom plugins reloaded from their files.

        Raises:
            PluginError: a plugin cannot be loaded.
            ConfigurationError: the configuration is invalid for these plugins.
        """
        registry, custom_plugins = guarded_registry(self.options, runner, in_tree_registry())
        configuration = _configuration(self.configuration_text, "", self.feature_gates, registry, custom_plugins)
        return replace(self, registry=registry, custom_plugins=custom_plugins, configuration=configuration)


def read_settings(options: SchedulerOptions, runner: PluginRunner) -> SchedulerSettings:
    """Read configuration and plugins, and return the settings.

    Raises:
        InputError: a file, an option or a plugin is invalid.
    """
    if options.mode is Mode.CLASSIC:
        # Imported here, because most servers do not need the classic scheduler.
        from bayplan.app.classic_settings import read_classic_settings

        return read_classic_settings(options, runner)
    reject_provider(options.algorithm_provider)
    gates = FeatureGates.from_text(options.feature_gates, where="--feature-gates")
    registry, custom_plugins = guarded_registry(options, runner, in_tree_registry())
    text, where = "", ""
    if options.config is not None:
        text, where = read_text(options.config), str(options.config)
    configuration = _configuration(text, where, gates, registry, custom_plugins)
    return SchedulerSettings(
        options=options,
        configuration_text=text,
        configuration=configuration,
        registry=registry,
        feature_gates=gates,
        custom_plugins=custom_plugins,
        connections=ExtenderConnections(configuration.extenders),
    )


def guarded_registry(
    options: SchedulerOptions, runner: PluginRunner, built_in: Registry
) -> tuple[Registry, Sequence[CustomPlugin]]:
    """Return all available plugins, with custom ones guarded, and the custom plugins that the options enable."""
    registry, custom_plugins = load_custom_plugins(options.plugins, built_in)
    return GuardedRegistry(registry.plugins, runner, in_tree=registry.in_tree), custom_plugins


def read_text(path: Path) -> str:
    """Return the text of a configuration file.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    try:
        return read_configuration_bytes(path).decode()
    except UnicodeDecodeError as problem:
        raise ConfigurationError(str(path), wanted="a configuration file in UTF-8", got=str(problem)) from None


def _configuration(
    text: str, where: str, gates: FeatureGates, registry: Registry, custom_plugins: Sequence[CustomPlugin]
) -> SchedulerConfiguration:
    if where or text.strip():
        found = load_text(text, where, gates, registry)
    else:
        found = read_configuration(None, gates, registry)
    return found.with_plugins((custom.plugin, custom.weight) for custom in custom_plugins)
