"""The setup of a scheduler: reads options, configuration, plugins and gates, and creates schedulers from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import msgspec
from msgspec.structs import replace

from bayplan.app.custom_plugins import CustomPlugin, load_custom_plugins
from bayplan.app.mode import Mode, reject_provider
from bayplan.base.text_encoding import decode_leniently
from bayplan.engine.assemble import Assemble, assemble_scheduler
from bayplan.engine.scheduler import Scheduler
from bayplan.extender.connections import ExtenderConnections
from bayplan.extender.tls_check import check_extender_tls
from bayplan.formats.bounded_reading import read_configuration_bytes
from bayplan.framework.configuration.loading import (
    Examination,
    SchedulerConfiguration,
    default_configuration,
    examine_configuration,
    load_configuration,
)
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Plugin
from bayplan.framework.registry import Registry
from bayplan.live.plugin_guard import GuardedRegistry
from bayplan.live.plugin_results import CheckedRegistry
from bayplan.live.plugin_runner import PluginRunner
from bayplan.plugins.registry import in_tree_registry

if TYPE_CHECKING:
    from bayplan.answers.question_cluster import MakeOptions


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a scheduler.

    Attributes:
        mode: the scheduler mode.
        config: a file with a KubeSchedulerConfiguration, in classic mode a Policy; None for `text`.
        text: the text of a configuration, used if `config` is None; "" for the default configuration.
        where: the origin of `text`, for errors.
        algorithm_provider: the algorithm provider in classic mode, instead of a Policy; "" for the default provider.
        plugins: the custom plugins, see `bayplan.app.custom_plugins.load_custom_plugins`.
        feature_gates: the gates, as for ``--feature-gates`` of kube-scheduler.
        seed: the seed for tie-breaking.
    """

    mode: Mode = Mode.CURRENT
    config: Path | None = None
    text: str = ""
    where: str = ""
    algorithm_provider: str = ""
    plugins: Sequence[str] = ()
    feature_gates: str = ""
    seed: int = 0

    def with_config(self, config: Path | None) -> SchedulerOptions:
        """Return the options with the configuration in a file, or the default one."""
        return replace(self, config=config, text="", where="", algorithm_provider="")

    def has_configuration(self) -> bool:
        """Return whether a configuration is given; an empty text means the default one."""
        return self.config is not None or bool(self.text.strip())

    def with_text_of_file(self) -> tuple[SchedulerOptions, bytes]:
        """Return the options with the text of the configuration file in place of its path, and the content of the file.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        if self.config is None:
            return self, self.text.encode("utf-8", "replace")
        wanted = "a Policy file" if self.mode is Mode.CLASSIC else "a configuration file"
        content = read_configuration_bytes(self.config, wanted=wanted)
        return replace(self, config=None, text=decode_leniently(content), where=str(self.config)), content


DEFAULT_OPTIONS = SchedulerOptions()


class SchedulerSetup(msgspec.Struct, frozen=True, kw_only=True):
    """A configured scheduler. `bayplan.app.classic_setup` has that of the classic scheduler.

    Attributes:
        options: the options it was read from, with the text of the configuration file.
        configuration: the effective configuration, including custom plugins.
        registry: the known plugins.
        feature_gates: the gates that change decisions.
        connections: the connections to the configured extenders; the owner of the setup must close them.
        custom_plugins: the enabled custom plugins.
        runner: calls the code of custom plugins; None to call it directly and check the results.
    """

    options: SchedulerOptions
    configuration: SchedulerConfiguration
    registry: Registry
    feature_gates: FeatureGates
    connections: ExtenderConnections
    custom_plugins: Sequence[CustomPlugin] = ()
    runner: PluginRunner | None = None

    @property
    def configuration_text(self) -> str:
        """The configuration as given; "" for the default."""
        return self.options.text

    @property
    def seed(self) -> int:
        """The seed for tie-breaking."""
        return self.options.seed

    @property
    def plugin_files(self) -> Mapping[str, str]:
        """The files of the custom plugins, by plugin name; "" for a plugin of an installed package."""
        return {custom.plugin.name: custom.file for custom in self.custom_plugins}

    @property
    def assemble(self) -> Assemble:
        """The function that creates a scheduler from a configuration."""
        return assemble_scheduler

    def make(self, *, without: Collection[str] = (), **options: Unpack[MakeOptions]) -> Scheduler:
        """Return a scheduler; arguments as for `bayplan.engine.assemble.assemble_scheduler`, by default with `seed`.

        Args:
            without: the plugins to disable at all their extension points.

        Raises:
            PluginError: a plugin is unknown or enabled at the wrong extension point.
        """
        registry, runner = self.registry, self.runner
        options.setdefault("seed", self.seed)
        return self.assemble(
            self.configuration.without_plugins(without) if without else self.configuration,
            CheckedRegistry.of(registry) if runner is None else GuardedRegistry.of(registry, runner),
            feature_gates=self.feature_gates,
            extenders=self.connections.extenders,
            **options,
        )

    def connect(self) -> ExtenderConnections:
        """Return new connections to the same extenders, for a copy that is used longer than this setup."""
        return ExtenderConnections(self.configuration.extenders)

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

    # Setups that differ from this one.

    def read_again(self, options: SchedulerOptions) -> SchedulerSetup:
        """Return a setup read from other options, but with the mode, custom plugins and runner of this one.

        Raises:
            InputError: see `read_setup`.
        """
        registry = self.registry
        if options.has_configuration():
            registry, _ = load_custom_plugins((), registry)
        return _read(options, registry, self.custom_plugins, self.runner)

    def with_text(self, text: str) -> SchedulerSetup:
        """Return the setup with another configuration, and connections to its extenders.

        Raises:
            ConfigurationError: the configuration is invalid.
        """
        return self.read_again(replace(self.options, config=None, text=text, where=""))

    def with_plugins_read_again(self) -> SchedulerSetup:
        """Return the setup with the custom plugins reloaded from their files, and new connections.

        Raises:
            PluginError: a plugin cannot be loaded.
            ConfigurationError: the configuration is invalid for these plugins.
        """
        return read_setup(self.options, runner=self.runner)

    def with_plugins(self, *classes: type[Plugin[Any]]) -> Self:
        """Return the setup with more custom plugins, enabled with weight 1.

        Raises:
            PluginError: see `Registry.with_plugins`.
        """
        registry = self.registry.with_plugins(*classes)
        return self.enabling([CustomPlugin(each, 1, "") for each in classes], registry)

    def with_plugin_options(self, options: Sequence[str]) -> Self:
        """Return the setup with more custom plugins, given as values of ``--plugin``.

        Raises:
            PluginError: see `load_custom_plugins`.
        """
        registry, plugins = load_custom_plugins(options, self.registry)
        return self.enabling(plugins, registry)

    def enabling(self, plugins: Sequence[CustomPlugin], registry: Registry) -> Self:
        """Return the setup with a new registry, and with some of its plugins enabled in addition."""
        configuration = self.configuration.with_plugins((each.plugin, each.weight) for each in plugins)
        custom = [*self.custom_plugins, *plugins]
        return replace(self, configuration=configuration, registry=registry, custom_plugins=custom)

    def for_trial(
        self, configuration: SchedulerConfiguration, runner: PluginRunner, *, calls_extenders: bool = False
    ) -> Self:
        """Return the setup with another configuration and runner, and with own connections if it calls extenders."""
        trial = replace(self, configuration=configuration, runner=runner, connections=ExtenderConnections(()))
        return replace(trial, connections=trial.connect()) if calls_extenders else trial


def read_setup(options: SchedulerOptions = DEFAULT_OPTIONS, *, runner: PluginRunner | None = None) -> SchedulerSetup:
    """Read configuration and plugins, and return the setup.

    Args:
        options: the options.
        runner: calls the code of custom plugins, for servers.

    Raises:
        InputError: a file, an option or a plugin is invalid.
    """
    if options.mode is Mode.CLASSIC:
        # Imported here, because most programs do not need the classic scheduler.
        from bayplan.app.classic_setup import read_classic_setup

        return read_classic_setup(options, runner)
    reject_provider(options.algorithm_provider)
    # Load plugins first, because the configuration may name them.
    registry, custom_plugins = in_tree_registry(), list[CustomPlugin]()
    if options.plugins or options.has_configuration() or runner is not None:
        # Only these can enable custom plugins, and a server lists them and checks texts that name them; skip the slow search
        # of all installed packages otherwise.
        registry, custom_plugins = load_custom_plugins(options.plugins, registry)
    return _read(options, registry, custom_plugins, runner)


def _read(
    options: SchedulerOptions, registry: Registry, custom_plugins: Sequence[CustomPlugin], runner: PluginRunner | None
) -> SchedulerSetup:
    gates = FeatureGates.from_text(options.feature_gates, where="--feature-gates")
    given = options.has_configuration()
    options, content = options.with_text_of_file()
    if given:
        configuration = _load(content, options.where, gates, registry)
    else:
        configuration = read_configuration(None, gates, registry)
    setup = SchedulerSetup(
        options=options,
        configuration=configuration,
        registry=registry,
        feature_gates=gates,
        connections=ExtenderConnections(configuration.extenders),
        runner=runner,
    )
    return setup.enabling(custom_plugins, registry)


def read_configuration(path: Path | None, gates: FeatureGates, registry: Registry) -> SchedulerConfiguration:
    """Return the scheduler's configuration from a file, or the default one.

    Raises:
        ConfigurationError: the file cannot be read, or the configuration is invalid.
    """
    if path is None:
        return default_configuration(gates, extension_points_of=registry.extension_points_for_configuration)
    return _load(read_configuration_bytes(path), str(path), gates, registry)


def _load(content: bytes, where: str, gates: FeatureGates, registry: Registry) -> SchedulerConfiguration:
    return load_configuration(
        content,
        where=where,
        feature_gates=gates,
        extension_points_of=registry.extension_points_for_configuration,
        check_tls=check_extender_tls,
        plugin_names=registry.plugins,
    )
