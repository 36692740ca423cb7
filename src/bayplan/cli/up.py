"""The verb ``up``: a Kubernetes API on this machine, in memory or in a file, with manifests loaded."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from bayplan.base.errors import InputError

PATH_HELP = (
    "What the cluster holds at the start: manifests or dumps (YAML, JSON, gzip; files, folders, patterns, - for standard "
    "input)."
)


def up(
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH", help=PATH_HELP)] = None,
    port: Annotated[int, typer.Option(metavar="N", help="Where to listen; 0 takes a free one.")] = 6443,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; beyond this machine only with --token.")
    ] = "127.0.0.1",
    write_kubeconfig: Annotated[
        Path, typer.Option(metavar="FILE", help="Write a kubeconfig here, readable by you only.")
    ] = Path("bayplan.kubeconfig"),
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the cluster in this file; without it, in memory.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What clients must show; BAYPLAN_TOKEN in the environment does, too."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="The key of --tls-cert (PEM).")] = None,
) -> None:
    """Serve the Kubernetes API for kubectl, clients and schedulers.

    Objects are stored, defaulted, validated and watched as kube-apiserver does; nothing runs them yet: no controller,
    no kubelet, no scheduler. Ctrl-C ends it.
    """
    # Servers take a while to import, and only this verb needs one.
    from bayplan.apiserver.http.server import ServerOptions
    from bayplan.apiserver.http.server import write_kubeconfig as write
    from bayplan.apiserver.rest.loading import summary_of
    from bayplan.app.api_service import make_api_server

    options = ServerOptions(
        listen=listen,
        port=port,
        token=token if token is not None else os.environ.get("BAYPLAN_TOKEN", ""),
        certificate=tls_cert,
        key=tls_key,
        store=store,
    )
    if not write_kubeconfig.absolute().parent.is_dir():
        where = str(write_kubeconfig.parent)
        raise InputError("folder isn't there", where=where, wanted="a folder for --write-kubeconfig")
    server, loaded = make_api_server(options, paths or ())
    for where, problems in loaded.unknown.items():
        print(f"{where}: {', '.join(problems)}", file=sys.stderr)
    write(write_kubeconfig, server.kubeconfig())

    def tell() -> None:
        if paths:
            print(f"loaded {summary_of(loaded)}")
        print(f"serving the Kubernetes API at {server.url}")
        print(f"try: kubectl --kubeconfig {write_kubeconfig} get nodes", flush=True)

    server.run(on_ready=tell)
