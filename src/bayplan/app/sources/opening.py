"""Open the source that a user names: one way for all commands and for the library."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from bayplan.analysis.export import is_result
from bayplan.app.sources.cluster_source import ClusterSource, SourceKind, SourceOptions
from bayplan.base.errors import InputError


def source_kind(options: SourceOptions) -> SourceKind | None:
    """Return what kind of source options name; None for files, whose content shows whether they are a dump or manifests.

    Raises:
        InputError: nothing is named, or sources that don't go together.
    """
    paths = list(options.paths)
    if options.context or (options.kubeconfig is not None and not paths):
        if paths:
            got = f"{paths[0]} and --context {options.context}".strip()
            raise InputError("source", got=got, wanted="one source: paths, a URL, or --context NAME")
        return SourceKind.CLUSTER
    if options.kubeconfig is not None:
        raise InputError(
            "--kubeconfig", got=f"{options.kubeconfig} and {paths[0]}", wanted="one source", hint="no paths"
        )
    if not paths:
        wanted = "manifests, a dump, a result directory, http://... of a running Bayplan, or --context NAME"
        raise InputError("source", got="none", wanted=wanted, hint="--context NAME for a live cluster")
    for kind, found in (
        (SourceKind.SERVER, [path for path in paths if path.startswith(("http://", "https://"))]),
        (SourceKind.RESULT, [path for path in paths if path != "-" and is_result(Path(path))]),
    ):
        if found and len(paths) > 1:
            raise InputError(
                "source", got=f"{found[0]} and {len(paths) - 1} more", wanted=f"one {kind}, or files alone"
            )
        if found:
            return kind
    return None


def open_source(options: SourceOptions, *, stdin: BinaryIO | None = None) -> ClusterSource:
    """Read the present state of a cluster.

    No time passes in what was in a cluster; manifests that never were in one are applied, and get `options.applied_ns` of virtual
    time, so that controllers make their pods and the scheduler places them.

    Args:
        options: see `SourceOptions`.
        stdin: what the path ``-`` reads.

    Raises:
        InputError: the source can't be read, or does not let us list nodes and pods.
    """
    kind = source_kind(options)
    # Each imports a lot that the others don't need.
    if kind is SourceKind.CLUSTER:
        from bayplan.app.sources.api_source import open_cluster

        return open_cluster(options)
    if kind is SourceKind.SERVER:
        from bayplan.app.sources.api_source import open_server

        return open_server(options)
    if kind is SourceKind.RESULT:
        from bayplan.app.sources.result_source import open_result_source

        return open_result_source(options)
    from bayplan.app.sources.file_source import open_files

    return open_files(options, stdin=stdin)
