"""From options and files to a Kubernetes API that is ready to run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from bayplan.apiserver.http.server import ApiServer, ServerOptions
from bayplan.apiserver.rest.loading import Loaded, Source, load_documents
from bayplan.formats.documents import read_documents
from bayplan.formats.files import find_files, read_bytes


def make_api_server(options: ServerOptions, paths: Sequence[str]) -> tuple[ApiServer, Loaded]:
    """Return a server with what the files hold, and what that was.

    Args:
        options: where and how to serve.
        paths: manifests and dumps, see `bayplan.formats.files.find_files`; none leaves the cluster empty.

    Raises:
        InputError: options, address, store or a document that can't be used.
    """
    server = ApiServer(options)
    try:
        loaded = load_documents(server.backend, _documents(paths)) if paths else Loaded()
    except BaseException:
        server.close()
        raise
    return server, loaded


def _documents(paths: Sequence[str]) -> Iterator[Source]:
    for file in find_files(paths):
        for document in read_documents(read_bytes(file, stdin=sys.stdin.buffer), file.name, suffix=file.suffix):
            value = document.value
            if isinstance(value, dict) and document.list_type is not None and "kind" not in value:
                version, kind = document.list_type
                value = {"apiVersion": version, "kind": kind.removesuffix("List"), **value}
            yield Source(value, str(document.source))
