"""The classic mode of simulations: from options to the scheduler of Kubernetes 1.16."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bayplan.base.errors import ConfigurationError, InputError
from bayplan.engine.classic.assemble import assemble_classic_scheduler
from bayplan.engine.classic.scheduler import ClassicScheduler
from bayplan.engine.records import RecordLevel
from bayplan.extender.connections import ExtenderConnections
from bayplan.extender.tls_check import check_extender_tls
from bayplan.formats.bounded_reading import read_configuration_bytes
from bayplan.framework.configuration.extenders import build_extenders
from bayplan.framework.configuration.profiles import BuildError
from bayplan.plugins.classic.algorithms import DEFAULT_PROVIDER
from bayplan.plugins.classic.configuration import ClassicConfiguration
from bayplan.plugins.classic.extender import ClassicExtender
from bayplan.plugins.classic.gates import ClassicGates
from bayplan.plugins.classic.policy import load_policy


def classic_configuration(provider: str, policy: Path | None, feature_gates: str) -> ClassicConfiguration:
    """Return the configuration of a classic scheduler.

    Args:
        provider: the algorithm provider; "" for the default one.
        policy: a Policy file; what it does not say is that of the default provider.
        feature_gates: as ``--feature-gates`` of kube-scheduler 1.16.

    Raises:
        InputError: both a provider and a Policy, a file that can't be read, or what upstream would refuse.
    """
    gates = ClassicGates.from_text(feature_gates, where="--feature-gates")
    if policy is None:
        return ClassicConfiguration(provider=provider or DEFAULT_PROVIDER, gates=gates)
    if provider:
        raise InputError("--algorithm-provider", got=f"'{provider}' and the Policy {policy}", wanted="one of the two")
    text = read_configuration_bytes(policy, wanted="a Policy file")
    return ClassicConfiguration(policy=load_policy(text, where=str(policy)), gates=gates)


def connect_extenders(configuration: ClassicConfiguration) -> ExtenderConnections:
    """Return connections with the extenders of a Policy, those last that can be ignored.

    Raises:
        ConfigurationError: their TLS settings can't be used.
    """
    policy = configuration.policy
    given, where = (policy.extenders, policy.where) if policy is not None else ((), "")
    try:
        extenders = build_extenders(given, check_extender_tls)
    except BuildError as problem:
        raise ConfigurationError(f"couldn't create scheduler from policy: {problem}", where=where) from None
    return ExtenderConnections(extenders, kind=ClassicExtender)


def assemble(
    configuration: ClassicConfiguration,
    connections: ExtenderConnections,
    plugins: Sequence[str],
    *,
    seed: int,
    start_ns: int,
    record_level: RecordLevel,
) -> ClassicScheduler:
    """Return the scheduler of a simulation.

    Raises:
        InputError: a custom plugin, or a configuration that upstream would not start with.
    """
    if plugins:
        raise InputError("--plugin", got=plugins[0], wanted="none: the classic scheduler has no framework for plugins")
    return assemble_classic_scheduler(
        configuration,
        seed=seed,
        start_ns=start_ns,
        record_level=record_level,
        extenders=connections.extenders,
    )
