"""Probes and metrics over HTTP."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.live.health import HealthServer
from tests.apiserver.serving import ask


def asked(paths: list[str], problem: Callable[[], str] = lambda: "") -> Mapping[str, tuple[int, str]]:
    """Return the responses of a server whose check `leaderElection` may fail."""

    async def run() -> Mapping[str, tuple[int, str]]:
        checks = {"ping": lambda: "", "leaderElection": problem}
        server = HealthServer({"livez": checks, "readyz": checks}, lambda: b"a 1\n", listen="127.0.0.1", port=0)
        server.start()
        try:
            found = {}
            for path in paths:
                status, body = await asyncio.to_thread(ask, f"{server.url}/{path}")
                found[path] = (status, body.decode())
            return found
        finally:
            await server.stop()

    return asyncio.run(run())


def test_probes_and_metrics_succeed() -> None:
    assert asked(["livez", "readyz?verbose", "livez/ping", "metrics"]) == {
        "livez": (200, "ok"),
        "readyz?verbose": (200, "[+]ping ok\n[+]leaderElection ok\nreadyz check passed\n"),
        "livez/ping": (200, "ok"),
        "metrics": (200, "a 1\n"),
    }


def test_a_failed_health_check_is_reported() -> None:
    failed = "[+]ping ok\n[-]leaderElection failed: lease is over\nlivez check failed\n"
    assert asked(["livez", "livez/ping", "livez?exclude=leaderElection", "livez/other"], lambda: "lease is over") == {
        "livez": (500, failed),
        "livez/ping": (200, "ok"),
        "livez?exclude=leaderElection": (200, "ok"),
        "livez/other": (404, "Not Found"),
    }


def test_probes_succeed_without_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert asked(["livez"]) == {"livez": (200, "ok")}


def test_an_address_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=r"got 127\.0\.0\.1 port \d+: address already in use; try"):
            HealthServer({}, bytes, listen="127.0.0.1", port=port)


@pytest.mark.parametrize(
    ("port", "certificate", "key", "want"),
    [
        pytest.param(70_000, None, None, "--port: .*70000", id="an invalid port"),
        pytest.param(0, "cert.pem", None, r"--tls-cert and --tls-key: .*No such file", id="a missing certificate"),
        pytest.param(
            0, None, "key.pem", "expected both or neither, got only --tls-key", id="a key without its certificate"
        ),
    ],
)
def test_invalid_server_options_are_refused(
    tmp_path: Path, port: int, certificate: str | None, key: str | None, want: str
) -> None:
    with pytest.raises(InputError, match=want):
        HealthServer(
            {},
            bytes,
            listen="127.0.0.1",
            port=port,
            certificate=None if certificate is None else tmp_path / certificate,
            key=None if key is None else tmp_path / key,
        )
