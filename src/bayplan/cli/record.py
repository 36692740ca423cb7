"""The verb ``record``: what happens in a cluster, to a file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bayplan.base.output_paths import check_output_file
from bayplan.cli.sync_options import (
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
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; packed where the name ends in .gz.")],
    from_: From = None,
    context: Context = None,
    namespace: Namespaces = None,
    selector: Selector = "",
    duration: Annotated[str, typer.Option(metavar="TIME", help="How long, such as 30m; until Ctrl-C without.")] = "",
    redact: Annotated[
        bool, typer.Option("--redact", help="Keep only what scheduling reads: no environment, commands, annotations.")
    ] = False,
    qps: Qps = 50.0,
) -> None:
    """Record what happens in a cluster to a file.

    First everything that scheduling reads as it is, then each change with its time. `bayplan replay` plays it.
    """
    from bayplan.app.cluster_sync import record_cluster

    check_output_file(path, "FILE")
    seconds = duration_seconds(duration, "--duration") if duration else None
    shown = 0

    def tell(changes: int) -> None:
        nonlocal shown
        if changes != shown:
            shown = changes
            end = "" if sys.stderr.isatty() else "\n"
            print(f"\r{changes:,} changes" if not end else f"{changes:,} changes", end=end, file=sys.stderr, flush=True)

    source = source_options(from_, context, qps)
    count = record_cluster(source, path, sync_policy(namespace, selector), redact=redact, seconds=seconds, tell=tell)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"{path}: {count:,} lists and changes, {path.stat().st_size:,} bytes")
