"""From files to an API that is ready to run."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from bayplan.apiserver.http.server import ServerOptions
from bayplan.app.api_service import make_api_server, make_service
from bayplan.app.scheduler_setup import SchedulerOptions
from bayplan.app.simulator_server import SimulatorOptions
from bayplan.base.errors import InputError
from bayplan.examples import example_path


def test_the_bundled_example_is_loaded() -> None:
    server, loaded = make_api_server(ServerOptions(port=0), [str(example_path("three-zones"))])
    try:
        assert loaded.counts["Node"] == len(server.backend.store.between("nodes"))
        assert loaded.unknown == {}
        assert server.url.startswith("http://127.0.0.1:")
    finally:
        server.close()


def test_an_invalid_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 3}\n")
    with pytest.raises(InputError, match=r"pods\.yaml.*cannot unmarshal number into Go struct field PodSpec"):
        make_api_server(ServerOptions(port=0), [str(path)])


def test_invalid_labels_of_a_dump_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "dump.yaml"
    path.write_text("{apiVersion: v1, kind: Node, metadata: {name: gke-a-x9z8, uid: u1, labels: {zone: not valid}}}\n")
    server, loaded = make_api_server(ServerOptions(port=0), [str(path)])
    server.close()
    (where, problems), *others = loaded.unknown.items()
    assert (where, others) == (f"{path}:1 Node/gke-a-x9z8", [])
    assert problems[0].startswith('metadata.labels: Invalid value: "not valid": a valid label must be')
    assert problems[0].endswith(", but loaded")


def test_a_service_listens_schedules_and_stops() -> None:
    options = SimulatorOptions(scheduler=SchedulerOptions(seed=3))
    service = make_service(ServerOptions(port=0), options, [str(example_path("three-zones"))])
    ready = threading.Event()
    thread = threading.Thread(target=service.run, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(60)
        end = time.monotonic() + 60
        while service.simulator.engine.status().scheduled < 50:
            assert time.monotonic() < end
            time.sleep(0.05)
        with urllib.request.urlopen(f"{service.server.url}/bayplan/v1/decisions?limit=200") as answer:
            assert answer.status == 200
            assert b'"scheduled"' in answer.read()
    finally:
        service.server.stop()
        thread.join(30)
    assert not thread.is_alive()
    assert not [each for each in threading.enumerate() if each.name == "bayplan-engine"]


def test_invalid_options_do_not_occupy_the_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = SimulatorOptions(scheduler=SchedulerOptions(config=tmp_path / "nowhere.yaml"))
    with pytest.raises(InputError, match=r"nowhere\.yaml"):
        make_service(ServerOptions(port=port), options, [])
    with socket.create_server(("127.0.0.1", port)):
        pass
