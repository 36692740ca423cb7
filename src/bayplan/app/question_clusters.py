"""The cluster of a question, and the scheduler with configuration changes applied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from bayplan.answers.configuration_changes import changed_configuration, is_profile_change
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.scheduler_setup import SchedulerSetup, read_setup
from bayplan.app.sources.cluster_source import ClusterSource, SourceOptions

CONFIGURATION_CHANGES = ("config", "weight", "disable", "plugin", "feature-gates")
"""Changes of the scheduler: ``config=FILE``, ``weight=PLUGIN:N``, ``disable=PLUGIN``, ``plugin=FILE.py:CLASS``."""


def question_cluster(source: ClusterSource, *, seed: int = 0) -> QuestionCluster:
    """Return the cluster of a source, with its scheduler."""
    return QuestionCluster(source.objects, source.scheduler, now_ns=source.now_ns, seed=seed)


def is_configuration_change(text: str) -> bool:
    """Return whether a text is a change of the scheduler's configuration."""
    kind, equals, rest = text.partition("=")
    return bool(equals and rest) and kind in CONFIGURATION_CHANGES


def changed_setup(setup: SchedulerSetup, changes: Sequence[str], options: SourceOptions) -> SchedulerSetup:
    """Return a changed scheduler: with another configuration, further plugins, other gates or weights, or without some plugins.

    Args:
        setup: the setup of the source.
        changes: see `CONFIGURATION_CHANGES`.
        options: the options that the source was opened with.

    Raises:
        InputError: a file cannot be read, or a plugin does not exist.
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
    for change in filter(is_profile_change, changes):
        setup = replace(setup, configuration=changed_configuration(setup.configuration, change))
    return setup


def configured_setup(config: Path | None, options: SourceOptions) -> SchedulerSetup:
    """Return the scheduler of a configuration file, or the default one, with the plugins and gates of a source's options.

    Raises:
        InputError: the file can't be read.
    """
    return read_setup(config=config, feature_gates=options.feature_gates, plugins=options.plugins)
