"""The command ``import``: copy a cluster, or files, into a Bayplan server."""

from typing import Annotated

import typer

from bayplan.base.errors import InputError
from bayplan.cli.sync_options import (
    DEFAULT_QPS,
    DEFAULT_TO,
    Context,
    From,
    Namespaces,
    Qps,
    Reschedule,
    Selector,
    To,
    print_outcome,
    show_status,
    source_options,
    sync_policy,
    target_options,
)


def import_(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Manifests or dumps to copy instead of a cluster; - for stdin."),
    ] = None,
    from_: From = None,
    context: Context = None,
    to: To = DEFAULT_TO,
    namespace: Namespaces = None,
    selector: Selector = "",
    reschedule: Reschedule = False,
    qps: Qps = DEFAULT_QPS,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if any object could not be copied.")] = False,
) -> None:
    """Copy a cluster, or files, into a Bayplan server.

    Everything that scheduling reads is copied. Running pods keep their nodes; pending pods are scheduled by Bayplan. Deployments,
    DaemonSets, Jobs and CronJobs are not copied. ReplicaSets, StatefulSets and ReplicationControllers are copied with 0
    replicas. The copied pods refer to the source's owners, so no controller of the server creates or deletes pods. Start
    the server with bayplan up first. Copies of an earlier import that the source does not contain are deleted.

    Example: bayplan import --context production
    """
    from bayplan.app.cluster_sync import SyncOptions, sync_cluster

    if paths and (from_ is not None or context is not None):
        raise InputError("source: files can't be combined with --from or --context")
    source = None if paths else source_options(from_, context, qps)
    policy = sync_policy(namespace, selector, reschedule=reschedule, follow=False)
    options = SyncOptions(source=source, paths=paths or (), here=target_options(to), policy=policy)
    status = sync_cluster(options, show_status(), once=True)
    print_outcome(status)
    if strict and (status.problems or status.left_out):
        raise typer.Exit(1)
