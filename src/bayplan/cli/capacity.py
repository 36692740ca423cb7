"""The command ``capacity``: how many more copies of a workload, or of a mix of workloads, fit."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from bayplan.answers.answer_text import capacity_text, headroom_text
from bayplan.answers.capacity import DEFAULT_LIMIT, Share, parse_mix
from bayplan.answers.capacity import capacity as find_capacity
from bayplan.answers.headroom import headroom
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.sources.cluster_source import ClusterSource, SourceKind
from bayplan.base.errors import InputError
from bayplan.cli.option_groups import with_groups
from bayplan.cli.question_options import All, opened, print_answer
from bayplan.cli.source_options import AsJson, ChosenScheduler, LiveCluster, Sources, check_subject, source_options

Files: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Manifests of workloads that do not exist yet; repeatable. [default: none]"
    ),
]
OverTime: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=2, max=1000, help="Count at N points in time of a result directory. [default: the end]"
    ),
]


@with_groups
def capacity(
    workloads: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD[=N],...",
            help="Pod, workload (deployment/web) or mix of them (web=3,db=1).",
        ),
    ],
    sources: Sources = None,
    *,
    files: Files = None,
    preempt: Annotated[bool, typer.Option("--preempt", help="Evict pods of lower priority to place copies.")] = False,
    limit: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help=f"Maximum number of copies. [default: {DEFAULT_LIMIT:,}]", show_default=False
        ),
    ] = DEFAULT_LIMIT,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Number of seeds to try; more than one gives a range.")
    ] = 1,
    over_time: OverTime = None,
    everything: All = False,
    live: LiveCluster,
    as_json: AsJson = False,
    scheduler: ChosenScheduler,
) -> None:
    """Show how many more copies of a workload fit.

    The first line names the resource that runs out first. Copies are scheduled one after the other until one finds no
    node. The table shows the groups of nodes by zone and pool: on how many of them a copy fits at the start and at the end, how
    many copies were placed there, and why no more fit. Affinity, spreading, volumes, quotas and limit ranges are taken into
    account. No pod is evicted unless --preempt is given; then victims are listed.

    --over-time N shows how many copies would have fitted at each of N evenly spaced times of a result directory.

    Exit code: 0 even if no copy fits, 2 on bad input.

    Example: bayplan capacity deployment/shop/web=3,deployment/shop/db --context prod
    """
    options = source_options(sources, live, scheduler)
    check_subject("WORKLOAD", workloads, options)
    mix = parse_mix(workloads)
    with opened(options) as (source, cluster):
        if over_time is not None:
            if files or seeds > 1:
                option, hint = (
                    ("--file", "a workload of the result directory, without --file")
                    if files
                    else ("--seeds", "--seed N")
                )
                raise InputError(f"--over-time can't be combined with {option}", hint=hint)
            _print_over_time(
                source, mix, over_time, preempt, limit, seed=options.seed, everything=everything, as_json=as_json
            )
            return
        if files:
            from bayplan.formats.inputs import load_inputs

            cluster.add_missing(load_inputs(files, strict=options.strict).manifest.objects())
        more = range(options.seed, options.seed + seeds) if seeds > 1 else ()
        answer = find_capacity(cluster, mix, preempts=preempt, limit=limit, seeds=more)
        print_answer(answer, source, lambda: capacity_text(answer, everything=everything), as_json=as_json)


def _print_over_time(
    source: ClusterSource,
    mix: Sequence[Share],
    count: int,
    preempts: bool,
    limit: int,
    *,
    seed: int,
    everything: bool,
    as_json: bool,
) -> None:
    if source.kind is not SourceKind.RESULT:
        got = f"{source.kind} (a single point in time)"
        raise InputError("--over-time", got=got, wanted="a result directory", hint="bayplan simulate PATH --out DIR")
    # Imported here, because PyArrow takes a while to import and no other source needs it.
    from bayplan.analysis.result_directory import open_result
    from bayplan.app.sources.result_source import objects_at

    result = open_result(source.name)
    start_ns, end_ns = result.start_ns, result.end_ns
    times = [start_ns + (end_ns - start_ns) * number // (count - 1) for number in range(count)]

    def cluster_at(time_ns: int) -> QuestionCluster:
        return QuestionCluster(objects_at(result, time_ns), source.scheduler, now_ns=time_ns, seed=seed)

    answer = headroom(cluster_at, times, mix, preempts=preempts, limit=limit)
    print_answer(answer, source, lambda: headroom_text(answer, start_ns, everything=everything), as_json=as_json)
