"""The cluster that questions are about, and the scheduler with configuration changes applied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.scheduler_setup import SchedulerSetup, read_setup
from bayplan.app.sources.cluster_source import ClusterSource, SourceOptions
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.framework.configuration.profiles import PluginWeight, ProfileConfiguration

CONFIGURATION_CHANGES = ("config", "weight", "disable", "plugin", "feature-gates")
"""Changes that make another scheduler: ``config=FILE``, ``weight=PLUGIN:N``, ``disable=PLUGIN``, ``plugin=FILE.py:CLASS``."""

SCORE = "score"


def question_cluster(source: ClusterSource, *, seed: int = 0) -> QuestionCluster:
    """Return the cluster of a source, with its scheduler."""
    return QuestionCluster(source.objects, source.scheduler, now_ns=source.now_ns, seed=seed)


def is_configuration_change(text: str) -> bool:
    """Return whether a text is a change of the scheduler's configuration."""
    kind, equals, rest = text.partition("=")
    return bool(equals and rest) and kind in CONFIGURATION_CHANGES


def changed_setup(setup: SchedulerSetup, changes: Sequence[str], options: SourceOptions) -> SchedulerSetup:
    """Return another scheduler: with another configuration, further plugins, other gates, other weights, or plugins left out.

    Args:
        setup: of the source. changes: see `CONFIGURATION_CHANGES`. options: what the source was read with.

    Raises:
        InputError: a file can't be read, or a plugin is not there.
    """
    split = [change.partition("=")[::2] for change in changes]
    config = next((Path(rest) for kind, rest in split if kind == "config"), None)
    plugins = [rest for kind, rest in split if kind == "plugin"]
    gates = [rest for kind, rest in split if kind == "feature-gates"]
    if config is not None or plugins or gates:
        setup = read_setup(
            mode=options.mode,
            config=config if config is not None else options.config,
            algorithm_provider=options.algorithm_provider if config is None else "",
            feature_gates=",".join(each for each in (options.feature_gates, *gates) if each),
            plugins=[*options.plugins, *plugins],
        )
    for kind, rest in split:
        if kind == "weight":
            setup = _weighted(setup, rest)
        elif kind == "disable":
            setup = _without(setup, rest)
    return setup


def configured_setup(config: Path | None, options: SourceOptions) -> SchedulerSetup:
    """Return the scheduler of a configuration file, or the default one, with the plugins and gates of a source's options.

    Raises:
        InputError: the file can't be read.
    """
    return read_setup(config=config, feature_gates=options.feature_gates, plugins=options.plugins)


def _weighted(setup: SchedulerSetup, text: str) -> SchedulerSetup:
    name, colon, number = text.rpartition(":")
    if not colon or not number.isdecimal() or not 1 <= int(number) <= 2**31 - 1:
        raise InputError(
            "weight", got=repr(text), wanted="PLUGIN:WEIGHT with a weight above 0", hint="disable=PLUGIN for none"
        )
    _check_name(setup, name, SCORE)

    def change(profile: ProfileConfiguration) -> ProfileConfiguration:
        scorers = tuple(
            PluginWeight(entry.name, int(number)) if entry.name == name else entry for entry in profile.plugins[SCORE]
        )
        return replace(profile, plugins={**profile.plugins, SCORE: scorers})

    return _with_profiles(setup, tuple(map(change, setup.configuration.profiles)))


def _without(setup: SchedulerSetup, name: str) -> SchedulerSetup:
    _check_name(setup, name, "")

    def change(profile: ProfileConfiguration) -> ProfileConfiguration:
        kept = {
            point: tuple(entry for entry in entries if entry.name != name or point in ("queue_sort", "bind"))
            for point, entries in profile.plugins.items()
        }
        return replace(profile, plugins=kept)

    return _with_profiles(setup, tuple(map(change, setup.configuration.profiles)))


def _with_profiles(setup: SchedulerSetup, profiles: tuple[ProfileConfiguration, ...]) -> SchedulerSetup:
    return replace(setup, configuration=replace(setup.configuration, profiles=profiles))


def _check_name(setup: SchedulerSetup, name: str, point: str) -> None:
    names = {
        entry.name: None
        for profile in setup.configuration.profiles
        for each, entries in profile.plugins.items()
        for entry in entries
        if point in ("", each)
    }
    if name not in names:
        close = near_name(name, list(names))
        what = "score plugin" if point == SCORE else "plugin"
        raise InputError(what, got=repr(name), wanted=f"one of {', '.join(names)}", hint=f"'{close}'" if close else "")
