"""The scheduler's configuration, as given and with defaults; validation of a new one, and what applying it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus

import yaml

from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import ConfigurationError
from bayplan.formats.json_tree import JsonValue
from bayplan.framework.configuration.loading import Examination, SchedulerConfiguration
from bayplan.framework.configuration.problems import list_problems
from bayplan.http_api.contract.configuration import (
    Configuration,
    ConfigurationProblem,
    DefaultConfiguration,
    ExtensionPoints,
    PointPlugin,
    Validation,
)
from bayplan.http_api.errors import RequestError
from bayplan.http_api.server_context import Setup

WIDTH = 110


def configuration_document(setup: Setup) -> Configuration:
    """Return the configuration in use."""
    return Configuration(
        text=setup.configuration_text,
        effective=_effective(setup.configuration),
        extension_points=extension_points(setup, setup.configuration),
    )


def default_document(setup: Setup) -> DefaultConfiguration:
    """Return the default configuration, as a document and as YAML for the editor."""
    effective = setup.default_configuration().effective_document()
    return DefaultConfiguration(text=yaml_text(effective), effective={**effective})


def _effective(configuration: SchedulerConfiguration) -> dict[str, object]:
    return {**configuration.effective_document()}


def yaml_text(document: Mapping[str, JsonValue]) -> str:
    """Return a document as YAML."""
    text: str = yaml.safe_dump(dict(document), sort_keys=False, width=WIDTH)
    return text


def extension_points(setup: Setup, configuration: SchedulerConfiguration) -> ExtensionPoints:
    """Return the plugins at each extension point of each profile, in order, with weight and source.

    The source is ``default``, ``configuration``, or the file of a custom plugin.
    """
    usual = setup.default_configuration().profiles[0]
    found: ExtensionPoints = {}
    for profile in configuration.profiles:
        of_profile = found[profile.scheduler_name] = {}
        for point, plugins in profile.plugins.items():
            default = frozenset(usual.plugins.get(point, ()))
            of_profile[point] = [
                PointPlugin(
                    plugin=plugin.name,
                    weight=plugin.weight,
                    source=setup.plugin_files.get(plugin.name, "default" if plugin in default else "configuration"),
                )
                for plugin in plugins
            ]
    return found


def validation_document(setup: Setup, text: str, waiting: int) -> Validation:
    """Return the errors of a configuration or, if it is valid, the effective configuration and what applying it would change.

    Args:
        setup: the setup of the server's scheduler.
        text: YAML or JSON.
        waiting: the number of pods that would be retried.
    """
    found = setup.examine(text)
    problems = _problems(setup, found, text)
    configuration = _with_custom_plugins(setup, found.configuration)
    if configuration is None:
        return Validation(stage=found.stage, problems=problems, effective=None, difference=[], effect="")
    difference = [*differences(setup.configuration, configuration)]
    tried = f"{format_count(waiting, 'pending pod')} will be retried"
    return Validation(
        stage=None,
        problems=problems,
        effective=_effective(configuration),
        extension_points=extension_points(setup, configuration),
        difference=difference,
        effect=tried if difference else "nothing would change",
    )


def _with_custom_plugins(setup: Setup, configuration: SchedulerConfiguration | None) -> SchedulerConfiguration | None:
    """Add the custom plugins that the server enables, with their weights; return None if there is no configuration."""
    if configuration is None:
        return None
    weights: dict[str, int] = {}
    for plugins in setup.configuration.profiles[0].plugins.values():
        for plugin in plugins:
            if plugin.name in setup.plugin_files:
                weights[plugin.name] = max(plugin.weight, weights.get(plugin.name, 1))
    return configuration.with_plugins((setup.registry.plugins[name], weight) for name, weight in weights.items())


def _problems(setup: Setup, found: Examination, text: str) -> list[ConfigurationProblem]:
    return [
        ConfigurationProblem(
            line=each.place.line,
            column=each.place.column,
            path=each.place.path,
            message=each.message,
            hint=each.quoted_hint,
        )
        for each in list_problems(text, found, setup.examine, list(setup.registry))
    ]


def check(setup: Setup, text: str) -> SchedulerConfiguration:
    """Return a configuration with defaults applied and the server's custom plugins added.

    Raises:
        RequestError: the configuration is invalid; the message lists the errors, one per line.
    """
    found = setup.examine(text)
    configuration = _with_custom_plugins(setup, found.configuration)
    if configuration is not None:
        return configuration
    lines = [each.line("configuration") for each in list_problems(text, found, setup.examine, list(setup.registry))]
    raise RequestError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        f"configuration refused at {found.stage}",
        got="\n".join(lines) or found.error or "",
        wanted="a configuration that kube-scheduler accepts",
        hint="POST /bayplan/v1/config/validate for lines and columns",
    )


def error_of(problem: ConfigurationError) -> RequestError:
    """Return the error response for a configuration that could not be applied."""
    return RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, problem.what, got=problem.got, wanted=problem.wanted)


# --- differences ------------------------------------------------------------------------------------------------------


def differences(before: SchedulerConfiguration, after: SchedulerConfiguration) -> Iterator[str]:
    """Yield the differences between two configurations, one line each."""
    old = {profile.scheduler_name: profile for profile in before.profiles}
    new = {profile.scheduler_name: profile for profile in after.profiles}
    yield from (f"profile {name} removed" for name in old if name not in new)
    yield from (f"profile {name} added" for name in new if name not in old)
    for name, profile in new.items():
        if name not in old:
            continue
        for point, plugins in profile.plugins.items():
            yield from _plugin_differences(f"{name} {point}", old[name].plugins.get(point, ()), plugins)
    yield from _field_differences("$", _rest(before), _rest(after))


def _plugin_differences(
    where: str, before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]
) -> Iterator[str]:
    old, new = dict(before), dict(after)
    for name in old:
        if name not in new:
            yield f"{where}: {name} off"
    for name, weight in new.items():
        if name not in old:
            yield f"{where}: {name} on" + (f", weight {weight}" if weight else "")
        elif old[name] != weight:
            yield f"{where}: {name} weight {old[name]} -> {weight}"
    if set(old) == set(new) and list(old) != list(new):
        yield f"{where}: reordered to {', '.join(new)}"


def _rest(configuration: SchedulerConfiguration) -> dict[str, object]:
    """Return the effective configuration without plugin lists, as nested dictionaries."""
    document: dict[str, object] = dict(configuration.effective_document())
    profiles = document.pop("profiles", None)
    for profile in profiles if isinstance(profiles, list) else []:
        if isinstance(profile, dict):
            arguments = profile.get("pluginConfig")
            entries = arguments if isinstance(arguments, list) else []
            document[f"profile {profile.get('schedulerName')}"] = {
                "percentageOfNodesToScore": profile.get("percentageOfNodesToScore"),
                "pluginConfig": {str(each.get("name")): each.get("args") for each in entries if isinstance(each, dict)},
            }
    return document


def _field_differences(path: str, before: object, after: object) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            yield from _field_differences(f"{path}.{name}", before.get(name), after.get(name))
    elif before != after:
        yield f"{path.removeprefix('$.')}: {_shown(before)} -> {_shown(after)}"


def _shown(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
