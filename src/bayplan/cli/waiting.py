"""The command ``waiting``: show why pods are pending, sorted by the number of pods that nothing else blocks."""

import sys
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Annotated

import typer

from bayplan.analysis.units import format_list
from bayplan.answers.answer_text import assumed
from bayplan.answers.missing_replicas import refused_replicas
from bayplan.answers.waiting_reasons import WaitingReason
from bayplan.app.custom_plugins import reported_plugin_errors
from bayplan.app.mode import Mode
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.cli.option_groups import with_groups
from bayplan.cli.question_options import print_lines
from bayplan.cli.source_options import (
    AsJson,
    ChosenScheduler,
    LiveCluster,
    Sources,
    print_json,
    read_source,
    source_options,
)
from bayplan.engine.records import RecordLevel
from bayplan.library import Cluster

SHOWN = 3
"""Maximum number of pods named for each reason."""


@with_groups
def waiting(
    sources: Sources = None,
    *,
    live: LiveCluster,
    everything: Annotated[bool, typer.Option("--all", help="List all pods for each reason.")] = False,
    as_json: AsJson = False,
    scheduler: ChosenScheduler,
) -> None:
    """Show why pods are pending, grouped by reason.

    Gated pods are included. Reasons are sorted by the number of pods for which they are the only obstacle. Pods that fit now are
    listed last; the scheduler will place them. Then come replicas that were never created because a quota refuses them.

    Exit code: 0 if no pod is pending, 1 otherwise, 2 on bad input.

    Example: bayplan waiting --context prod
    """
    options = source_options(sources, live, scheduler)
    source = read_source(options)
    cluster = Cluster.of(source, seed=options.seed, record_level=RecordLevel.OFF)
    with reported_plugin_errors(source.scheduler.custom_plugins):
        found = cluster.waiting_reasons()
    pending, refused = cluster.pending, refused_replicas(cluster.questions())
    if as_json:
        reasons, assumptions = found.to_dicts(), cluster.assumptions
        print_json({"waiting": pending, "reasons": reasons, "never_created": refused, "assumptions": assumptions})
    else:
        chosen = {
            "--context": options.context,
            "--kubeconfig": options.kubeconfig,
            "--mode": "" if options.mode is Mode.CURRENT else options.mode.value,
            "--config": options.config,
            "--feature-gates": options.feature_gates,
        }
        given = [*map(quote, options.paths)]
        given += [f"{option} {quote(str(value))}" for option, value in chosen.items() if value]
        given += [f"--plugin {quote(each)}" for each in options.plugins]
        lines = [
            *_lines(cluster, found, everything=everything),
            *(line for each in refused for line in ("", f"{each}.")),
        ]
        print_lines([*lines, *assumed(cluster.assumptions), *_next(found, given)])
    sys.stdout.flush()
    if pending:
        raise typer.Exit(1)


def _lines(cluster: Cluster, rows: Iterable[WaitingReason], *, everything: bool) -> list[str]:
    """Return the reasons as lines of text. A reason that several filters report is shown once."""
    reasons: dict[str, list[WaitingReason]] = {}
    for row in rows:
        reasons.setdefault(row.summary, []).append(row)
    pods, pending = format_count(len(cluster.scheduler.pods), "pod"), cluster.pending
    if not pending:
        verdict = (
            f"No pod is pending; the cluster has {pods}." if cluster.scheduler.pods else "The cluster has no pods."
        )
        return [verdict]
    count = len(pending)
    why = f", for {format_count(len(reasons), 'reason')}" if reasons else ""
    lines, blocked = [f"{count:,} of {pods} {is_or_are(count)} pending{why}."], set[str]()
    for sentence, of_filters in reasons.items():
        rejected = list(dict.fromkeys(key for row in of_filters for key in row.examples))
        blocked.update(rejected)
        # Some filters may reject only some of the pods.
        plugins = [row.plugin + (f" ({row.pods:,} of them)" if row.pods < len(rejected) else "") for row in of_filters]
        pods_line = _named(rejected, everything)
        lines += ["", f"{_each(len(rejected))}: {sentence}", f"    {', '.join(plugins)}: {pods_line}"]
    fitting = [key for key in pending if key not in blocked]
    if fitting:
        lines += ["", f"{_each(len(fitting))} fits now, but is not scheduled yet", f"    {_named(fitting, everything)}"]
    return lines


def _each(count: int) -> str:
    return "1 pod" if count == 1 else f"each of {count:,} pods"


def _next(rows: Sequence[WaitingReason], given: Sequence[str]) -> list[str]:
    """Return the command that shows what would let the first pod run; `given`: the arguments that name the source."""
    return ["", f"try: {' '.join(['bayplan', 'unblock', rows[0].examples[0], *given])}"] if rows else []


def _named(pods: Sequence[str], everything: bool) -> str:
    shown = pods if everything else pods[:SHOWN]
    return format_list(shown, more=len(pods) - len(shown))
