"""The verb ``up``: a cluster on this machine, with its API, controllers and scheduler, in memory or in a file."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayplan.base.errors import InputError
from bayplan.cli.record_level import Level
from bayplan.cli.simulation_options import FeatureGates, Plugins

if TYPE_CHECKING:
    from bayplan.app.api_service import Service

PATH_HELP = (
    "What the cluster holds at the start: manifests or dumps (YAML, JSON, gzip; files, folders, patterns, - for standard "
    "input)."
)


def up(
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH", help=PATH_HELP)] = None,
    port: Annotated[int, typer.Option(metavar="N", help="Where to listen; 0 takes a free one.")] = 6443,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; beyond this machine only with --token.")
    ] = "127.0.0.1",
    write_kubeconfig: Annotated[
        Path, typer.Option(metavar="FILE", help="Write a kubeconfig here, readable by you only.")
    ] = Path("bayplan.kubeconfig"),
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the cluster in this file; without it, in memory.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What clients must show; BAYPLAN_TOKEN in the environment does, too."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="The key of --tls-cert (PEM).")] = None,
    rate_limit: Annotated[
        float, typer.Option(metavar="N", help="Requests a second that one client may send; 0 for any number.")
    ] = 0.0,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration.")] = None,
    feature_gates: FeatureGates = "",
    plugin: Plugins = None,
    plugin_deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long one call of a plugin of yours may take.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the choice among equally good nodes, and of names.")] = 0,
    records: Annotated[Level, typer.Option(help="How much of each decision is kept.")] = Level.FULL,
    retain: Annotated[
        str, typer.Option(metavar="LIMITS", help="How much is kept: full=100000,bytes=512Mi,age=1h,summaries=500000.")
    ] = "",
    annotations: Annotated[
        bool, typer.Option("--annotations", help="Write results on pods, as kube-scheduler-simulator does.")
    ] = False,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Without, all pods are left to schedulers outside.")
    ] = True,
    controllers: Annotated[
        bool, typer.Option("--controllers/--no-controllers", help="Without, a kube-controller-manager outside works.")
    ] = True,
    kubelet: Annotated[
        bool, typer.Option("--kubelet/--no-kubelet", help="Without, nodes have kubelets of their own.")
    ] = True,
    speed: Annotated[float, typer.Option(metavar="X", help="How fast the cluster's clock goes; 1 is real time.")] = 1.0,
    paused: Annotated[bool, typer.Option("--paused", help="Let the clock stand still at first.")] = False,
    once: Annotated[bool, typer.Option("--once", help="End after the report on what was loaded.")] = False,
) -> None:
    """Run a cluster without machines, for kubectl, clients and schedulers.

    Objects are stored, defaulted, validated and watched as kube-apiserver does; controllers and a kubelet do the work of
    real ones; the scheduler gives pods their nodes, and keeps every decision. Ctrl-C ends it.
    """
    # Servers take a while to import, and only this verb needs one.
    from bayplan.apiserver.bridge.bridge import BridgeOptions
    from bayplan.apiserver.http.server import ServerOptions, check_options
    from bayplan.app.api_service import make_service
    from bayplan.app.retention_option import parse_retention
    from bayplan.app.scheduler_settings import SchedulerOptions
    from bayplan.app.simulator_server import SimulatorOptions
    from bayplan.base.clock import Clock

    shown = token if token is not None else os.environ.get("BAYPLAN_TOKEN", "")
    options = ServerOptions(
        listen=listen,
        port=port,
        token=shown,
        certificate=tls_cert,
        key=tls_key,
        store=store,
        rate_limit=rate_limit,
    )
    check_options(options)
    simulator_options = SimulatorOptions(
        scheduler=SchedulerOptions(
            config=config, plugins=plugin or (), feature_gates=feature_gates, seed=seed, enabled=scheduler
        ),
        bridge=BridgeOptions(controllers=controllers, kubelet=kubelet),
        record_level=records.record_level,
        retention=parse_retention(retain),
        annotations=annotations,
        plugin_deadline_seconds=plugin_deadline,
    )
    if not write_kubeconfig.absolute().parent.is_dir():
        where = str(write_kubeconfig.parent)
        raise InputError("folder isn't there", where=where, wanted="a folder for --write-kubeconfig")
    clock = Clock(speed=speed, paused=paused)
    service = make_service(options, simulator_options, paths or (), clock)
    service.run(on_ready=_told(service, write_kubeconfig, report=bool(paths) or once, once=once))


def _told(service: "Service", kubeconfig: Path, *, report: bool, once: bool) -> Callable[[], None]:
    """Return what is to be called when requests are answered: it tells where, and how the cluster is."""
    from bayplan.apiserver.http.server import write_kubeconfig
    from bayplan.apiserver.rest.loading import summary_of

    server, loaded = service.server, service.loaded
    for where, problems in loaded.unknown.items():
        print(f"{where}: {', '.join(problems)}", file=sys.stderr)
    write_kubeconfig(kubeconfig, server.kubeconfig())

    def tell() -> None:
        if loaded.counts:
            print(f"loaded {summary_of(loaded)}")
        print(f"serving the Kubernetes API at {server.url}")
        print(f"try: kubectl --kubeconfig {kubeconfig} get nodes", flush=True)
        if report:
            from bayplan.app.first_report import begin_report

            begin_report(service, lambda: server.stop() if once else print("Ctrl-C ends it", flush=True))

    return tell
