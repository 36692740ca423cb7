"""The scheduler setup of simulations and questions: reads configuration, plugins and gates, and creates schedulers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from msgspec.structs import replace

from bayplan.app.custom_plugins import CustomPlugin, load_custom_plugins
from bayplan.app.mode import Mode, reject_provider
from bayplan.base.errors import ConfigurationError
from bayplan.engine.assemble import Assemble, assemble_scheduler
from bayplan.engine.scheduler import Scheduler
from bayplan.extender.connections import ExtenderConnections
from bayplan.extender.tls_check import check_extender_tls
from bayplan.formats.bounded_reading import read_configuration_bytes
from bayplan.framework.configuration.loading import SchedulerConfiguration, default_configuration, load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Plugin
from bayplan.framework.registry import Registry
from bayplan.live.plugin_results import CheckedRegistry
from bayplan.plugins.registry import in_tree_registry

if TYPE_CHECKING:
    from bayplan.answers.question_cluster import MakeOptions


class SetupOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration sources of a setup; the fields are arguments of `read_setup`."""

    config: Path | None = None
    algorithm_provider: str = ""
    feature_gates: str = ""
    text: str = ""
    where: str = ""


class SchedulerSetup(msgspec.Struct, frozen=True, kw_only=True):
    """A configured scheduler.

    Attributes:
        mode: the scheduler mode.
        configuration: the configuration, including custom plugins.
        registry: the registry of plugins.
        feature_gates: the gates that change decisions.
        custom_plugins: the enabled custom plugins.
        connections: the connections to the configured extenders; the owner of the setup must close them.
        origin: the sources from which the setup was read.
    """

    mode: Mode
    configuration: SchedulerConfiguration
    registry: Registry
    feature_gates: FeatureGates
    custom_plugins: Sequence[CustomPlugin]
    connections: ExtenderConnections
    origin: SetupOrigin = SetupOrigin()

    def make(self, *, without: Collection[str] = (), **options: Unpack[MakeOptions]) -> Scheduler:
        """Return a scheduler; arguments as for `bayplan.engine.assemble.assemble_scheduler`.

        Args:
            without: the plugins to disable at all their extension points.

        Raises:
            PluginError: a plugin is unknown or enabled at the wrong extension point.
        """
        configuration = self.configuration.without_plugins(without) if without else self.configuration
        assemble: Assemble = assemble_scheduler
        if self.mode is Mode.CLASSIC:
            # Imported here, because most programs do not need the classic scheduler.
            from bayplan.app import classic_mode

            assemble = classic_mode.assemble
        return assemble(
            configuration,
            CheckedRegistry.of(self.registry),
            feature_gates=self.feature_gates,
            extenders=self.connections.extenders,
            **options,
        )

    def read_again(self, origin: SetupOrigin) -> SchedulerSetup:
        """Return a setup read from another origin, with the mode and the custom plugins of this one.

        Raises:
            InputError: see `read_setup`.
        """
        found = read_setup(
            mode=self.mode,
            config=origin.config,
            algorithm_provider=origin.algorithm_provider,
            feature_gates=origin.feature_gates,
            text=origin.text,
            where=origin.where,
            registry=self.registry,
        )
        return found.enabling(self.custom_plugins, self.registry)

    def with_plugins(self, *classes: type[Plugin[Any]]) -> SchedulerSetup:
        """Return the setup with more custom plugins, enabled with weight 1.

        Raises:
            PluginError: see `Registry.with_plugins`.
        """
        registry = self.registry.with_plugins(*classes)
        return self.enabling([CustomPlugin(each, 1, "") for each in classes], registry)

    def with_plugin_options(self, options: Sequence[str]) -> SchedulerSetup:
        """Return the setup with more custom plugins, given as values of ``--plugin``.

        Raises:
            PluginError: see `load_custom_plugins`.
        """
        registry, plugins = load_custom_plugins(options, self.registry)
        return self.enabling(plugins, registry)

    def enabling(self, plugins: Sequence[CustomPlugin], registry: Registry) -> SchedulerSetup:
        """Return the setup with a new registry, and with some of its plugins enabled in addition."""
        configuration = self.configuration.with_plugins((each.plugin, each.weight) for each in plugins)
        custom = [*self.custom_plugins, *plugins]
        return replace(self, configuration=configuration, registry=registry, custom_plugins=custom)

    def connect(self) -> ExtenderConnections:
        """Return new connections to the same extenders, for a copy that is used longer than this setup."""
        if self.mode is Mode.CLASSIC:
            from bayplan.app.classic_mode import connect_extenders

            return connect_extenders(self.configuration)
        return ExtenderConnections(self.configuration.extenders)


def read_setup(
    *,
    mode: Mode = Mode.CURRENT,
    config: Path | None = None,
    algorithm_provider: str = "",
    feature_gates: str = "",
    plugins: Sequence[str] = (),
    text: str = "",
    where: str = "",
    registry: Registry | None = None,
) -> SchedulerSetup:
    """Read the configuration of a scheduler and its plugins.

    Args:
        mode: the scheduler mode.
        config: a KubeSchedulerConfiguration, in classic mode a Policy; None for the default one.
        algorithm_provider: the algorithm provider in classic mode, instead of a Policy; "" for the default provider.
        feature_gates: the gates, as for ``--feature-gates`` of kube-scheduler.
        plugins: the custom plugins, see `bayplan.app.custom_plugins.load_custom_plugins`.
        text: a KubeSchedulerConfiguration, used if `config` is None.
        where: the origin of `text`, for errors.
        registry: the known plugins; by default those of kube-scheduler.

    Raises:
        InputError: a file, an option or a plugin is invalid.
    """
    if mode is Mode.CLASSIC:
        return _read_classic(config, algorithm_provider, feature_gates, plugins)
    reject_provider(algorithm_provider)
    # Load plugins first, because the configuration may name them.
    gates = FeatureGates.from_text(feature_gates, where="--feature-gates")
    registry, custom_plugins = registry or in_tree_registry(), list[CustomPlugin]()
    if plugins or config is not None or text:
        # Only these can enable custom plugins; skip the slow search of all installed packages otherwise.
        registry, custom_plugins = load_custom_plugins(plugins, registry)
    if config is None and text:
        found = load_text(text, where, gates, registry)
    else:
        found = read_configuration(config, gates, registry)
    setup = SchedulerSetup(
        mode=mode,
        configuration=found,
        registry=registry,
        feature_gates=gates,
        custom_plugins=(),
        connections=ExtenderConnections(found.extenders),
        origin=SetupOrigin(config=config, feature_gates=feature_gates, text=text, where=where),
    )
    return setup.enabling(custom_plugins, registry)


def _read_classic(
    policy: Path | None, algorithm_provider: str, feature_gates: str, plugins: Sequence[str]
) -> SchedulerSetup:
    from bayplan.app import classic_mode

    configuration, registry, custom_plugins = classic_mode.read_classic_simulation(
        algorithm_provider, policy, feature_gates, plugins
    )
    return SchedulerSetup(
        mode=Mode.CLASSIC,
        configuration=configuration,
        registry=registry,
        feature_gates=FeatureGates(),
        custom_plugins=custom_plugins,
        connections=classic_mode.connect_extenders(configuration),
        origin=SetupOrigin(config=policy, algorithm_provider=algorithm_provider, feature_gates=feature_gates),
    )


def read_configuration(path: Path | None, gates: FeatureGates, registry: Registry) -> SchedulerConfiguration:
    """Return the scheduler's configuration from a file, or the default one.

    Raises:
        ConfigurationError: the file cannot be read, or the configuration is invalid.
    """
    if path is None:
        return default_configuration(gates, extension_points_of=registry.extension_points_for_configuration)
    return load_text(read_configuration_bytes(path), str(path), gates, registry)


def load_text(text: bytes | str, where: str, gates: FeatureGates, registry: Registry) -> SchedulerConfiguration:
    """Return the scheduler's configuration from its text.

    Raises:
        ConfigurationError: the configuration is invalid.
    """
    try:
        return load_configuration(
            text,
            where=where,
            feature_gates=gates,
            extension_points_of=registry.extension_points_for_configuration,
            check_tls=check_extender_tls,
            plugin_names=registry.plugins,
        )
    except UnicodeDecodeError as problem:
        raise ConfigurationError(where, wanted="a configuration file in UTF-8", got=str(problem)) from None
