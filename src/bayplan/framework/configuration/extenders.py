"""Prepare the extenders of a configuration: order, default timeout, TLS check, and ignored resources."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.framework.configuration.document import Extender, ExtenderTLSConfig, KubeSchedulerProfile, PluginConfig
from bayplan.framework.configuration.plugin_arguments import NodeResourcesFitArgs
from bayplan.framework.configuration.profiles import BuildError

CheckTls: TypeAlias = Callable[[ExtenderTLSConfig], str | None]
"""Loads the certificates of an extender, which are files; returns the problem, or None."""

_DEFAULT_TIMEOUT_NS = 5 * SECOND_NS


def build_extenders(extenders: Sequence[Extender], check_tls: CheckTls | None) -> tuple[Extender, ...]:
    """Return the extenders in calling order, ignorable ones last. Without `check_tls`, certificates are not checked.

    Raises:
        BuildError: the TLS settings of an extender are not usable.
    """
    for extender in extenders:
        if problem := _tls_problem(extender, check_tls):
            raise BuildError(f"couldn't build extenders: {problem}", steps=("extenders",))
    return tuple(sorted(map(with_timeout, extenders), key=lambda extender: extender.ignorable))


def with_timeout(extender: Extender) -> Extender:
    """Return an extender with the default timeout if it has none."""
    return replace(extender, http_timeout_ns=extender.http_timeout_ns or _DEFAULT_TIMEOUT_NS)


def _tls_problem(extender: Extender, check_tls: CheckTls | None) -> str | None:
    tls = extender.tls_config or ExtenderTLSConfig()
    has_ca = bool(tls.ca_file or tls.ca_data)
    if has_ca and tls.insecure:
        return "specifying a root certificates file with the insecure flag is not allowed"
    if check_tls is None or tls == ExtenderTLSConfig():
        return None
    if extender.enable_https and not has_ca:
        tls = replace(tls, insecure=True)
    return check_tls(tls)


def apply_ignored_resources(
    profiles: Sequence[KubeSchedulerProfile], extenders: Sequence[Extender]
) -> tuple[KubeSchedulerProfile, ...]:
    """Make NodeResourcesFit ignore the resources that extenders declare as ignored, not those in its own arguments.

    Raises:
        BuildError: a profile has no arguments for NodeResourcesFit.
    """
    ignored = tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return tuple(profiles)
    return tuple(replace(profile, plugin_config=_with_ignored(profile.plugin_config, ignored)) for profile in profiles)


def _with_ignored(plugin_config: tuple[PluginConfig, ...], ignored: tuple[str, ...]) -> tuple[PluginConfig, ...]:
    for index, entry in enumerate(plugin_config):
        if entry.name != "NodeResourcesFit":
            continue
        if not isinstance(entry.args, NodeResourcesFitArgs):
            text = "couldn't build extenders: want args to be of type NodeResourcesFitArgs, got <nil>"
            raise BuildError(text, steps=("extenders",))
        changed = replace(entry, args=replace(entry.args, ignored_resources=ignored))
        return (*plugin_config[:index], changed, *plugin_config[index + 1 :])
    text = "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    raise BuildError(text, steps=("extenders",))
