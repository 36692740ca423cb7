"""The verb ``schedule``: a scheduler for a cluster that has an API server."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from bayplan.base.errors import InputError
from bayplan.cli.simulation_options import FeatureGates, Plugins


def schedule(
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the cluster is. [default: KUBECONFIG, ~/.kube/config, the pod's account]"
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the kubeconfig, if not its current one.")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration.")] = None,
    feature_gates: FeatureGates = "",
    plugin: Plugins = None,
    plugin_deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long one call of a plugin of yours may take.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the choice among equally good nodes.")] = 0,
    leader_elect: Annotated[
        bool | None,
        typer.Option(
            "--leader-elect/--no-leader-elect", help="Wait for the lease first. [default: as configured: yes]"
        ),
    ] = None,
    kube_api_qps: Annotated[
        float | None, typer.Option(metavar="N", help="Requests a second, bindings and events apart; below 0: no limit.")
    ] = None,
    kube_api_burst: Annotated[int | None, typer.Option(metavar="N", help="Requests at once.")] = None,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where probes and metrics are answered.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Its port; 0 takes a free one, -1 answers none.")] = 10259,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Answer probes over HTTPS with this certificate (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="The key of --tls-cert (PEM).")] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Write nothing: say of each decision of the cluster's scheduler what ours is."),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --dry-run: write every comparison here, a line of JSON each."),
    ] = None,
) -> None:
    """Schedule the pods of a cluster, as its second scheduler or as the only one.

    It takes the pods whose schedulerName is one of its profiles', as kube-scheduler does, and sends what that one sends:
    bindings, events, conditions, evictions. SIGTERM lets it finish what it has begun. docs/schedule.md tells more.

    Exit code: 0 when told to end, 1 when another has taken the lease over or a dry run has found differences, 2 on bad input.
    """
    # A client of an API takes a while to import, and only this verb needs one.
    from bayplan.app.live_scheduler import LiveOptions, LiveScheduler
    from bayplan.app.scheduler_settings import SchedulerOptions

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    if report is not None and not dry_run:
        raise InputError("--report", got="no --dry-run", wanted="both")
    scheduler = SchedulerOptions(config=config, plugins=plugin or (), feature_gates=feature_gates, seed=seed)
    options = LiveOptions(
        kubeconfig=kubeconfig,
        context=context,
        scheduler=scheduler,
        leader_elect=leader_elect,
        qps=kube_api_qps,
        burst=kube_api_burst,
        listen=listen,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        plugin_deadline_seconds=plugin_deadline,
    )
    if dry_run:
        from bayplan.app.live_dry_run import LiveDryRun

        agreement = LiveDryRun(options, _tell, report).run()
        code = int(agreement.placed_alike != agreement.placed or agreement.refused_alike != agreement.refused)
    else:
        code = LiveScheduler(options, _tell).run()
    if code:
        raise typer.Exit(code)


def _tell(line: str) -> None:
    print(line, flush=True)
