"""The command ``record``: record the changes of a cluster to a file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bayplan.base.background_output import background_output
from bayplan.base.output_paths import check_output_file
from bayplan.cli.sync_options import (
    DEFAULT_QPS,
    Context,
    From,
    Namespaces,
    Qps,
    Selector,
    duration_seconds,
    source_options,
    sync_policy,
)


def record(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; compressed if its name ends in .gz.")],
    from_: From = None,
    context: Context = None,
    namespace: Namespaces = None,
    selector: Selector = "",
    duration: Annotated[
        str, typer.Option(metavar="DURATION", help="Time to record, such as 30m. [default: until Ctrl-C]")
    ] = "",
    redact: Annotated[
        bool, typer.Option("--redact", help="Keep only what scheduling reads: no environment, commands or annotations.")
    ] = False,
    qps: Qps = DEFAULT_QPS,
) -> None:
    """Record the changes of a cluster to a file.

    The file begins with everything that scheduling reads, followed by each change with its time. To play it, run bayplan replay.

    Example: bayplan record monday.jsonl.gz --duration 1h
    """
    from bayplan.app.cluster_sync import record_cluster

    check_output_file(path, "FILE")
    seconds = duration_seconds(duration, "--duration") if duration else None
    shown = 0

    def print_progress(changes: int) -> None:
        nonlocal shown
        if changes != shown:
            shown = changes
            end = "" if sys.stderr.isatty() else "\n"
            print(f"\r{changes:,} changes" if not end else f"{changes:,} changes", end=end, file=sys.stderr, flush=True)

    source = source_options(from_, context, qps)
    with background_output():
        count = record_cluster(
            source, path, sync_policy(namespace, selector), redact=redact, seconds=seconds, progress=print_progress
        )
        if sys.stderr.isatty():
            print(file=sys.stderr)
        print(f"{path}: {count:,} lists and changes, {path.stat().st_size:,} bytes")
