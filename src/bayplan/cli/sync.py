"""The command ``sync``: keep a running Bayplan in sync with a cluster."""

from bayplan.cli.sync_options import (
    DEFAULT_TO,
    Context,
    From,
    Namespaces,
    Qps,
    Reschedule,
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
    reschedule: Reschedule = False,
    update_scheduled: UpdateScheduled = False,
    source_volumes: SourceVolumes = False,
    qps: Qps = 50.0,
) -> None:
    """Keep a running Bayplan in sync with a cluster.

    First copies the cluster as import does, then applies its changes. Bayplan schedules pods that the source creates later,
    independent of the source's own decision. A pod that is deleted in Bayplan stays deleted, even while the source still has it.
    Ctrl-C ends it; a restart continues at the same point. Start Bayplan with bayplan up first.

    Example: bayplan sync --context production
    """
    from bayplan.app.cluster_sync import SyncOptions, sync_cluster

    policy = sync_policy(
        namespace, selector, reschedule=reschedule, update_scheduled=update_scheduled, source_volumes=source_volumes
    )
    options = SyncOptions(source=source_options(from_, context, qps), here=here_options(to), policy=policy)
    print_outcome(sync_cluster(options, show_status(), once=False))
