"""The verb ``extender``: plugins of ours, served as an HTTP extender for a stock kube-scheduler."""

import errno
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bayplan.app.extender_service import ExtenderOptions, ServedExtender, make_extender
from bayplan.base.errors import InputError
from bayplan.base.ports import check_port
from bayplan.cli.simulation_options import INPUT_HELP, FeatureGates
from bayplan.extender.server import extender_application


def extender(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help=f"The cluster, for a scheduler that sends names of nodes only, and for pods that run. {INPUT_HELP}",
        ),
    ] = None,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="FILE.py:CLASS[=WEIGHT]",
            help="A plugin to serve: of a file, or an installed or in-tree one by its name. Can be repeated.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration, for arguments of the plugins.")
    ] = None,
    feature_gates: FeatureGates = "",
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Where to listen; 0 takes a free one.")] = 8888,
    quiet: Annotated[bool, typer.Option("--quiet", help="Don't tell of requests.")] = False,
) -> None:
    """Serve plugins as an HTTP extender for a stock kube-scheduler.

    Filters answer the verb filter, scores the verb prioritize (the weighted mean, from 0 to 10), and preempt strikes out
    candidates that would fail the filters even without their victims. The lines that a KubeSchedulerConfiguration needs are
    printed at the start.

    Scheduler and extender agree on nodeCacheCapable: without it nodes come with each request, and plugins know of pods on
    them only what PATH says; with it names come, and PATH has the nodes.
    """
    if not plugin:
        raise InputError("--plugin", got="none", wanted="at least one plugin to serve", hint="FILE.py:Class")
    check_port(port)
    served = make_extender(
        ExtenderOptions(plugins=plugin, paths=paths or (), config=config, feature_gates=feature_gates)
    )
    serve(served, host, port, quiet=quiet, by_name=bool(paths))


def serve(served: ServedExtender, host: str, port: int, *, quiet: bool, by_name: bool) -> None:
    """Listen until the process is told to end. What is told goes to standard output, a line a request."""
    # Servers take a while to import, and only this function needs one.
    import uvicorn

    from bayplan.apiserver.http.graceful import GracefulServer
    from bayplan.apiserver.http.limits import HttpLimits
    from bayplan.apiserver.http.protocol import limited_protocol

    application = extender_application(served, asked=None if quiet else _tell)
    protocol = limited_protocol(HttpLimits())
    server = GracefulServer(uvicorn.Config(application, log_level="warning", proxy_headers=False, http=protocol))
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        got = f"{host} port {port}: {(problem.strerror or str(problem)).lower()}"
        hint = "--port 0" if problem.errno == errno.EADDRINUSE else ""
        raise InputError("--host and --port", got=got, wanted="an address to listen on", hint=hint) from None
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


def _tell(verb: str, arguments: Mapping[str, object], answer: object) -> None:
    pod = arguments.get("Pod")
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}" if isinstance(metadata, dict) else "?"
    print(f"{verb} {name}: {_told(verb, answer)}", file=sys.stdout, flush=True)


def _told(verb: str, answer: object) -> str:
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
