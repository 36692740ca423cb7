"""Responses about the scheduler's configuration and its plugins."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer

EffectiveConfiguration = Annotated[
    dict[str, object],
    msgspec.Meta(description="A KubeSchedulerConfiguration as kube-scheduler --write-config-to writes it."),
]


class PointPlugin(Answer, frozen=True, kw_only=True, rename={"source": "from"}):
    """A plugin at an extension point; `source` (``from``) is ``default``, ``configuration``, or the file of a custom plugin."""

    plugin: str
    weight: int
    source: str


ExtensionPoints = dict[str, dict[str, list[PointPlugin]]]
"""The plugins in their order, by profile and extension point."""


class Configuration(Answer, frozen=True, kw_only=True):
    """The configuration in use: as given, and with defaults applied."""

    text: str
    effective: EffectiveConfiguration
    extension_points: ExtensionPoints


class DefaultConfiguration(Answer, frozen=True, kw_only=True):
    """The default configuration, as a document and as YAML."""

    text: str
    effective: EffectiveConfiguration


class ConfigurationProblem(Answer, frozen=True, kw_only=True):
    """An error in a configuration, its location, and a suggestion."""

    line: int
    column: int
    path: str
    message: str
    hint: str


class Validation(Answer, frozen=True, kw_only=True):
    """The errors of a configuration, or what applying it would change.

    Attributes:
        stage: the check that failed; null if the configuration is valid.
        effective, extension_points: a valid configuration with defaults applied, and its plugins.
        difference: the differences from the configuration in use, one per line.
        effect: the consequence of applying the configuration, in words.
    """

    stage: str | None
    problems: list[ConfigurationProblem]
    effective: EffectiveConfiguration | None
    extension_points: ExtensionPoints | msgspec.UnsetType = msgspec.UNSET
    difference: list[str]
    effect: str


class PluginIncident(Answer, frozen=True, kw_only=True):
    """An exception of a plugin: its newest time and traceback, and how often it was raised."""

    at: Instant
    point: str
    exception: str
    traceback: str
    count: int


class PluginRow(Answer, frozen=True, kw_only=True):
    """A plugin.

    Attributes:
        points: the extension points that the plugin implements.
        enabled: the extension points at which some profile runs it.
        file: the file of a custom plugin; null for other plugins.
        documentation: the URL of the documentation of a built-in plugin; null for other plugins.
    """

    name: str
    points: list[str]
    enabled: list[str]
    file: str | None
    built_in: bool
    failures: list[PluginIncident]
    documentation: str | None


class PluginList(ListAnswer, frozen=True, kw_only=True):
    """All available plugins."""

    items: list[PluginRow]
