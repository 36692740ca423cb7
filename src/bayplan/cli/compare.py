"""The command ``compare``: compare two clusters, or one cluster under two configurations, pod by pod."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs

from bayplan.answers.answer_text import difference_text
from bayplan.answers.comparing import compare as find_differences
from bayplan.answers.what_if import Answer, Reschedule, what_if
from bayplan.app.mode import Mode
from bayplan.app.sources.cluster_source import ClusterSource, SourceOptions
from bayplan.base.errors import InputError
from bayplan.cli.option_groups import with_groups
from bayplan.cli.question_options import All, opened, print_answer
from bayplan.cli.source_options import AsJson, ChosenScheduler, LiveCluster, source_options

CONTEXT = "context:"
"""Prefix of a kubeconfig context that is given as one of the two clusters."""

DEFAULT = "default"
"""The argument that stands for kube-scheduler's default configuration."""


@with_groups
def compare(
    a: Annotated[
        str,
        typer.Argument(metavar="A", help="Dump, result directory, URL or context:NAME; with --on a configuration."),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="Second cluster or configuration, in the same form as A.")],
    *,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on", metavar="SOURCE", help="Cluster on which to compare the two configurations. [default: none]"
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep placed pods on their nodes (with --on).")] = False,
    everything: All = False,
    as_json: AsJson = False,
    scheduler: ChosenScheduler,
) -> None:
    """Compare two clusters, or two configurations.

    Pods are matched by namespace and name, and replicas with random names within their workload; a pod that only one side has
    is a difference. For each pod that moved, the plugin that made the difference is shown. Pods with other requests, nodes with
    other amounts, labels or taints, and nodes that only one side has are differences, too. With --on, A and B are
    KubeSchedulerConfiguration files, or the word default. All pods are scheduled again with each configuration, starting from an
    empty cluster, unless --keep is given.

    Exit code: 0 if there is no difference, 1 otherwise, 2 on bad input.

    Example: bayplan compare monday.json tuesday.json
    """

    def options_of(source: str) -> SourceOptions:
        name = source.removeprefix(CONTEXT)
        if name == source:
            return source_options([source], LiveCluster(), scheduler)
        return source_options([], LiveCluster(context=name), scheduler)

    def show(answer: Answer, source: ClusterSource) -> None:
        names = (a, b)
        print_answer(
            answer, source, lambda: difference_text(answer, names=names, everything=everything), as_json=as_json
        )
        if any(answer.counts.values()) or answer.changed:
            raise typer.Exit(1)

    if not on:
        with opened(options_of(a)) as (source, one), opened(options_of(b)) as (_, other):
            show(find_differences(one, other, names=(a, b)), source)
        return
    if scheduler.config is not None:
        raise InputError("--config can't be combined with --on", hint="the two configurations as A and B")
    with opened(source_options(on, LiveCluster(), scheduler)) as (source, cluster):
        setup = source.scheduler
        first, second = (
            setup.read_again(setup.options.with_config(None if each == DEFAULT else Path(each))) for each in (a, b)
        )
        kind = Reschedule.NEW if keep else Reschedule.ALL
        answer = what_if(cluster.with_scheduler(first), scheduler=second, scheduler_label=b, reschedule=kind)
        show(answer, _without_configuration(source) if scheduler.mode is Mode.CURRENT else source)


def _without_configuration(source: ClusterSource) -> ClusterSource:
    """Return a source without its assumption about the configuration, because A and B are the configurations."""
    return structs.replace(source, assumptions=[each for each in source.assumptions if each.about != "configuration"])
