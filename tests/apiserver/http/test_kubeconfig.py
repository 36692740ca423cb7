"""The kubeconfig that a server writes: other entries stay, links are never followed, only regular files are replaced."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.apiserver.http.kubeconfig import kubeconfig_entry, write_kubeconfig
from bayplan.base.errors import InputError
from bayplan.cli.main import main

ENTRY = kubeconfig_entry("http://127.0.0.1:1", token="ours")
OTHERS = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: QUJD
    insecure-skip-tls-verify: true
    server: https://prod.example:6443
  name: prod
contexts:
- context: {cluster: prod, namespace: shop, user: admin}
  name: prod
current-context: prod
kind: Config
preferences: {colors: true}
users:
- name: admin
  user:
    token: 2024-01-01T00:00:00Z
- name: number
  user: {token: '12:30:45', username: "007"}
"""


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_a_new_kubeconfig_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "config"
    assert write_kubeconfig(path, ENTRY) is False
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read(path) == ENTRY
    assert os.listdir(tmp_path) == ["config"]


def test_writing_preserves_entries_of_other_clusters_and_the_file_mode(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(OTHERS)
    path.chmod(0o640)
    assert write_kubeconfig(path, ENTRY) is True
    found = read(path)
    assert [each["name"] for each in found["contexts"]] == ["prod", "bayplan"]
    assert [each["name"] for each in found["users"]] == ["admin", "number", "bayplan"]
    assert found["clusters"][0] == {
        "cluster": {
            "certificate-authority-data": "QUJD",
            "insecure-skip-tls-verify": True,
            "server": "https://prod.example:6443",
        },
        "name": "prod",
    }
    # A token that YAML 1.1 would read as a time must stay a string for kubectl.
    assert found["users"][0]["user"] == {"token": "2024-01-01T00:00:00Z"}
    assert found["users"][1]["user"] == {"token": "12:30:45", "username": "007"}
    assert found["preferences"] == {"colors": True}
    assert found["current-context"] == "bayplan"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_existing_bayplan_entries_are_replaced_instead_of_duplicated(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(OTHERS)
    write_kubeconfig(path, ENTRY)
    write_kubeconfig(path, kubeconfig_entry("http://127.0.0.1:2"))
    found = read(path)
    assert [each["cluster"]["server"] for each in found["clusters"]] == [
        "https://prod.example:6443",
        "http://127.0.0.1:2",
    ]
    assert found["users"][-1] == {"name": "bayplan", "user": {}}


def test_an_empty_file_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.touch(0o600)
    assert write_kubeconfig(path, ENTRY) is False
    assert read(path) == ENTRY


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("apiVersion: v1\nkind: Pod\n", id="another kind"),
        pytest.param("[1, 2]", id="a list"),
        pytest.param("name: x\n", id="YAML that is not a kubeconfig"),
        pytest.param("a: [", id="broken YAML"),
        pytest.param("kind: Config\nusers: 7\n", id="users that are a number"),
        pytest.param("\0\1\2", id="binary data"),
    ],
)
def test_a_file_that_is_not_a_kubeconfig_is_refused_and_unchanged(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(InputError, match="expected a"):
        write_kubeconfig(path, ENTRY)
    assert path.read_text() == text
    assert os.listdir(tmp_path) == ["config"]


def test_a_kubeconfig_that_is_not_utf_8_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "config"
    content = OTHERS.encode() + b"# caf\xe9\nextra: caf\xe9\n"
    path.write_bytes(content)
    with pytest.raises(InputError, match="got text that is not UTF-8"):
        write_kubeconfig(path, ENTRY)
    assert path.read_bytes() == content


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_symbolic_links_are_refused(there: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "config"
    if there:
        target.write_text(OTHERS)
    link.symlink_to(target)
    with pytest.raises(InputError, match="got a symbolic link"):
        write_kubeconfig(link, ENTRY)
    assert link.is_symlink()
    assert target.exists() == there
    assert not there or target.read_text() == OTHERS


def test_links_planted_at_temporary_or_lock_names_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep")
    for name in (".config.partial", ".config", ".config.tmp"):
        (tmp_path / name).symlink_to(victim)
    write_kubeconfig(tmp_path / "config", ENTRY)
    (tmp_path / "config.lock").symlink_to(victim)
    with pytest.raises(InputError, match="no lock of another program"):
        write_kubeconfig(tmp_path / "config", ENTRY, lock_timeout_s=0.1)
    assert victim.read_text() == "keep"


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_a_target_that_is_not_a_regular_file_is_refused_and_unchanged(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # Another device with the behaviour of /dev/zero.
        except PermissionError:
            path = Path("/dev/zero")
    before = path.lstat()
    with pytest.raises(InputError, match="got something other than a regular file"):
        write_kubeconfig(path, ENTRY)
    after = path.lstat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)


def test_writing_to_the_null_device_does_nothing(tmp_path: Path) -> None:
    null = tmp_path / "null"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.stat(os.devnull).st_rdev)
    except PermissionError:
        null = Path(os.devnull)
    before = null.lstat()
    assert write_kubeconfig(null, ENTRY) is False
    assert (null.lstat().st_ino, null.lstat().st_mode) == (before.st_ino, before.st_mode)


def test_writing_waits_until_the_lock_is_released(tmp_path: Path) -> None:
    path, lock = tmp_path / "config", tmp_path / "config.lock"
    lock.touch()
    writer = threading.Thread(target=write_kubeconfig, args=(path, ENTRY), kwargs={"lock_timeout_s": 3600})
    writer.start()
    writer.join(0.1)
    assert writer.is_alive()
    assert not path.exists()
    lock.unlink()
    writer.join(30)
    assert not writer.is_alive()
    assert path.exists()
    assert not lock.exists()


def test_a_lock_timeout_error_names_the_lock_file(tmp_path: Path) -> None:
    (tmp_path / "config.lock").touch()
    with pytest.raises(InputError, match=r"config\.lock"):
        write_kubeconfig(tmp_path / "config", ENTRY, lock_timeout_s=0.1)
    assert sorted(os.listdir(tmp_path)) == ["config.lock"]


def test_up_refuses_a_symbolic_link_before_serving(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = tmp_path / "config"
    link.symlink_to(tmp_path / "target")
    assert main(["up", "--port", "0", "--once", "--write-kubeconfig", str(link)]) == 2
    assert "--write-kubeconfig" in capsys.readouterr().err


def test_a_kubeconfig_for_plain_http_is_accepted_by_the_javascript_client() -> None:
    """@kubernetes/client-node refuses plain HTTP unless the kubeconfig says that TLS is not verified."""
    plain = {"server": "http://127.0.0.1:1", "insecure-skip-tls-verify": True}
    assert kubeconfig_entry("http://127.0.0.1:1")["clusters"][0]["cluster"] == plain
    encrypted = {"server": "https://127.0.0.1:1", "certificate-authority": "/ca.pem"}
    assert (
        kubeconfig_entry("https://127.0.0.1:1", certificate_authority="/ca.pem")["clusters"][0]["cluster"] == encrypted
    )
