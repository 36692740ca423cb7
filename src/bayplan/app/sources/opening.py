"""Open the source that a user names: the single entry point for all commands and the library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from bayplan.analysis.export import is_result
from bayplan.app.sources.cluster_source import ClusterSource, SourceKind, SourceOptions
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError
from bayplan.formats.files import ADDRESS


def source_kind(options: SourceOptions) -> SourceKind | None:
    """Return the kind of source in the options, or None for files, whose content shows whether they are a dump or manifests.

    Raises:
        InputError: no source is given, or several that cannot be combined.
    """
    paths = list(options.paths)
    if options.context or (options.kubeconfig is not None and not paths):
        if paths:
            got = f"{paths[0]} and --context {options.context}".strip()
            raise InputError("source", got=got, wanted="one source: paths, a URL, or --context NAME")
        return SourceKind.CLUSTER
    if options.kubeconfig is not None:
        raise InputError(
            "--kubeconfig",
            got=f"{options.kubeconfig} and {paths[0]}",
            wanted="one source",
            hint="--kubeconfig without paths",
        )
    if not paths:
        wanted = "manifests, a dump, a result directory, http://... of a Bayplan server, or --context NAME"
        raise InputError("source", got="none", wanted=wanted, hint="--context NAME for a live cluster")
    for kind, found in (
        (SourceKind.SERVER, [path for path in paths if path.startswith(("http://", "https://"))]),
        (SourceKind.RESULT, [path for path in paths if path != "-" and is_result(Path(path))]),
    ):
        if found and len(paths) > 1:
            others = format_count(len(paths) - 1, "other source")
            raise InputError("source", got=f"{found[0]} and {others}", wanted=f"a single {kind}, or files only")
        if found:
            return kind
    for path in paths:
        if ADDRESS.fullmatch(path) and not os.path.lexists(path):
            raise InputError(f"{path}: no such file or folder", hint=f"http://{path} for a Bayplan server")
    return None


def check_options(options: object) -> None:
    """Raise an error with a suggestion if the value is not a `SourceOptions`.

    Raises:
        InputError: it is a path or another value.
    """
    if not isinstance(options, SourceOptions):
        shown = repr(options) if isinstance(options, str) else "..."
        got, hint = f"{type(options).__name__} {options!r:.60}", f"SourceOptions(paths=[{shown}])"
        raise InputError("open_source(options)", got=got, wanted="SourceOptions", hint=hint)


def open_source(options: SourceOptions, *, stdin: BinaryIO | None = None) -> ClusterSource:
    """Read the current state of a cluster.

    The objects of a dump stay unchanged; pods of manifests next to it are created and stay pending. Manifests without a
    dump are applied to an empty cluster, which runs for `options.applied_ns` of virtual time, so that controllers create
    pods and the scheduler places them.

    Args:
        options: see `SourceOptions`.
        stdin: the stream for the path ``-``.

    Raises:
        InputError: the source cannot be read, or does not allow listing nodes and pods.
    """
    check_options(options)
    kind = source_kind(options)
    # Each module imports packages that the other sources do not need.
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
