"""The options of the command ``up``, of which ``schedule`` shares one."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from bayplan.cli.number_options import finite, time_limit
from bayplan.cli.simulation_options import Level

DEFAULT_PLUGIN_DEADLINE, DEFAULT_SPEED, DEFAULT_RATE_LIMIT = 10.0, 1.0, 0.0
"""Defaults of the server's options, repeated to show them in help texts without a decimal point. A test compares them."""

PATH_HELP = "Initial objects: manifests or dumps, as files, folders, patterns or - (stdin)."

Paths: TypeAlias = Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help=PATH_HELP)]
Port: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Port to listen on; 0 picks a free one.")]
Listen: TypeAlias = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Address to listen on; other than loopback requires --token.")
]
WriteKubeconfig: TypeAlias = Annotated[
    Path, typer.Option(metavar="FILE", help="Kubeconfig to write; an existing one gets a new current context.")
]
StoreFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Database file that keeps the cluster across restarts. [default: in memory]"),
]
EventTtl: TypeAlias = Annotated[str, typer.Option("--event-ttl", metavar="DURATION", help="Time to keep events.")]
Token: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Bearer token that clients must send. [default: $BAYPLAN_TOKEN]"),
]
TlsCertificate: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Certificate for HTTPS (PEM). [default: none, plain HTTP]")
]
TlsKey: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Key of --tls-cert (PEM). [default: none]")
]
PluginDeadline: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        callback=time_limit,
        help=f"Time limit for one call of a custom plugin. [default: {DEFAULT_PLUGIN_DEADLINE:g}]",
        show_default=False,
    ),
]
ServerSeed: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Seed for tie-breaking and generated names.")]
Records: TypeAlias = Annotated[Level, typer.Option(help="Detail of recorded decisions.")]
Retain: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="LIMITS",
        help="Limits on stored decisions: full=N, bytes=SIZE, age=DURATION, summaries=N. "
        "[default: full=100000,bytes=512Mi,summaries=500000]",
    ),
]
Annotations: TypeAlias = Annotated[
    bool, typer.Option("--annotations", help="Write results to pod annotations, as kube-scheduler-simulator does.")
]
WithScheduler: TypeAlias = Annotated[
    bool,
    typer.Option("--scheduler/--no-scheduler", help="Run the built-in scheduler. [default: on]", show_default=False),
]
WithControllers: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--controllers/--no-controllers", help="Run the built-in controllers. [default: on]", show_default=False
    ),
]
WithKubelet: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--kubelet/--no-kubelet", help="Run the built-in kubelet for all nodes. [default: on]", show_default=False
    ),
]
RunTime: TypeAlias = Annotated[
    str,
    typer.Option(metavar="DURATION", help="Run time of new pods with restartPolicy Never or OnFailure, or forever."),
]
Speed: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="X",
        help=f"Speed of the cluster's clock; 1 is real time. [default: {DEFAULT_SPEED:g}]",
        show_default=False,
    ),
]
Paused: TypeAlias = Annotated[bool, typer.Option("--paused", help="Start with the clock paused.")]
Once: TypeAlias = Annotated[bool, typer.Option("--once", help="Print a report on the loaded objects, then exit.")]
AllowOrigin: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin",
        metavar="ORIGIN",
        help="Web origin that may send write requests; repeatable. [default: none]",
    ),
]
RateLimit: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="N",
        callback=finite,
        help=f"Requests per second for each client; 0 for no limit. [default: {DEFAULT_RATE_LIMIT:g}]",
        show_default=False,
    ),
]
Webhooks: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--webhooks",
        metavar="TARGET",
        help="Webhooks that may be called: loopback, HOST:PORT, NAMESPACE/SERVICE=HOST:PORT, or any; repeatable. [default: none]",
    ),
]
ServiceAccounts: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--service-account-admission", help="Require that a pod's service account exists, and mount its token."
    ),
]
