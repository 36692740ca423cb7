"""Options that the commands import, sync, record and replay share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayplan.analysis.grouped_problems import group_messages
from bayplan.base.errors import InputError
from bayplan.base.go_text.durations import read_duration
from bayplan.cli.number_options import finite

if TYPE_CHECKING:
    from bayplan.app.cluster_sync import ClusterOptions
    from bayplan.sync.policy import SyncPolicy
    from bayplan.sync.session import SyncStatus

From = Annotated[
    Path | None,
    typer.Option("--from", metavar="KUBECONFIG", help="Kubeconfig of the source cluster. [default: as for kubectl]"),
]
Context = Annotated[
    str | None, typer.Option(metavar="NAME", help="Context in the source's kubeconfig. [default: the current one]")
]
To = Annotated[
    Path, typer.Option("--to", metavar="KUBECONFIG", help="Kubeconfig of the Bayplan server, which is written to.")
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace to read; repeatable. [default: all]"),
]
Selector = Annotated[
    str, typer.Option(metavar="LABELS", help="Label selector for pods, as for kubectl get -l. [default: all]")
]
Reschedule = Annotated[bool, typer.Option("--reschedule", help="Also reschedule pods that already run in the source.")]
UpdateScheduled = Annotated[
    bool, typer.Option("--update-scheduled", help="Also copy changes to pods after the source has scheduled them.")
]
SourceVolumes = Annotated[
    bool,
    typer.Option(
        "--source-volumes",
        help="Copy volumes of WaitForFirstConsumer claims instead of provisioning them.",
    ),
]
DEFAULT_QPS = 50.0
"""Default rate limit for requests to the source, per second; equal to that of `ClusterOptions`, as a test checks."""

Qps = Annotated[
    float,
    typer.Option(
        metavar="N",
        callback=finite,
        help=f"Requests per second to the source; negative for no limit. [default: {DEFAULT_QPS:g}]",
        show_default=False,
    ),
]

DEFAULT_TO = Path("bayplan.kubeconfig")
"""The kubeconfig that ``bayplan up`` writes."""


def source_options(kubeconfig: Path | None, context: str | None, qps: float) -> ClusterOptions:
    """Return the options of the connection to the source."""
    from bayplan.app.cluster_sync import ClusterOptions

    return ClusterOptions(kubeconfig=kubeconfig, context=context, qps=qps, burst=max(int(2 * qps), 1), option="--from")


def target_options(kubeconfig: Path) -> ClusterOptions:
    """Return the options of the connection to the target server, which has no rate limit.

    Raises:
        InputError: the file does not exist.
    """
    from bayplan.app.cluster_sync import ClusterOptions

    if not kubeconfig.is_file():
        hint = "bayplan up, which writes bayplan.kubeconfig"
        raise InputError(
            "--to",
            got=f"{str(kubeconfig)!r}, which does not exist",
            wanted="the kubeconfig of a Bayplan server",
            hint=hint,
        )
    return ClusterOptions(kubeconfig=kubeconfig, qps=-1, option="--to")


def sync_policy(
    namespaces: list[str] | None,
    selector: str,
    *,
    reschedule: bool = False,
    update_scheduled: bool = False,
    source_volumes: bool = False,
    follow: bool = True,
) -> SyncPolicy:
    """Return the policy of a sync or, without `follow`, of an import."""
    from bayplan.sync.policy import SyncPolicy

    return SyncPolicy(
        keep_nodes=not reschedule,
        update_scheduled_pods=update_scheduled,
        follow=follow,
        source_volumes=source_volumes,
        namespaces=tuple(namespaces or ()),
        selector=selector,
    )


def duration_seconds(text: str, option: str) -> float:
    """Return the seconds of a duration such as ``90s``.

    Raises:
        InputError: the text is not a duration; the message names the option.
    """
    try:
        return read_duration(text) / 1e9
    except InputError as problem:
        raise InputError(option, got=problem.got, wanted=problem.wanted, hint=problem.hint) from None


def show_status() -> Callable[[SyncStatus], None]:
    """Return a function that shows the progress: in one updated line of a terminal, else in a new line per change."""
    before = ""

    def show(status: SyncStatus) -> None:
        nonlocal before
        text = status_line(status)
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif text != before:
            print(text, file=sys.stderr, flush=True)
        before = text

    return show


def status_line(status: SyncStatus) -> str:
    """Return the progress of a sync as one line."""
    if not status.ready:
        return "reading the source"
    counts = f"{status.created:,} created, {status.updated:,} updated, {status.deleted:,} deleted"
    behind = f"; {status.waiting:,} to do, {status.lag_seconds:.1f} s behind" if status.waiting else ""
    problems = f"; {len(status.problems):,} could not be written" if status.problems else ""
    lost = f"; {next(iter(status.source.values()))}" if status.source else ""
    return counts + behind + problems + lost


def print_outcome(status: SyncStatus) -> None:
    """Print counts, skipped kinds, and objects that could not be written, grouped by reason."""
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(status_line(status))
    for kind, why in status.left_out.items():
        print(f"left out: {kind}: {why}")
    messages = ((str(problem.ref), problem.ref.name, problem.message) for problem in status.problems)
    for line in group_messages(messages).lines():
        print(f"not written: {line}")
