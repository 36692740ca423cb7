"""The command ``when``: show when a pending pod or a Job would start, in virtual time."""

from typing import Annotated

import typer
from msgspec.structs import replace

from bayplan.answers.answer_text import start_text
from bayplan.answers.start_times import DEFAULT_SEEDS, start_times
from bayplan.app.sources.cluster_source import Assumption, SourceKind
from bayplan.cli.option_groups import with_groups
from bayplan.cli.question_options import All, opened, print_answer
from bayplan.cli.simulation_options import parse_duration
from bayplan.cli.source_options import AsJson, ChosenScheduler, LiveCluster, Sources, check_subject, source_options

_NO_ANNOTATIONS = (
    "a result does not contain the annotations of pods, so their run times are unknown (bayplan.io/run-time)"
)


@with_groups
def when(
    pod: Annotated[str, typer.Argument(metavar="POD", help="Pending pod, or workload with pending pods (job/train).")],
    sources: Sources = None,
    *,
    assume_run_time: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Run time of pods with restartPolicy Never or OnFailure, if unknown. [default: forever]",
        ),
    ] = "",
    within: Annotated[str, typer.Option(metavar="DURATION", help="Virtual time to look ahead.")] = "7d",
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Number of seeds to try; more than one gives a range.")
    ] = DEFAULT_SEEDS,
    everything: All = False,
    live: LiveCluster,
    as_json: AsJson = False,
    scheduler: ChosenScheduler,
) -> None:
    """Show when a pending pod or a Job would start.

    The cluster is simulated in virtual time. Resources become free when pods end. The run time of a pod is its annotation
    bayplan.io/run-time, or that of finished pods of the same Job or CronJob, or else --assume-run-time if its restart policy
    is Never or OnFailure.

    Exit code: 0 if all of the pods start within --within, 1 otherwise, 2 on bad input.

    Example: bayplan when job/train --assume-run-time 2h --context prod
    """
    options = source_options(sources, live, scheduler)
    check_subject("POD", pod, options)
    with opened(options) as (source, cluster):
        if source.kind is SourceKind.RESULT:
            source = replace(source, assumptions=[*source.assumptions, Assumption("objects", _NO_ANNOTATIONS)])
        answer = start_times(
            cluster,
            pod,
            assumed_run_ns=parse_duration(assume_run_time, "--assume-run-time") if assume_run_time else None,
            seeds=range(options.seed, options.seed + seeds),
            horizon_ns=parse_duration(within, "--within"),
        )
        print_answer(answer, source, lambda: start_text(answer, everything=everything), as_json=as_json)
    if answer.median_ns is None:
        raise typer.Exit(1)
