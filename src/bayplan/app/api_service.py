"""Assembles a server from options and files: a Kubernetes API, with the cluster and the scheduler behind it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec

from bayplan.analysis.grouped_problems import group_messages
from bayplan.apiserver.http.server import ApiServer, ServerOptions
from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.rest.loading import Loaded, load_documents
from bayplan.apiserver.validation.formats import labels
from bayplan.app.metrics_page import MetricsPage
from bayplan.app.simulator_server import SimulatorOptions, SimulatorServer
from bayplan.base.clock import Clock
from bayplan.base.plain_data import part
from bayplan.controllers.revisions import unknown_revisions
from bayplan.formats.inputs import read_objects
from bayplan.formats.manifest import PlainObject
from bayplan.http_api.application import Service as OwnApi
from bayplan.objects.workloads import DaemonSet
from bayplan.ui.application import Page


class Service:
    """A server for a simulator, not yet running.

    Args:
        server: the HTTP server.
        simulator: the simulator that it serves.
        loaded: the result of loading files.
        notes: what the controllers will do with loaded objects that the user may not expect.

    Attributes:
        own_api: Bayplan's own API for the simulator.
    """

    def __init__(
        self, server: ApiServer, simulator: SimulatorServer, loaded: Loaded, notes: Sequence[str] = ()
    ) -> None:
        self.server = server
        self.simulator = simulator
        self.loaded = loaded
        self.notes = notes
        self.own_api = OwnApi(
            simulator,
            token=server.options.token,
            allowed_origins=server.options.allowed_origins,
            until_durable=server.until_durable,
        )
        server.mount(Page())
        server.mount(self.own_api, on_end=self.own_api.end_streams)
        server.mount(MetricsPage(simulator.metrics, token=server.options.token))

    def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Serve until SIGINT or SIGTERM.

        Args:
            on_ready: the function to call on the event loop once requests are accepted.

        Raises:
            InputError: a write of a durable store to disk failed.
        """

        def ready() -> None:
            self.simulator.start()
            self.own_api.start()
            if on_ready is not None:
                on_ready()

        try:
            self.server.run(on_ready=ready)
        finally:
            self.own_api.close()
            self.simulator.stop()

    def close(self) -> None:
        """Close a server that is not running."""
        self.own_api.close()
        self.simulator.stop()
        self.server.close()


def make_service(
    options: ServerOptions, simulator_options: SimulatorOptions, paths: Sequence[str], clock: Clock | None = None
) -> Service:
    """Return a server with a simulator, whose cluster is loaded from files.

    Args:
        options: the options of the server.
        simulator_options: the options of the simulator.
        paths: manifests and dumps, see `bayplan.formats.files.find_files`; if there are none, the cluster starts empty.
        clock: the clock of the cluster; real time by default.

    Raises:
        InputError: an option, the address, the store, the configuration, a plugin or a document is invalid.
    """
    clock = clock or Clock()
    if options.certificate is not None:
        bridge = replace(simulator_options.bridge, certificate=options.certificate.read_text())
        simulator_options = msgspec.structs.replace(simulator_options, bridge=bridge)
    server, loaded = make_api_server(options, paths, clock.seconds)
    try:
        simulator = SimulatorServer(server.api, simulator_options, clock)
    except BaseException:
        server.close()
        raise
    return Service(server, simulator, loaded, _revision_notes(simulator) if loaded.counts else ())


def _revision_notes(simulator: SimulatorServer) -> list[str]:
    """Return lines about the DaemonSets whose pods the controllers replace at the start."""
    if not simulator.options.bridge.controllers:
        return []
    store = simulator.bridge.store
    found = unknown_revisions(store.all(DaemonSet), store.pods.values())
    return group_messages((f"DaemonSet {item.key}", "", problem) for item, problem in found).lines()


def make_api_server(
    options: ServerOptions, paths: Sequence[str], clock: Callable[[], float] | None = None
) -> tuple[ApiServer, Loaded]:
    """Return an API server without controllers or scheduler, and the result of loading the files into it.

    Args:
        options: the options of the server.
        paths: see `make_service`.
        clock: the function that returns the time in seconds since 1970; None for the system clock.

    Raises:
        InputError: an option, the address, the store or a document is invalid.
    """
    server = ApiServer(options) if clock is None else ApiServer(options, clock=clock)
    try:
        loaded = _load(server, paths) if paths else Loaded()
    except BaseException:
        server.close()
        raise
    # No client has seen a revision yet, so none can ask for the history of loading.
    server.backend.store.compact()
    return server, loaded


def _load(server: ApiServer, paths: Sequence[str]) -> Loaded:
    """Load files, and report the invalid labels of objects with a uid, which are stored unchanged."""
    invalid: dict[str, list[str]] = {}

    def checked() -> Iterator[PlainObject]:
        for each in read_objects(paths, stdin=sys.stdin.buffer):
            metadata, causes = part(each.value, "metadata"), list[Cause]()
            if metadata.get("uid"):  # Loading checks the labels of all others.
                labels(metadata.get("labels"), "metadata.labels", causes)
            if causes:
                name = f"{each.where} {each.value.get('kind')}/{metadata.get('name')}"
                invalid[name] = [f"{cause.field}: {cause.message}, but loaded" for cause in causes]
            yield each

    loaded = load_documents(server.backend, checked())
    for name, problems in invalid.items():
        loaded.unknown[name] = [*loaded.unknown.get(name, ()), *problems]
    return loaded
