"""The configuration of a classic scheduler in a server: one profile of predicates and priorities."""

from __future__ import annotations

from typing import ClassVar

from bayplan.base.errors import ConfigurationError
from bayplan.classic.algorithms import DEFAULT_PROVIDER, PREDICATE_ORDER
from bayplan.classic.assemble import CUSTOM_POINTS, DEFAULT_SCHEDULER_NAME, profile_names
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.gates import ClassicGates
from bayplan.classic.plugins.priority import MAX_PRIORITY
from bayplan.classic.policy import load_policy
from bayplan.formats.json_tree import JsonValue, plain_value
from bayplan.formats.yaml_nodes import read_yaml
from bayplan.framework.configuration.extenders import CheckTls, build_extenders
from bayplan.framework.configuration.extension_points import ExtensionPoint
from bayplan.framework.configuration.loading import Examination, SchedulerConfiguration, default_configuration
from bayplan.framework.configuration.profiles import BuildError, PluginWeight, ProfileConfiguration


class ClassicSchedulerConfiguration(SchedulerConfiguration, frozen=True, kw_only=True):
    """The configuration of a classic scheduler in a server.

    Leader election and client connection have the defaults of the current release; everything else follows 1.16.

    Attributes:
        classic: the provider or Policy, and gates.
        policy: the Policy as a document, completed with the predicates and priorities of the default provider.
    """

    max_score: ClassVar[int] = MAX_PRIORITY
    classic: ClassicConfiguration
    policy: dict[str, JsonValue]

    def effective_document(self) -> dict[str, JsonValue]:
        """Return the configuration as a Policy."""
        return self.policy


def classic_scheduler_configuration(
    classic: ClassicConfiguration, *, check_tls: CheckTls | None = None, text: str = ""
) -> ClassicSchedulerConfiguration:
    """Return the configuration of a classic scheduler in a server.

    Args:
        classic: the provider or Policy, and gates.
        check_tls: the function that checks the certificates of extenders; None skips the check.
        text: the text of the Policy; "" if there is none.

    Raises:
        ConfigurationError: the configuration is invalid.
    """
    given = classic.policy.extenders if classic.policy is not None else ()
    try:
        extenders = build_extenders(given, check_tls)
    except BuildError as problem:
        where = classic.policy.where if classic.policy is not None else ""
        raise ConfigurationError(f"couldn't create scheduler from policy: {problem}", where=where) from None
    predicates, priorities = profile_names(classic.algorithms())
    plugins: dict[str, tuple[PluginWeight, ...]] = dict.fromkeys(ExtensionPoint, ())
    plugins["filter"] = tuple(PluginWeight(name) for name, item in predicates.items() if item.name in PREDICATE_ORDER)
    plugins["score"] = tuple(PluginWeight(name, item.weight) for name, item in priorities.items())
    profile = ProfileConfiguration(DEFAULT_SCHEDULER_NAME, None, plugins, {})
    return ClassicSchedulerConfiguration(
        declared=default_configuration().declared,
        profiles=(profile,),
        extenders=extenders,
        classic=classic,
        policy=_document(classic, text),
    )


def custom_plugins(configuration: ClassicSchedulerConfiguration) -> list[tuple[str, int]]:
    """Return the custom plugins that a configuration enables, as (name, weight)."""
    own = {name for names in profile_names(configuration.classic.algorithms()) for name in names}
    found: dict[str, int] = {}
    for point in (*CUSTOM_POINTS, "pre_enqueue", "post_filter", "queue_sort"):
        for name, weight in configuration.profiles[0].plugins[point]:
            if name not in own:
                found[name] = max(weight, found.get(name, 1))
    return list(found.items())


def examine_policy(text: str, gates: ClassicGates, check_tls: CheckTls | None) -> Examination:
    """Load a Policy, or the default provider if the text is empty; return the errors, or the configuration."""
    try:
        policy = load_policy(text.encode()) if text.strip() else None
    except ConfigurationError as problem:
        return Examination("decode", _sentence(problem), (), None, None)
    classic = ClassicConfiguration(provider=DEFAULT_PROVIDER, policy=policy, gates=gates)
    try:
        found = classic_scheduler_configuration(classic, check_tls=check_tls, text=text)
    except ConfigurationError as problem:
        text = _sentence(problem)
        return Examination("validation", text, (text,), None, None)
    return Examination(None, None, (), found.declared, found)


def _sentence(problem: ConfigurationError) -> str:
    text = problem.what
    if problem.wanted:
        text += f": expected {problem.wanted}, got {problem.got}"
    return f"{text}; try {problem.hint}" if problem.hint else text


def _document(classic: ClassicConfiguration, text: str) -> dict[str, JsonValue]:
    """Return the Policy in `text`, completed with the algorithms of the provider."""
    document: dict[str, JsonValue] = {"kind": "Policy", "apiVersion": "v1"}
    if text.strip():
        given = plain_value(read_yaml(text.encode("utf-8", "replace"))[0])
        assert isinstance(given, dict)
        document |= given
    algorithms = classic.algorithms()
    if document.get("predicates") is None:
        document["predicates"] = [{"name": item.name} for item in algorithms.predicates]
    if document.get("priorities") is None:
        document["priorities"] = [{"name": item.name, "weight": item.weight} for item in algorithms.priorities]
    return document
