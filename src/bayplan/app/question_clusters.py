"""The cluster that a question is about, and its scheduler with configuration changes applied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from bayplan.answers.changes import Change, parse_change
from bayplan.answers.configuration_changes import changed_configuration, is_profile_change
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.scheduler_setup import SchedulerSetup
from bayplan.app.sources.cluster_source import ClusterSource
from bayplan.base.plain_data import part

CONFIGURATION_CHANGES = ("config", "weight", "disable", "plugin", "feature-gates")
"""Changes of the scheduler: config=FILE, weight=PLUGIN:N, disable=PLUGIN, plugin=FILE.py:CLASS, feature-gates=GATES."""


def question_cluster(source: ClusterSource, *, seed: int = 0) -> QuestionCluster:
    """Return the cluster of a source, with the source's scheduler, for questions."""
    return QuestionCluster(source.objects, source.scheduler, now_ns=source.now_ns, seed=seed)


def read_change(text: str, *, strict: bool = False) -> Change:
    """Return a change of a cluster, with the objects of its file if its kind reads one.

    Args:
        text: the change, see `bayplan.answers.changes.CHANGES`.
        strict: whether warnings about the file are errors.

    Raises:
        InputError: the change or its file is invalid.
    """
    change = parse_change(text)
    if change.kind != "apply":
        return change
    # Imported here, because only this kind of change reads manifests.
    from bayplan.formats.inputs import load_inputs

    loaded = load_inputs([change.target], strict=strict).manifest.loaded
    objects, specs = (each.typed for each in loaded), (part(each.document, "spec") for each in loaded)
    return replace(change, objects=tuple(objects), specs=tuple(specs))


def is_configuration_change(text: str) -> bool:
    """Return whether a text is a change of the scheduler's configuration."""
    kind, equals, rest = text.partition("=")
    return bool(equals and rest) and kind in CONFIGURATION_CHANGES


def changed_setup(setup: SchedulerSetup, changes: Sequence[str]) -> SchedulerSetup:
    """Return the setup with all changes applied.

    Plugins are loaded first, so that the configuration can name them; then configuration and gates are applied, then weights
    and disabled plugins.

    Args:
        setup: the setup of the source.
        changes: see `CONFIGURATION_CHANGES`.

    Raises:
        InputError: a file cannot be read, or a plugin does not exist.
    """
    split = [change.partition("=")[::2] for change in changes]
    config = next((Path(rest) for kind, rest in split if kind == "config"), None)
    plugins = [rest for kind, rest in split if kind == "plugin"]
    gates = [rest for kind, rest in split if kind == "feature-gates"]
    if plugins:
        setup = setup.with_plugin_options(plugins)
    if config is not None or gates:
        options = setup.options if config is None else setup.options.with_config(config)
        all_gates = ",".join(each for each in (options.feature_gates, *gates) if each)
        setup = setup.read_again(replace(options, feature_gates=all_gates))
    for change in filter(is_profile_change, changes):
        setup = replace(setup, configuration=changed_configuration(setup.configuration, change))
    return setup
