"""Answers about the scheduler's configuration and its plugins."""

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
"""By profile and extension point the plugins in their order."""


class Configuration(Answer, frozen=True, kw_only=True):
    """The configuration that decides now: as it was given, and as it comes out."""

    text: str
    effective: EffectiveConfiguration
    extension_points: ExtensionPoints


class DefaultConfiguration(Answer, frozen=True, kw_only=True):
    """The configuration that holds if none is given, also as YAML."""

    text: str
    effective: EffectiveConfiguration


class ConfigurationProblem(Answer, frozen=True, kw_only=True):
    """What is wrong with a configuration, where, and what may have been meant."""

    line: int
    column: int
    path: str
    message: str
    hint: str


class Validation(Answer, frozen=True, kw_only=True):
    """What is wrong with a configuration, or what it would change.

    Attributes:
        stage: that refused it; null for a good one. effective, extension_points: of a good one.
        difference: from the configuration that decides now, one thing a line. will: what would happen then.
    """

    stage: str | None
    problems: list[ConfigurationProblem]
    effective: EffectiveConfiguration | None
    extension_points: ExtensionPoints | msgspec.UnsetType = msgspec.UNSET
    difference: list[str]
    will: str


class PluginIncident(Answer, frozen=True, kw_only=True):
    """An exception of a plugin, and how often it was raised; the newest time and traceback."""

    at: Instant
    point: str
    exception: str
    traceback: str
    count: int


class PluginRow(Answer, frozen=True, kw_only=True):
    """A plugin.

    Attributes:
        points: extension points that it implements. enabled: those at which some profile runs it. file: of a custom plugin.
        documentation: address of the documentation of a built-in plugin.
    """

    name: str
    points: list[str]
    enabled: list[str]
    file: str | None
    built_in: bool
    failures: list[PluginIncident]
    documentation: str | None


class PluginList(ListAnswer, frozen=True, kw_only=True):
    """All plugins that there are."""

    items: list[PluginRow]
