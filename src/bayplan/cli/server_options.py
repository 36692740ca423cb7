"""The options of the verb ``up``: what each is called, takes and does."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from bayplan.cli.record_level import Level

PATH_HELP = (
    "What the cluster holds at the start: manifests or dumps (YAML, JSON, gzip; files, folders, patterns, - for standard "
    "input)."
)

Paths: TypeAlias = Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help=PATH_HELP)]
Port: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Where to listen; 0 takes a free one.")]
Listen: TypeAlias = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where to listen; beyond this machine only with --token.")
]
WriteKubeconfig: TypeAlias = Annotated[
    Path, typer.Option(metavar="FILE", help="Kubeconfig to write, or to add the context bayplan to.")
]
StoreFile: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep the cluster in this file; without it, in memory.")
]
Token: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What clients must show; BAYPLAN_TOKEN in the environment does, too."),
]
TlsCertificate: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM).")
]
TlsKey: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="The key of --tls-cert (PEM).")]
SchedulerConfig: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration.")]
PluginDeadline: TypeAlias = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long one call of a plugin of yours may take.")
]
ServerSeed: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Of the choice among equally good nodes, and of names.")
]
Records: TypeAlias = Annotated[Level, typer.Option(help="How much of each decision is kept.")]
Retain: TypeAlias = Annotated[
    str, typer.Option(metavar="LIMITS", help="How much is kept: full=100000,bytes=512Mi,age=1h,summaries=500000.")
]
Annotations: TypeAlias = Annotated[
    bool, typer.Option("--annotations", help="Write results on pods, as kube-scheduler-simulator does.")
]
WithScheduler: TypeAlias = Annotated[
    bool, typer.Option("--scheduler/--no-scheduler", help="Without, all pods are left to schedulers outside.")
]
WithControllers: TypeAlias = Annotated[
    bool, typer.Option("--controllers/--no-controllers", help="Without, a kube-controller-manager outside works.")
]
WithKubelet: TypeAlias = Annotated[
    bool, typer.Option("--kubelet/--no-kubelet", help="Without, nodes have kubelets of their own.")
]
RunTime: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="DURATION", help="Run time of new pods with restartPolicy Never or OnFailure; forever for no end."
    ),
]
Speed: TypeAlias = Annotated[
    float, typer.Option(metavar="X", help="How fast the cluster's clock goes; 1 is real time.")
]
Paused: TypeAlias = Annotated[bool, typer.Option("--paused", help="Let the clock stand still at first.")]
Once: TypeAlias = Annotated[bool, typer.Option("--once", help="End after the report on what was loaded.")]
AllowOrigin: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin", metavar="ORIGIN", help="Origin of another web page that may write. Can be repeated."
    ),
]
RateLimit: TypeAlias = Annotated[
    float, typer.Option(metavar="N", help="Requests a second that one client may send; 0 for any number.")
]
