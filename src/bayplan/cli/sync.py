"""The command ``sync``: keep a Bayplan server in sync with a cluster."""

from bayplan.base.background_output import background_output
from bayplan.cli.sync_options import (
    DEFAULT_QPS,
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
    print_outcome,
    show_status,
    source_options,
    sync_policy,
    target_options,
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
    qps: Qps = DEFAULT_QPS,
) -> None:
    """Keep a Bayplan server in sync with a cluster.

    Copy the cluster as import does, then apply its changes. Bayplan schedules the pods that the source creates later,
    independently of the source's scheduler. A pod that you delete in Bayplan stays deleted, although the source still
    has it. Ctrl-C ends it; a restart continues at the same point. Start the server with bayplan up first.

    Example: bayplan sync --context production
    """
    from bayplan.app.cluster_sync import SyncOptions, sync_cluster

    policy = sync_policy(
        namespace, selector, reschedule=reschedule, update_scheduled=update_scheduled, source_volumes=source_volumes
    )
    options = SyncOptions(source=source_options(from_, context, qps), here=target_options(to), policy=policy)
    with background_output():
        print_outcome(sync_cluster(options, show_status(), once=False))
