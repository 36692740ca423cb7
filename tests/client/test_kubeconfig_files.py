"""Several kubeconfig files are merged as by kubectl, and their paths are relative to each file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import yaml

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document
from bayplan.client.cluster_access import open_access
from tests.client.test_cluster_access import answer, certificate, plugin


def write(path: Path, **lists: Document | str) -> Path:
    """Write a kubeconfig: lists by name, and the current context."""
    members = {"clusters": "cluster", "contexts": "context", "users": "user"}
    document: Document = {"kind": "Config"}
    for name, value in lists.items():
        if isinstance(value, str):
            document["current-context"] = value
        else:
            document[name] = [{"name": each, members[name]: content} for each, content in value.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def opened(monkeypatch: pytest.MonkeyPatch, *paths: Path, context: str | None = None) -> tuple[str, str | None]:
    """Return the address and the authorization of the cluster that these files in ``KUBECONFIG`` select."""

    async def run() -> tuple[str, str | None]:
        access = await open_access(None, context)
        return access.url, await access.authorization()

    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    return asyncio.run(run())


def test_the_first_file_that_sets_a_value_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context: Document = {"x": {"cluster": "c", "user": "u"}, "y": {"cluster": "d"}}
    first = write(tmp_path / "a", clusters={"c": {"server": "http://first:1"}}, contexts=context, current="x")
    second = write(
        tmp_path / "b",
        clusters={"c": {"server": "http://second:1"}, "d": {"server": "http://d:1"}},
        users={"u": {"token": "t"}},
        current="y",
    )
    empty = tmp_path / "empty"
    empty.write_text("")
    blank = write(tmp_path / "blank", current="")
    assert opened(monkeypatch, first, second) == ("http://first:1", "Bearer t")
    assert opened(monkeypatch, second, first) == ("http://d:1", None)
    assert opened(monkeypatch, empty, blank, tmp_path / "missing", first, second) == ("http://first:1", "Bearer t")


def test_paths_are_relative_to_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, third = tmp_path / "other", tmp_path / "third"
    for folder in (other, third):
        folder.mkdir()
    certificate(other)
    plugin(other, answer(token="from a plugin"))
    (third / "token").write_text("from a file")
    kind = "client.authentication.k8s.io/v1"
    cluster = {"server": "https://localhost:1", "insecure-skip-tls-verify": True, "certificate-authority": ""}
    contexts: Document = {name: {"cluster": "c", "user": name} for name in ("certificate", "plugin", "file")}
    files = (
        write(tmp_path / "config", clusters={"c": cluster}, contexts=contexts, current="file"),
        write(
            other / "config",
            users={
                "certificate": {"client-certificate": "cert.pem", "client-key": "key.pem"},
                "plugin": {"exec": {"apiVersion": kind, "command": "./plugin.py", "interactiveMode": "Never"}},
            },
        ),
        write(third / "config", users={"file": {"tokenFile": "token", "token": None}}),
    )
    for name, want in (("certificate", None), ("plugin", "Bearer from a plugin"), ("file", "Bearer from a file")):
        assert opened(monkeypatch, *files, context=name) == ("https://localhost:1", want)


def test_a_context_needs_no_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"server": "https://localhost:1", "insecure-skip-tls-verify": True}
    path = write(tmp_path / "a", clusters={"c": cluster}, contexts={"x": {"cluster": "c", "user": ""}}, current="x")
    assert opened(monkeypatch, path) == ("https://localhost:1", None)


def test_names_may_be_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_text("""
current-context: 0
contexts: [{name: 0, context: {cluster: 1, user: 2}}]
clusters: [{name: 1, cluster: {server: "http://localhost:1"}}]
users: [{name: 2, user: {token: t}}]
""")
    assert opened(monkeypatch, path) == ("http://localhost:1", "Bearer t")
    path.write_text(path.read_text().replace("name: 2", "name: 3"))
    with pytest.raises(InputError, match="got the user '2'"):
        opened(monkeypatch, path)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("[]", "kubeconfig: expected an object, got list", id="a list"),
        pytest.param("users: [a]", "users: expected a list of objects with names, got list", id="users without names"),
        pytest.param(
            "{current-context: x, contexts: [{name: x, context: {user: u}}]}",
            "kubeconfig: expected a user that exists, got the user 'u'",
            id="a missing user",
        ),
    ],
)
def test_an_invalid_file_is_refused(text: str, want: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        opened(monkeypatch, path)
    assert want in str(raised.value)
