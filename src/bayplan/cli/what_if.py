"""The command ``what-if``: show a cluster before and after changes, pod by pod."""

from typing import Annotated, TypeAlias

import typer

from bayplan.answers.answer_text import difference_text
from bayplan.answers.changes import CHANGES, is_change, missing_change
from bayplan.answers.what_if import Reschedule
from bayplan.answers.what_if import what_if as find_differences
from bayplan.app.custom_plugins import reported_plugin_errors
from bayplan.app.question_clusters import CONFIGURATION_CHANGES, changed_setup, is_configuration_change, read_change
from bayplan.cli.option_groups import with_groups
from bayplan.cli.question_options import All, opened, print_answer
from bayplan.cli.source_options import AsJson, ChosenScheduler, LiveCluster, source_options

Rescheduled: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="new|all|WORKLOAD",
        help="Pods to schedule: new (without a node), all, or of WORKLOAD; repeatable. [default: new]",
    ),
]


@with_groups
def what_if(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="CHANGE... [SOURCE]...",
            help="Changes (KIND=TARGET, listed above), then a source: files, a result or URL.",
            show_default=False,
        ),
    ],
    *,
    reschedule: Rescheduled = None,
    everything: All = False,
    live: LiveCluster,
    as_json: AsJson = False,
    scheduler: ChosenScheduler,
) -> None:
    """Show a cluster before and after changes.

    The first line counts the pods that would move, become pending or disappear; the table has the reasons.

    Nodes: lose-zone=ZONE, remove-nodes=NODES, add-nodes=COUNT:SHAPE (cpu=8,memory=32Gi or like=NODE), drain=NODES,
    cordon=NODES, uncordon=NODES, taint=NODES:key=value:Effect, untaint=NODES:key, resize=NODES:cpu=8,memory=32Gi. NODES is a
    name, a pattern or label:key=value.

    Workloads: scale=WORKLOAD:REPLICAS, restart=WORKLOAD, delete=WORKLOAD, priority=WORKLOAD:NUMBER|CLASS,
    apply=FILE.

    Scheduler: config=FILE, feature-gates=A=true, weight=PLUGIN:N, disable=PLUGIN, plugin=FILE.py:CLASS.

    By default, placed pods keep their node. --reschedule all schedules every pod again, from an empty cluster; --reschedule
    WORKLOAD does this for the pods of one workload.

    Exit code: 0 if no pod that had a node would be pending, 1 otherwise, 2 on bad input.

    Example: bayplan what-if lose-zone=eu-1b --context prod
    """
    changes = [text for text in arguments if is_change(text)]
    configured = [text for text in arguments if is_configuration_change(text)]
    sources = [text for text in arguments if text not in changes and text not in configured]
    if not changes and not configured:
        raise missing_change((*CHANGES, *CONFIGURATION_CHANGES), sources)
    options = source_options(sources, live, scheduler)
    parsed = [read_change(text, strict=options.strict) for text in changes]
    with opened(options) as (source, cluster):
        setup = changed_setup(source.scheduler, configured) if configured else None
        label, (kind, these) = ", ".join(configured), _rescheduled(reschedule or [])
        with reported_plugin_errors(setup.custom_plugins if setup is not None else ()):
            answer = find_differences(
                cluster, parsed, scheduler=setup, scheduler_label=label, reschedule=kind, these=these
            )
        print_answer(answer, source, lambda: difference_text(answer, everything=everything), as_json=as_json)
    if answer.counts["waits"]:
        raise typer.Exit(1)


def _rescheduled(texts: list[str]) -> tuple[Reschedule, list[str]]:
    these = [text for text in texts if text not in ("new", "all")]
    if "all" in texts:
        return Reschedule.ALL, []
    return (Reschedule.THESE, these) if these else (Reschedule.NEW, [])
