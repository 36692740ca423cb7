"""Load several inputs at once: manifests and traces, distinguished by their content."""

from collections.abc import Sequence
from typing import BinaryIO

import msgspec

from bayplan.formats import openb
from bayplan.formats.files import InputFile, find_files, read_bytes
from bayplan.formats.manifest import Manifest
from bayplan.formats.manifests import Progress, load_files
from bayplan.formats.trace import Trace


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """The loaded input: all manifests together, and all traces together.

    Attributes:
        manifest: empty if no manifests were given.
        trace: None if no trace was given.
    """

    manifest: Manifest
    trace: Trace | None


def load_inputs(
    paths: Sequence[str],
    *,
    stdin: BinaryIO | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Inputs:
    """Read manifests and traces, e.g. `nodes.csv pods.csv extra.yaml`.

    A `.csv` file is a table of a trace, identified by its header (see `bayplan.formats.openb`); everything else is a
    manifest. Pods of manifests may be bound to nodes of the trace.

    Args:
        paths: see `bayplan.formats.files.find_files`; `-` is a manifest.
        stdin, strict, progress: see `bayplan.formats.manifests.load`.

    Raises:
        InputError: see `bayplan.formats.manifests.load` and `bayplan.formats.openb.load`.
    """
    manifests: list[InputFile] = []
    reader: openb.Reader | None = None
    for file in find_files(paths):
        if file.suffix == ".csv":
            reader = reader or openb.Reader()
            reader.read(file, read_bytes(file))
        else:
            manifests.append(file)
    trace = reader.trace if reader is not None else None
    names = frozenset(node.metadata.name for node in trace.nodes) if trace is not None else frozenset()
    manifest = load_files(manifests, stdin=stdin, strict=strict, progress=progress, known_nodes=names)
    return Inputs(manifest=manifest, trace=trace)
