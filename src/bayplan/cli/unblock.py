"""The command ``unblock``: find changes that get a pending pod placed."""

from typing import Annotated

import typer

from bayplan.analysis.report import print_parts, report_console
from bayplan.answers.unblock_text import render_unblocking
from bayplan.app.custom_plugins import reported_plugin_errors
from bayplan.base.errors import InputError
from bayplan.cli.option_groups import with_groups
from bayplan.cli.source_options import (
    AsJson,
    ChosenScheduler,
    LiveCluster,
    Sources,
    check_subject,
    print_json,
    read_source,
    source_options,
)
from bayplan.engine.records import RecordLevel
from bayplan.formats.inputs import load_inputs
from bayplan.library import Cluster
from bayplan.objects.node import Node


@with_groups
def unblock(
    pod: Annotated[
        str,
        typer.Argument(metavar="POD", help="Pending pod (name, namespace/name), or workload (deployment/web)."),
    ],
    sources: Sources = None,
    *,
    live: LiveCluster,
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shapes", metavar="FILE", help="Node manifests: shapes that can be added. [default: the cluster's shapes]"
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all suggestions instead of ten.")] = False,
    as_json: AsJson = False,
    scheduler: ChosenScheduler,
) -> None:
    """Show changes that get a pending pod placed.

    The first line gives the reason why the pod is pending and the best way to place it. Then come the changes that were found,
    the least risky first: wait for preemption, create what is missing, remove a gate, tolerate a taint of its nodes, count
    only reachable domains, add a node, reduce the requests, move pods, relax a constraint, uncordon a node, evict pods, raise
    the priority, tolerate a taint, label a node. Each was tried by scheduling in a copy of the cluster; the cluster itself
    does not change. Disruption budgets are honoured, except by the scheduler's own preemption. Taints of unhealthy nodes are
    never tolerated. If no single change helps, pairs of changes are tried.

    Exit code: 0 even if no change was found, 2 on bad input, such as a pod that has a node.

    Example: bayplan unblock shop/web-1 --context prod
    """
    options = source_options(sources, live, scheduler)
    check_subject("POD", pod, options)
    catalogue = _shapes(shapes or [])
    source = read_source(options)
    cluster = Cluster.of(source, seed=options.seed, record_level=RecordLevel.OFF)
    with reported_plugin_errors(source.scheduler.custom_plugins):
        found = cluster.unblock(pod, shapes=catalogue)
    if as_json:
        print_json(found)
    else:
        print_parts(report_console(), render_unblocking(found, everything=everything))


def _shapes(paths: list[str]) -> list[Node]:
    """Return the nodes in the files of --shapes; [] without files.

    Raises:
        InputError: the files contain no nodes.
    """
    if not paths:
        return []
    nodes = load_inputs(paths).manifest.nodes
    if not nodes:
        raise InputError("--shapes", got=", ".join(paths), wanted="Node manifests")
    return nodes
