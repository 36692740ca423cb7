"""Settings of a server's classic scheduler; the counterpart of `bayplan.app.scheduler_settings`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bayplan.app.classic_mode import NO_PLUGINS, assemble, classic_configuration, connect_extenders, with_custom_plugins
from bayplan.app.custom_plugins import CustomPlugin
from bayplan.app.scheduler_settings import SchedulerOptions, SchedulerSettings, guarded_registry, read_text
from bayplan.base.errors import ConfigurationError
from bayplan.classic.algorithms import DEFAULT_PROVIDER
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.gates import ClassicGates
from bayplan.classic.scheduler_configuration import classic_scheduler_configuration, examine_policy
from bayplan.engine.assemble import Assemble
from bayplan.extender.connections import ExtenderConnections
from bayplan.extender.tls_check import check_extender_tls
from bayplan.framework.configuration.loading import Examination, SchedulerConfiguration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.registry import Registry
from bayplan.live.plugin_runner import PluginRunner


@dataclass(frozen=True, kw_only=True)
class ClassicSettings(SchedulerSettings):
    """The setup of a classic scheduler in a server. The configuration is a Policy; "" means the provider of the options.

    Attributes:
        gates: the feature gates of 1.16.
    """

    gates: ClassicGates

    @property
    def assemble(self) -> Assemble:
        """The function that creates a classic scheduler from a configuration."""
        return assemble

    def connect(self, configuration: SchedulerConfiguration) -> ExtenderConnections:
        """Return connections to the extenders of a Policy."""
        return connect_extenders(configuration)

    def examine(self, text: str) -> Examination:
        """Run all checks on the text of a Policy and return what they found."""
        return examine_policy(text, self.gates, check_extender_tls)

    def default_configuration(self) -> SchedulerConfiguration:
        """Return the default provider's configuration."""
        return classic_scheduler_configuration(ClassicConfiguration(gates=self.gates))

    def with_text(self, text: str) -> SchedulerSettings:
        """Return the settings with another Policy.

        Raises:
            ConfigurationError: the Policy is invalid.
        """
        configuration = self._read(text, self.registry, self.custom_plugins)
        return replace(
            self, configuration_text=text, configuration=configuration, connections=connect_extenders(configuration)
        )

    def with_plugins_read_again(self, runner: PluginRunner) -> SchedulerSettings:
        """Return the settings with the custom plugins reloaded from their files.

        Raises:
            PluginError: a plugin cannot be loaded.
        """
        registry, custom = guarded_registry(self.options, runner, NO_PLUGINS)
        configuration = self._read(self.configuration_text, registry, custom)
        return replace(self, registry=registry, custom_plugins=custom, configuration=configuration)

    def _read(self, text: str, registry: Registry, custom: Sequence[CustomPlugin]) -> SchedulerConfiguration:
        if text.strip():
            found = self.examine(text)
            if found.configuration is None:
                raise ConfigurationError(found.error or "")
            configuration = found.configuration
        else:
            classic = ClassicConfiguration(
                provider=self.options.algorithm_provider or DEFAULT_PROVIDER, gates=self.gates
            )
            configuration = classic_scheduler_configuration(classic)
        return with_custom_plugins(configuration, custom)


def read_classic_settings(options: SchedulerOptions, runner: PluginRunner) -> ClassicSettings:
    """Read Policy and plugins of a server, and return its settings.

    Raises:
        InputError: a file, an option or a plugin is invalid.
    """
    classic = classic_configuration(options.algorithm_provider, options.config, options.feature_gates)
    text = "" if options.config is None else read_text(options.config)
    registry, custom = guarded_registry(options, runner, NO_PLUGINS)
    configuration: SchedulerConfiguration = classic_scheduler_configuration(
        classic, check_tls=check_extender_tls, text=text
    )
    configuration = with_custom_plugins(configuration, custom)
    return ClassicSettings(
        options=options,
        configuration_text=text,
        configuration=configuration,
        registry=registry,
        feature_gates=FeatureGates(),
        custom_plugins=custom,
        connections=connect_extenders(configuration),
        gates=classic.gates,
    )
