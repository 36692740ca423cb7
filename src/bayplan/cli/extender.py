"""The command ``extender``: serve plugins as an HTTP extender for a stock kube-scheduler."""

import errno
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bayplan.app.extender_service import ExtenderOptions, ServedExtender, make_extender
from bayplan.base.background_output import background_output
from bayplan.base.errors import InputError
from bayplan.base.ports import check_port
from bayplan.cli.simulation_options import FeatureGates
from bayplan.extender.server import extender_application


def extender(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Manifests or dump with the nodes and running pods of the cluster.",
        ),
    ] = None,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="PLUGIN",
            help="Plugin to serve: FILE.py:CLASS or its name, optionally =WEIGHT; repeatable. [required]",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="KubeSchedulerConfiguration with arguments for the plugins. [default: none]"),
    ] = None,
    feature_gates: FeatureGates = "",
    listen: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Port to listen on; 0 picks a free one.")] = 8888,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no line per request.")] = False,
) -> None:
    """Serve plugins as an HTTP extender for a stock kube-scheduler.

    The verb filter runs the plugins' filters, prioritize returns the weighted mean of their scores (0 to 10), and preempt
    removes candidates that would fail the filters even without their victims. The extender entry for a
    KubeSchedulerConfiguration is printed at the start.

    With PATH, the entry sets nodeCacheCapable, so kube-scheduler sends only the names of nodes. Without PATH, it sends whole
    nodes, and plugins see no running pods.

    Example: bayplan extender cluster.yaml --plugin mine.py:Mine
    """
    if not plugin:
        raise InputError("--plugin", got="none", wanted="at least one plugin to serve", hint="FILE.py:CLASS")
    check_port(port)
    served = make_extender(
        ExtenderOptions(plugins=plugin, paths=paths or (), config=config, feature_gates=feature_gates)
    )
    with background_output():
        serve(served, listen, port, quiet=quiet, by_name=bool(paths))


def serve(served: ServedExtender, host: str, port: int, *, quiet: bool, by_name: bool) -> None:
    """Serve requests until the process is terminated; unless `quiet`, print a line for each on standard output."""
    # Imported here, because servers are slow to import, and only this function needs one.
    import uvicorn

    from bayplan.apiserver.http.graceful import GracefulServer
    from bayplan.apiserver.http.limits import ConnectionTable, HttpLimits
    from bayplan.apiserver.http.protocol import limited_protocol

    application = extender_application(served, on_request=None if quiet else _print_request)
    protocol = limited_protocol(ConnectionTable(HttpLimits()))
    server = GracefulServer(uvicorn.Config(application, log_level="warning", proxy_headers=False, http=protocol))
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        got = f"{host} port {port}: {(problem.strerror or str(problem)).lower()}"
        hint = "--port 0" if problem.errno == errno.EADDRINUSE else ""
        raise InputError("--listen and --port", got=got, wanted="an available address and port", hint=hint) from None
    names = ", ".join(custom.plugin.name for custom in served.plugins)
    print(f"serving {names}; in a KubeSchedulerConfiguration:\n")
    name = f"[{host}]" if ":" in host else host
    print(_declaration(f"http://{name}:{listening.getsockname()[1]}", by_name=by_name), flush=True)
    server.run(sockets=[listening])


def _declaration(url: str, *, by_name: bool) -> str:
    return f"""\
extenders:
  - urlPrefix: {url}
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    weight: 1
    nodeCacheCapable: {str(by_name).lower()}
"""


def _print_request(verb: str, arguments: Mapping[str, object], answer: object) -> None:
    pod = arguments.get("Pod")
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}" if isinstance(metadata, dict) else "?"
    print(f"{verb} {name}: {_summary(verb, answer)}", file=sys.stdout, flush=True)


def _summary(verb: str, answer: object) -> str:
    if isinstance(answer, list):
        return ", ".join(f"{entry['Host']} {entry['Score']}" for entry in answer[:8])
    if not isinstance(answer, dict):
        return ""
    if answer.get("Error"):
        return str(answer["Error"])
    if verb == "preempt":
        return f"{len(answer['NodeNameToMetaVictims'])} candidates left"
    nodes, names = answer.get("Nodes"), answer.get("NodeNames")
    passing = len(nodes["items"]) if isinstance(nodes, dict) else len(names or ())
    failing = len(answer["FailedNodes"]) + len(answer["FailedAndUnresolvableNodes"])
    return f"{passing} of {passing + failing} nodes pass"
