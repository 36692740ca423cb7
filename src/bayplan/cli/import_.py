"""The verb ``import``: bring what is in a cluster, or in files, into a running Bayplan."""

from typing import Annotated

import typer

from bayplan.base.errors import InputError
from bayplan.cli.sync_options import (
    DEFAULT_TO,
    Anew,
    Context,
    From,
    Namespaces,
    Qps,
    Selector,
    To,
    here_options,
    print_outcome,
    show_status,
    source_options,
    sync_policy,
)


def import_(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Dumps and manifests, instead of a cluster; - for standard input."),
    ] = None,
    from_: From = None,
    context: Context = None,
    to: To = DEFAULT_TO,
    namespace: Namespaces = None,
    selector: Selector = "",
    anew: Anew = False,
    qps: Qps = 50.0,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 1 where something could not be brought over.")
    ] = False,
) -> None:
    """Bring what is in a cluster or in files into a running Bayplan.

    Everything that scheduling reads is brought over. Pods that run keep their nodes; those that wait are for the scheduler
    here. Workload controllers stay behind, so that none makes or deletes pods here. Ends when everything is there.
    """
    from bayplan.app.cluster_sync import SyncOptions, sync_cluster

    if paths and (from_ is not None or context is not None):
        raise InputError("source", got="files and a cluster", wanted="one of them")
    source = None if paths else source_options(from_, context, qps)
    policy = sync_policy(namespace, selector, anew=anew, follow=False)
    options = SyncOptions(source=source, paths=paths or (), here=here_options(to), policy=policy)
    status = sync_cluster(options, show_status(), once=True)
    print_outcome(status)
    if strict and (status.problems or status.left_out):
        raise typer.Exit(1)
