"""The setup of the classic scheduler, that of Kubernetes 1.16; the counterpart of `bayplan.app.scheduler_setup`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bayplan.app.custom_plugins import CustomPlugin, load_custom_plugins
from bayplan.app.mode import Mode
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup
from bayplan.base.errors import InputError
from bayplan.classic.assemble import assemble_classic_scheduler
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.extender import ClassicExtender
from bayplan.classic.gates import ClassicGates
from bayplan.classic.policy import load_policy
from bayplan.classic.queue import ClassicQueue
from bayplan.classic.scheduler import ClassicScheduler
from bayplan.classic.scheduler_configuration import (
    ClassicSchedulerConfiguration,
    classic_scheduler_configuration,
    custom_plugins,
    examine_policy,
)
from bayplan.engine.assemble import Assemble
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.records import RecordLevel
from bayplan.extender.connections import ExtenderConnections
from bayplan.extender.tls_check import check_extender_tls
from bayplan.framework.configuration.loading import Examination, SchedulerConfiguration
from bayplan.framework.extender import Extender
from bayplan.framework.feature_gates import FeatureGates, parse_feature_gates
from bayplan.framework.registry import Registry
from bayplan.live.instrumented_queue import InstrumentedQueue
from bayplan.live.plugin_runner import PluginRunner
from bayplan.sim.traced_queue import TracedQueue

if TYPE_CHECKING:
    from bayplan.state.cluster_state import ClusterState


class InstrumentedClassicQueue(InstrumentedQueue, ClassicQueue):
    """A `ClassicQueue` that records the events that made pods ready."""


class TracedClassicQueue(TracedQueue, ClassicQueue):
    """A `ClassicQueue` that records moves."""


CLASSIC_QUEUES: Mapping[type[SchedulingQueue], type[ClassicQueue]] = {
    SchedulingQueue: ClassicQueue,
    EventDrivenQueue: ClassicQueue,
    InstrumentedQueue: InstrumentedClassicQueue,
    TracedQueue: TracedClassicQueue,
}
"""The classic counterpart of each queue type that hosts use."""


NO_PLUGINS = Registry({})


class ClassicSetup(SchedulerSetup, frozen=True, kw_only=True):
    """A configured classic scheduler. The configuration is a Policy; without one, the algorithm provider decides.

    Attributes:
        gates: the feature gates of 1.16.
        given: the configuration that the library received as an object. What `options` contain replaces its fields.
    """

    gates: ClassicGates
    given: ClassicConfiguration

    @property
    def assemble(self) -> Assemble:
        """The function that creates a classic scheduler from a configuration."""
        return assemble

    def connect(self) -> ExtenderConnections:
        """Return new connections to the extenders of the Policy."""
        return connect_extenders(self.configuration)

    def examine(self, text: str) -> Examination:
        """Run all checks on the text of a Policy and return what they found."""
        return examine_policy(text, self.gates, check_extender_tls)

    def default_configuration(self) -> SchedulerConfiguration:
        """Return the default provider's configuration."""
        return classic_scheduler_configuration(ClassicConfiguration(gates=self.gates))

    def read_again(self, options: SchedulerOptions) -> SchedulerSetup:
        """Return a setup read from other options, but with the mode, custom plugins and runner of this one.

        Raises:
            InputError: see `read_classic_setup`.
        """
        return _read(options, self.registry, self.custom_plugins, self.runner, self.given)


def read_classic_setup(options: SchedulerOptions, runner: PluginRunner | None = None) -> SchedulerSetup:
    """Read Policy and plugins, and return the setup; arguments as for `bayplan.app.scheduler_setup.read_setup`.

    Raises:
        InputError: a file, an option or a plugin is invalid, or both an algorithm provider and a Policy are given.
    """
    registry, custom_plugins = NO_PLUGINS, list[CustomPlugin]()
    if options.plugins or runner is not None:
        registry, custom_plugins = load_custom_plugins(options.plugins, NO_PLUGINS)
    return _read(options, registry, custom_plugins, runner, ClassicConfiguration())


def _read(
    options: SchedulerOptions,
    registry: Registry,
    custom_plugins: Sequence[CustomPlugin],
    runner: PluginRunner | None,
    given: ClassicConfiguration,
) -> ClassicSetup:
    where = "--feature-gates"
    gates = given.gates.changed(parse_feature_gates(options.feature_gates, where=where), where=where)
    provider, policy = options.algorithm_provider, options.config
    if policy is not None and provider:
        raise InputError(
            "--algorithm-provider", got=f"both: '{provider}' and {policy}", wanted="an algorithm provider or a Policy"
        )
    has_policy = options.has_configuration()
    options, content = options.with_text_of_file()
    classic = replace(given, gates=gates)
    if has_policy:
        classic = replace(classic, policy=load_policy(content, where=options.where))
    elif provider:
        classic = replace(classic, provider=provider, policy=None)
    configuration = classic_scheduler_configuration(classic, check_tls=check_extender_tls, text=options.text)
    setup = ClassicSetup(
        options=options,
        configuration=configuration,
        registry=registry,
        feature_gates=FeatureGates(),
        connections=connect_extenders(configuration),
        runner=runner,
        gates=gates,
        given=given,
    )
    return setup.enabling(custom_plugins, registry)


def library_setup(classic: ClassicConfiguration, registry: Registry) -> ClassicSetup:
    """Return the setup of a configuration that the library received as an object.

    Raises:
        ConfigurationError: the configuration is invalid.
    """
    return _read(SchedulerOptions(mode=Mode.CLASSIC), registry, (), None, classic)


def check_classic(classic: object) -> None:
    """Raise InputError if the argument `classic` of the library is not a `ClassicConfiguration`, but e.g. a provider's name."""
    if not isinstance(classic, ClassicConfiguration):
        argument = f"provider={classic!r}" if isinstance(classic, str) else ""
        hint = f"ClassicConfiguration({argument}) of bayplan.classic.configuration"
        raise InputError("classic", got=f"{classic!r:.60}", wanted="a ClassicConfiguration", hint=hint)


def connect_extenders(configuration: SchedulerConfiguration) -> ExtenderConnections:
    """Return connections to the extenders of a Policy."""
    return ExtenderConnections(configuration.extenders, kind=ClassicExtender)


def assemble(
    configuration: SchedulerConfiguration,
    registry: Registry,
    *,
    feature_gates: FeatureGates | None = None,
    seed: int = 0,
    start_ns: int = 0,
    record_level: RecordLevel = RecordLevel.SUMMARY,
    state: ClusterState | None = None,
    queue_type: type[SchedulingQueue] = SchedulingQueue,
    sampling: bool = True,
    extenders: Sequence[Extender] = (),
) -> ClassicScheduler:
    """Return a classic scheduler; arguments as for `bayplan.engine.assemble.assemble_scheduler`.

    `feature_gates` is ignored: a classic configuration contains its own gates.

    Raises:
        InputError: a custom plugin or the configuration is invalid.
    """
    assert isinstance(configuration, ClassicSchedulerConfiguration)
    return assemble_classic_scheduler(
        configuration.classic,
        seed=seed,
        start_ns=start_ns,
        record_level=record_level,
        state=state,
        sampling=sampling,
        extenders=extenders,
        queue_type=CLASSIC_QUEUES[queue_type],
        scheduler_name=configuration.profiles[0].scheduler_name,
        registry=registry,
        plugins=custom_plugins(configuration),
    )
