"""The verb ``sync``: follow a cluster."""

from bayplan.cli.sync_options import (
    DEFAULT_TO,
    Anew,
    Context,
    From,
    Namespaces,
    Qps,
    Selector,
    SourceVolumes,
    To,
    UpdateScheduled,
    here_options,
    print_outcome,
    show_status,
    source_options,
    sync_policy,
)


def sync(
    from_: From = None,
    context: Context = None,
    to: To = DEFAULT_TO,
    namespace: Namespaces = None,
    selector: Selector = "",
    anew: Anew = False,
    update_scheduled: UpdateScheduled = False,
    source_volumes: SourceVolumes = False,
    qps: Qps = 50.0,
) -> None:
    """Follow a cluster: its changes come to a running Bayplan.

    Begins as import does, and goes on. A pod that is created in the source later comes here without a node, whatever happens
    to it there: the scheduler here decides. A pod that is deleted here stays deleted until the source deletes it. Nodes,
    finished pods and deletions follow. Ctrl-C ends it; begun again, it goes on where it was.
    """
    from bayplan.app.cluster_sync import SyncOptions, sync_cluster

    policy = sync_policy(
        namespace, selector, anew=anew, update_scheduled=update_scheduled, source_volumes=source_volumes
    )
    options = SyncOptions(source=source_options(from_, context, qps), here=here_options(to), policy=policy)
    print_outcome(sync_cluster(options, show_status(), once=False))
