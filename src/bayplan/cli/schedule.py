"""The command ``schedule``: run a scheduler for a cluster that has an API server."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bayplan.app.mode import Mode
from bayplan.base.background_output import background_output
from bayplan.base.errors import InputError
from bayplan.base.output_paths import check_output_file
from bayplan.cli.number_options import finite
from bayplan.cli.server_options import DEFAULT_PLUGIN_DEADLINE, PluginDeadline
from bayplan.cli.simulation_options import (
    AlgorithmProvider,
    Config,
    FeatureGates,
    ModeOption,
    Plugins,
    PolicyConfigFile,
    configuration_file,
)

if TYPE_CHECKING:
    from bayplan.app.live_scheduler import LiveOptions

Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Kubeconfig of the cluster. [default: as for kubectl, or in-cluster]"),
]
LeaderElect: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--leader-elect/--no-leader-elect",
        help="Wait for the leader election lease. [default: as in --config, else on]",
    ),
]
Qps: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        callback=finite,
        help="Requests per second (bindings and events separately); negative for no limit. [default: as configured]",
    ),
]
Burst: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Burst of requests, as for kube-scheduler. [default: as configured]")
]
Listen: TypeAlias = Annotated[str, typer.Option(metavar="ADDRESS", help="Address for probes and metrics.")]
Port: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Port for probes and metrics; 0 picks a free one, -1 disables.")
]
TlsCert: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Certificate for HTTPS probes (PEM). [default: none, plain HTTP]")
]
TlsKey: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Key of --tls-cert (PEM). [default: none]")
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Compare with the cluster's scheduler; write nothing.")
]
Report: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File for the comparisons of --dry-run (JSON lines). [default: none]"),
]


def schedule(
    kubeconfig: Kubeconfig = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Context in the kubeconfig. [default: the current one]")
    ] = None,
    mode: ModeOption = Mode.CURRENT,
    config: Config = None,
    policy_config_file: PolicyConfigFile = None,
    algorithm_provider: AlgorithmProvider = "",
    feature_gates: FeatureGates = "",
    plugin: Plugins = None,
    plugin_deadline: PluginDeadline = DEFAULT_PLUGIN_DEADLINE,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed for tie-breaking.")] = 0,
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
    """Schedule the pods of a real cluster, or check its scheduler.

    Run as a second scheduler or as the only one. Like kube-scheduler, it schedules the pods whose schedulerName is that of
    one of its profiles, and sends bindings, events, conditions and evictions. On SIGTERM it completes pending bindings. See
    docs/schedule.md.

    Exit code: 0 after SIGTERM or Ctrl-C, 1 if the lease was lost or a dry run found differences, 2 on bad input.

    Example: bayplan schedule --dry-run
    """
    # Imported here, because an API client is slow to import, and only this command needs one.
    from bayplan.app.live_scheduler import LiveOptions, LiveScheduler
    from bayplan.app.scheduler_setup import SchedulerOptions

    if report is not None and not dry_run:
        raise InputError("--report needs --dry-run")
    if report is not None:
        check_output_file(report, "--report")
    scheduler = SchedulerOptions(
        mode=mode,
        config=configuration_file(mode, config, policy_config_file),
        algorithm_provider=algorithm_provider,
        plugins=plugin or (),
        feature_gates=feature_gates,
        seed=seed,
    )
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
        _refuse_ignored(options)
    with background_output():
        logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
        code = _compare(options, report) if dry_run else LiveScheduler(options, _print_line).run()
    if code:
        raise typer.Exit(code)


def _refuse_ignored(options: "LiveOptions") -> None:
    """Raise InputError if an option is given that a dry run would ignore."""
    defaults = type(options)()
    given = {
        "--leader-elect": bool(options.leader_elect),
        "--listen": options.listen != defaults.listen,
        "--port": options.port != defaults.port,
        "--tls-cert": options.certificate is not None,
        "--tls-key": options.key is not None,
    }
    for option in (name for name, is_given in given.items() if is_given):
        raise InputError(f"{option} can't be combined with --dry-run, which has neither a lease nor probes")


def _compare(options: "LiveOptions", report: Path | None) -> int:
    """Compare Bayplan's decisions with those of the cluster's scheduler; return 1 if any differed, else 0."""
    from bayplan.app.live_dry_run import LiveDryRun

    found = LiveDryRun(options, _print_line, report).run()
    return int(found.placed_alike != found.placed or found.refused_alike != found.refused)


def _print_line(line: str) -> None:
    print(line, flush=True)
