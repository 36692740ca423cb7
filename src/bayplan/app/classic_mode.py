"""The classic mode of simulations and servers: creates the scheduler of Kubernetes 1.16 from options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bayplan.app.custom_plugins import CustomPlugin, load_custom_plugins
from bayplan.base.errors import InputError
from bayplan.classic.algorithms import DEFAULT_PROVIDER
from bayplan.classic.assemble import assemble_classic_scheduler
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.extender import ClassicExtender
from bayplan.classic.gates import ClassicGates
from bayplan.classic.policy import load_policy
from bayplan.classic.queue import ClassicQueue
from bayplan.classic.scheduler import ClassicScheduler
from bayplan.classic.scheduler_configuration import ClassicSchedulerConfiguration, custom_plugins
from bayplan.classic.scheduler_configuration import classic_scheduler_configuration as classic_scheduler_configuration
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.records import RecordLevel
from bayplan.extender.connections import ExtenderConnections
from bayplan.extender.tls_check import check_extender_tls
from bayplan.formats.bounded_reading import read_configuration_bytes
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.framework.extender import Extender
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.registry import Registry
from bayplan.live.instrumented_queue import InstrumentedQueue
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


def classic_configuration(provider: str, policy: Path | None, feature_gates: str) -> ClassicConfiguration:
    """Return the configuration of a classic scheduler.

    Args:
        provider: the algorithm provider; "" for the default one.
        policy: a Policy file; settings that it omits are those of the default provider.
        feature_gates: the gates, as for ``--feature-gates`` of kube-scheduler 1.16.

    Raises:
        InputError: both a provider and a Policy are given, a file cannot be read, or the configuration is invalid.
    """
    gates = ClassicGates.from_text(feature_gates, where="--feature-gates")
    if policy is None:
        return ClassicConfiguration(provider=provider or DEFAULT_PROVIDER, gates=gates)
    if provider:
        raise InputError(
            "--algorithm-provider", got=f"both: '{provider}' and {policy}", wanted="an algorithm provider or a Policy"
        )
    text = read_configuration_bytes(policy, wanted="a Policy file")
    return ClassicConfiguration(policy=load_policy(text, where=str(policy)), gates=gates)


def check_classic(classic: object) -> None:
    """Raise InputError if the argument `classic` of the library is not a `ClassicConfiguration`, but e.g. a provider's name."""
    if not isinstance(classic, ClassicConfiguration):
        argument = f"provider={classic!r}" if isinstance(classic, str) else ""
        hint = f"ClassicConfiguration({argument}) of bayplan.classic.configuration"
        raise InputError("classic", got=f"{classic!r:.60}", wanted="a ClassicConfiguration", hint=hint)


def read_classic_simulation(
    provider: str, policy: Path | None, feature_gates: str, plugins: Sequence[str]
) -> tuple[ClassicSchedulerConfiguration, Registry, list[CustomPlugin]]:
    """Return the configuration, the plugin registry and the custom plugins of a classic simulation.

    Args:
        provider, policy, feature_gates: as for `classic_configuration`.
        plugins: the custom plugins, see `bayplan.app.custom_plugins.load_custom_plugins`.

    Raises:
        InputError: an option or a file is invalid.
    """
    classic = classic_configuration(provider, policy, feature_gates)
    registry, custom = load_custom_plugins(plugins, NO_PLUGINS) if plugins else (NO_PLUGINS, [])
    configuration = classic_scheduler_configuration(classic, check_tls=check_extender_tls)
    return with_custom_plugins(configuration, custom), registry, custom


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


def with_custom_plugins(
    configuration: SchedulerConfiguration, custom: Sequence[CustomPlugin]
) -> ClassicSchedulerConfiguration:
    """Return a configuration that enables custom plugins."""
    enabled = configuration.with_plugins((each.plugin, each.weight) for each in custom)
    assert isinstance(enabled, ClassicSchedulerConfiguration)
    return enabled
