"""Kubeconfigs: the cluster's address and the user's credentials in all supported forms, and errors in one line."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio.config.config_exception import ConfigException

from bayplan.base.errors import InputError
from bayplan.client import cluster_access
from bayplan.client.cluster_access import ClusterAccess, open_access

Document = dict[str, Any]


def kubeconfig(folder: Path, user: Document, cluster: Document | None = None, **more: Document) -> Path:
    """Write a kubeconfig with one context, and others that are not current."""
    users = [{"name": "u", "user": user}, *({"name": name, "user": each} for name, each in more.items())]
    contexts = [{"name": each["name"], "context": {"cluster": "c", "user": each["name"]}} for each in users]
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster or {"server": "http://127.0.0.1:1/"}}],
        "users": users,
        "contexts": contexts,
        "current-context": "u",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def plugin(folder: Path, body: str) -> Document:
    """Write an exec plugin, and return a kubeconfig user that gets its credentials from it."""
    path = folder / "plugin.py"
    path.write_text(f"#!{sys.executable}\nimport json, sys\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}}


def answer(**status: str) -> str:
    found = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(json.dumps(found))})"


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


def opened(path: Path | None, context: str | None = None) -> tuple[ClusterAccess, str | None]:
    async def run() -> tuple[ClusterAccess, str | None]:
        access = await open_access(path, context)
        return access, await access.authorization()

    return asyncio.run(run())


def test_tokens_passwords_and_plugins_become_an_authorization_header(tmp_path: Path) -> None:
    users = {
        "token": {"token": "abc"},
        "password": {"username": "me", "password": "secret"},
        "plugin": plugin(tmp_path, answer(token="xyz")),
        "nobody": {},
    }
    path = kubeconfig(tmp_path, {"token": "current"}, None, **users)
    (tmp_path / "token").write_text("from a file\n")
    found = {name: opened(path, name)[1] for name in users}
    assert found["token"] == "Bearer abc"
    assert found["plugin"] == "Bearer xyz"
    assert found["nobody"] is None
    assert (found["password"] or "").lower().startswith("basic ")
    access, current = opened(path)
    assert (access.url, access.tls, current) == ("http://127.0.0.1:1", None, "Bearer current")
    assert (access.context, opened(path, "nobody")[0].context) == ("u", "nobody")


def test_certificates_become_a_tls_context(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(cert), "tls-server-name": "localhost"}
    path = kubeconfig(tmp_path, {"client-certificate": str(cert), "client-key": str(key)}, cluster)
    access, authorization = opened(path)
    assert authorization is None
    assert access.server_name == "localhost"
    assert access.tls is not None
    assert access.tls.verify_mode is ssl.CERT_REQUIRED
    insecure = kubeconfig(tmp_path, {}, {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True})
    assert opened(insecure)[0].tls is not None
    tls = opened(insecure)[0].tls
    assert tls is not None
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param("sys.exit('token expired:\\n  log in again')", "1. token expired: log in again", id="two lines"),
        pytest.param("""sys.exit("can't read it")""", "1. can't read it", id="an apostrophe"),
        pytest.param("""sys.exit("can't read the \\"key\\"")""", '1. can\'t read the "key"', id="both kinds of quotes"),
        pytest.param("sys.stderr.buffer.write('caf\u00e9 100%d \\\\ '.encode() + b'\\xff'); sys.exit(3)",
            "3. caf\u00e9 100%d \\ \ufffd", id="other characters"),
        pytest.param("sys.exit(2)", "2", id="no output"),
    ],
)  # fmt: skip
def test_the_error_output_of_an_exec_plugin_is_shown_as_text(body: str, want: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        opened(kubeconfig(tmp_path, plugin(tmp_path, body)))
    assert f"got exec: process returned {want}" in str(refused.value).removesuffix("; ")


def test_credentials_of_two_clusters_load_concurrently(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each waits in its plugin until the other one has started, as both sides of a sync may renew their credentials."""
    folders = {name: tmp_path / name for name in ("good", "bad")}
    for folder in folders.values():
        folder.mkdir()
    wait = "import pathlib, time\npathlib.Path({!r}).touch()\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.01)\n"
    begun = {name: str(folder / "begun") for name, folder in folders.items()}
    bad = kubeconfig(
        folders["bad"], plugin(folders["bad"], wait.format(begun["bad"], begun["good"]) + "sys.exit('no')")
    )
    body = wait.format(begun["good"], str(folders["bad"] / "ended")) + answer(token="xyz")
    good = kubeconfig(folders["good"], plugin(folders["good"], body))

    async def load_bad() -> None:
        try:
            await open_access(bad)
        finally:
            (folders["bad"] / "ended").touch()

    async def run() -> list[object]:
        return [*await asyncio.gather(open_access(good), load_bad(), return_exceptions=True)]

    access, problem = asyncio.run(run())
    assert isinstance(access, ClusterAccess), access
    assert isinstance(problem, InputError)
    assert problem.where == str(bad)
    logger = logging.getLogger("kubernetes.aio.config.kube_config")
    assert (logger.propagate, logger.handlers, caplog.records) == (True, [], [])


def test_the_default_kubeconfig_is_read_from_the_environment_or_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": "named"})))
    assert opened(None)[1] == "Bearer named"
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    (tmp_path / "kubeconfig").rename(tmp_path / ".kube" / "config")
    assert opened(None)[1] == "Bearer named"


@pytest.mark.parametrize(
    ("write", "want"),
    [
        pytest.param(lambda folder: folder / "absent", "no such kubeconfig", id="there is none"),
        pytest.param(
            lambda folder: kubeconfig(folder, plugin(folder, "sys.exit(3)")), "process returned 3", id="a plugin fails"
        ),
        pytest.param(
            lambda folder: kubeconfig(folder, plugin(folder, "print('hello')")), "failed to decode", id="invalid output"
        ),
        pytest.param(
            lambda folder: kubeconfig(
                folder, {}, {"server": "https://h", "certificate-authority-data": "bm8gY2VydGlmaWNhdGU="}
            ),
            "certificates", id="an invalid certificate",
        ),
        pytest.param(lambda folder: kubeconfig(folder, {}, {"server": "https://h:abc"}), "server:", id="an invalid port"),
        pytest.param(lambda folder: kubeconfig(folder, {}, {"server": 5}), "kubeconfig", id="a number as server"),
        pytest.param(
            lambda folder: kubeconfig(folder, {}, {"server": "http://h", "proxy-url": 5}), "proxy-url:", id="or as proxy"
        ),
        pytest.param(lambda folder: _text(folder, "current-context: x\n"), "kubeconfig", id="it names no cluster"),
        pytest.param(lambda folder: _text(folder, "{: not yaml"), "kubeconfig", id="it is not YAML"),
        pytest.param(lambda folder: _text(folder, "[]"), "kubeconfig", id="it is a list"),
        pytest.param(lambda folder: _text(folder, ""), "kubeconfig", id="it is empty"),
    ],
)  # fmt: skip
def test_an_unusable_kubeconfig_is_refused_in_one_line(write: Any, want: str, tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(InputError) as refused:
        opened(path)
    assert want in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def _text(folder: Path, text: str) -> Path:
    path = folder / "kubeconfig"
    path.write_text(text)
    return path


def test_a_missing_context_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="other"):
        opened(kubeconfig(tmp_path, {}), "other")


def test_a_missing_kubeconfig_error_suggests_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match="--kubeconfig FILE"):
        opened(None)


def test_credentials_are_refreshed_at_most_once_per_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = tmp_path / "count"
    counter.write_text("0")
    body = f"""
count = int(open({str(counter)!r}).read()) + 1
open({str(counter)!r}, "w").write(str(count))
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": str(count)}}}}))
"""
    path = kubeconfig(tmp_path, plugin(tmp_path, body))

    async def run() -> list[object]:
        access = await open_access(path)
        found: list[object] = [await access.authorization(), await access.refresh(time.monotonic())]
        monkeypatch.setattr(cluster_access, "REFRESH_SECONDS", 0.0)
        return [*found, await access.refresh(time.monotonic()), await access.authorization()]

    assert asyncio.run(run()) == ["Bearer 1", False, True, "Bearer 2"]


def test_all_requests_that_were_rejected_together_use_the_refreshed_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig(tmp_path, {"token": "old"})

    async def run() -> list[object]:
        access = await open_access(path)
        kubeconfig(tmp_path, {"token": "new"})
        monkeypatch.setattr(cluster_access, "REFRESH_SECONDS", 0.0)
        used_at = time.monotonic()
        refreshed = [await access.refresh(used_at)]
        monkeypatch.undo()
        return [*refreshed, await access.refresh(used_at), await access.refresh(time.monotonic())]

    assert asyncio.run(run()) == [True, True, False]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # The library uses options of aiohttp that are deprecated.
def test_an_unavailable_oidc_provider_is_reported_and_does_not_end_a_refresh(tmp_path: Path) -> None:
    async def run() -> None:
        # A provider behind a proxy that closes every connection.
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        issuer = {
            "client-id": "c", "client-secret": "s", "refresh-token": "r", "idp-issuer-url": f"http://127.0.0.1:{port}",
        }  # fmt: skip
        path = kubeconfig(tmp_path, {"auth-provider": {"name": "oidc", "config": issuer}})
        async with server:
            with pytest.raises(InputError, match="kubeconfig: expected a context with a cluster and a user, got"):
                await open_access(path)
            access = ClusterAccess(str(path), None)
            assert await access.refresh(time.monotonic()) is False

    asyncio.run(run())


def test_a_token_file_may_end_in_a_line_feed(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    assert opened(kubeconfig(tmp_path, {"tokenFile": "token"}))[1] == "Bearer secret"


def test_the_token_of_a_pod_is_used_further_if_its_file_can_t_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(configuration: object) -> None:
        raise ConfigException("Token file exists but empty.")

    async def run() -> str | None:
        access = await open_access(kubeconfig(tmp_path, {"token": "secret"}))
        monkeypatch.setattr(access._configuration, "refresh_api_key_hook", unreadable)
        return await access.authorization()

    assert asyncio.run(run()) == "Bearer secret"


@pytest.mark.parametrize(
    ("context", "want"),
    [
        pytest.param(
            "prdo", r"kubeconfig --context: expected one of a, prod, got 'prdo'; try 'prod'$", id="a similar name"
        ),
        pytest.param("nothing", r"kubeconfig --context: expected one of a, prod, got 'nothing'$", id="no similar name"),
    ],
)
def test_the_error_for_a_missing_context_lists_the_existing_ones(context: str, want: str, tmp_path: Path) -> None:
    clusters = "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n"
    contexts = "contexts: [{name: a, context: {cluster: a, user: a}}, {name: prod, context: {cluster: a, user: a}}]\n"
    path = _text(tmp_path, f"current-context: a\n{clusters}{contexts}")
    with pytest.raises(InputError, match=want):
        opened(path, context)


@pytest.mark.parametrize("option", ["--from", "--kubeconfig"])
def test_a_missing_kubeconfig_error_names_the_option_of_the_command(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InputError, match=rf"expected {option} FILE, \$KUBECONFIG or ~/.kube/config"):
        asyncio.run(open_access(option=option))
