"""The verb ``schedule``: a scheduler for a cluster that has an API server."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bayplan.base.errors import InputError
from bayplan.base.output_paths import check_output_file
from bayplan.cli.simulation_options import FeatureGates, Plugins

if TYPE_CHECKING:
    from bayplan.app.live_scheduler import LiveOptions

Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where the cluster is. [default: KUBECONFIG, ~/.kube/config, the pod's account]"),
]
PluginDeadline: TypeAlias = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long one call of a plugin of yours may take.")
]
LeaderElect: TypeAlias = Annotated[
    bool | None,
    typer.Option("--leader-elect/--no-leader-elect", help="Wait for the lease first. [default: as configured: yes]"),
]
Qps: TypeAlias = Annotated[
    float | None, typer.Option(metavar="N", help="Requests a second, bindings and events apart; below 0: no limit.")
]
Burst: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="Requests at once.")]
Listen: TypeAlias = Annotated[str, typer.Option(metavar="ADDRESS", help="Where probes and metrics are answered.")]
Port: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Its port; 0 takes a free one, -1 answers none.")]
TlsCert: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Answer probes over HTTPS with this certificate (PEM).")
]
TlsKey: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="The key of --tls-cert (PEM).")]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Write nothing: say of each decision of the cluster's scheduler what ours is.")
]
Report: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With --dry-run: write every comparison here, a line of JSON each.")
]


def schedule(
    kubeconfig: Kubeconfig = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the kubeconfig, if not its current one.")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration.")] = None,
    feature_gates: FeatureGates = "",
    plugin: Plugins = None,
    plugin_deadline: PluginDeadline = 10.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the choice among equally good nodes.")] = 0,
    leader_elect: LeaderElect = None,
    kube_api_qps: Qps = None,
    kube_api_burst: Burst = None,
    listen: Listen = "127.0.0.1",
    port: Port = 10259,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    dry_run: DryRun = False,
    report: Report = None,
) -> None:
    """Schedule the pods of a cluster, or check its scheduler.

    As second scheduler or as the only one: it takes the pods whose schedulerName is one of its profiles', as kube-scheduler
    does, and sends what that one sends: bindings, events, conditions, evictions. SIGTERM lets it finish what it has begun.
    docs/schedule.md tells more.

    Exit code: 0 when told to end, 1 when another has taken the lease over or a dry run has found differences, 2 on bad input.
    """
    # A client of an API takes a while to import, and only this verb needs one.
    from bayplan.app.live_scheduler import LiveOptions, LiveScheduler
    from bayplan.app.scheduler_settings import SchedulerOptions

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    if report is not None and not dry_run:
        raise InputError("--report", got="no --dry-run", wanted="--dry-run with it")
    if report is not None:
        check_output_file(report, "--report")
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
    code = _compare(options, report) if dry_run else LiveScheduler(options, _tell).run()
    if code:
        raise typer.Exit(code)


def _compare(options: "LiveOptions", report: Path | None) -> int:
    """Run beside the cluster's scheduler; return 1 where there was a difference."""
    from bayplan.app.live_dry_run import LiveDryRun

    found = LiveDryRun(options, _tell, report).run()
    return int(found.placed_alike != found.placed or found.refused_alike != found.refused)


def _tell(line: str) -> None:
    print(line, flush=True)
