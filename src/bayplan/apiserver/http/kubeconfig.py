"""Writing of kubeconfig files: create a file, or add an entry to an existing file."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from bayplan.base.errors import InputError
from bayplan.formats.yaml_text import YamlError, parse

CONTEXT = "bayplan"
"""Name of the entry's cluster, user and context."""

LOCK_TIMEOUT_S = 5.0
_LOCK_POLL_S = 0.05
_NEW_MODE = 0o600
_OPTION = "--write-kubeconfig"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def kubeconfig_entry(server: str, *, token: str = "", certificate_authority: str = "") -> dict[str, Any]:
    """Return a kubeconfig with one cluster, one user and one context, all named `CONTEXT`.

    Args:
        server: the URL of the API.
        token: the token of the user, or empty.
        certificate_authority: the path of the CA's PEM file, or empty.
    """
    cluster: dict[str, Any] = {"server": server}
    if server.startswith("http:"):
        cluster["insecure-skip-tls-verify"] = True  # without it, the JavaScript client refuses plain HTTP
    if certificate_authority:
        cluster["certificate-authority"] = certificate_authority
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {"token": token} if token else {}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "current-context": CONTEXT,
    }


def write_kubeconfig(path: Path, entry: Mapping[str, Any], *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> bool:
    """Write a kubeconfig, or merge an entry into an existing file, as kind does.

    Other clusters, users and contexts do not change, nor does the mode of the file. A new file has mode 0600. The file
    is replaced atomically, and links are never followed. If the path is the null device, nothing is written.

    Args:
        path: the path of the file.
        entry: see `kubeconfig_entry`.
        lock_timeout_s: how many seconds to wait for another process's lock.

    Returns:
        Whether the file has other entries, too.

    Raises:
        InputError: the path is a link, not a regular file or not a kubeconfig; it is locked; or it cannot be written.
    """
    if _is_null_device(path):
        return False
    try:
        with _locked(path, lock_timeout_s):
            existing = _read(path)
            document = _merge(_parse(existing.text, path), entry) if existing is not None else dict(entry)
            _replace(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True), existing)
    except OSError as problem:
        got = f"{problem.strerror or problem}".lower()
        raise InputError(_OPTION, where=str(path), got=got, wanted="a writable file") from None
    return any(len(document[field]) > 1 for field in ("clusters", "users", "contexts"))


class _Existing:
    def __init__(self, text: str, status: os.stat_result) -> None:
        self.text = text
        self.mode = stat.S_IMODE(status.st_mode)
        self.owner = (status.st_uid, status.st_gid)


def _is_null_device(path: Path) -> bool:
    try:
        return path.lstat().st_rdev == os.stat(os.devnull).st_rdev and stat.S_ISCHR(path.lstat().st_mode)
    except OSError:
        return False


@contextmanager
def _locked(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock file that kubectl and kind use: creating it takes the lock, removing it releases the lock."""
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            os.close(os.open(lock, _CREATE, 0))
            break
        except FileExistsError:
            if time.monotonic() >= deadline:
                hint = f"again, or remove {lock} if no other program is writing the file"
                raise InputError(
                    _OPTION,
                    where=str(path),
                    got=f"the lock file {lock}",
                    wanted="no lock of another program",
                    hint=hint,
                ) from None
            time.sleep(_LOCK_POLL_S)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(lock)


def _read(path: Path) -> _Existing | None:
    """Return the existing file, or None if there is none.

    The checks use the open descriptor, because another process could replace the file in between.
    """
    wanted = "a new file, or a kubeconfig"
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        return None
    except OSError:
        if path.is_symlink():
            hint = f"{os.path.realpath(path)}, if that is the file you mean"
            raise InputError(_OPTION, where=str(path), got="a symbolic link", wanted=wanted, hint=hint) from None
        if path.exists() and not path.is_file():
            raise InputError(
                _OPTION, where=str(path), got="something other than a regular file", wanted=wanted
            ) from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise InputError(_OPTION, where=str(path), got="something other than a regular file", wanted=wanted)
    with open(descriptor, encoding="utf-8") as file:
        try:
            return _Existing(file.read(), status)
        except UnicodeDecodeError:
            hint = "another file"
            raise InputError(_OPTION, where=str(path), got="text that is not UTF-8", wanted=wanted, hint=hint) from None


def _parse(text: str, path: Path) -> dict[str, Any]:
    """Return the kubeconfig in an existing file; an empty document if the file is empty.

    Raises:
        InputError: the text is not a kubeconfig.
    """
    hint = "another file"
    try:
        documents = [each.value for each in parse(text) if each.value is not None]
    except YamlError as problem:
        where = f"{path}:{problem.line + 1}"
        raise InputError(_OPTION, where=where, got=problem.problem, wanted="a kubeconfig", hint=hint) from None
    if not documents:
        return {}
    document = documents[0]
    if len(documents) > 1 or not isinstance(document, dict) or document.get("kind", "Config") != "Config":
        if len(documents) > 1:
            got = "several documents"
        else:
            got = f"kind {document['kind']}" if isinstance(document, dict) else "no object"
        raise InputError(_OPTION, where=str(path), got=got, wanted="a kubeconfig", hint=hint)
    for field in ("clusters", "users", "contexts"):
        entries = document.get(field) or []
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise InputError(
                f"{_OPTION} {field}", where=str(path), got="another type", wanted="a list of objects", hint=hint
            )
    if not document.keys() & {"kind", "clusters", "users", "contexts"}:
        got = "no clusters, users or contexts"
        raise InputError(_OPTION, where=str(path), got=got, wanted="a kubeconfig", hint=hint)
    return document


def _merge(document: dict[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kubeconfig with the parts of the entry added; they replace parts with the same names."""
    merged = {"apiVersion": "v1", "kind": "Config", **document}
    for field in ("clusters", "users", "contexts"):
        entries = list(merged.get(field) or [])
        for ours in entry[field]:
            same = [index for index, each in enumerate(entries) if each.get("name") == ours["name"]]
            if same:
                entries[same[0]] = ours
            else:
                entries.append(ours)
        merged[field] = entries
    merged["current-context"] = entry["current-context"]
    return merged


def _replace(path: Path, text: str, existing: _Existing | None) -> None:
    """Replace a file atomically, through a temporary file with an unpredictable name."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(partial, _CREATE, _NEW_MODE)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            if existing is not None:
                if existing.owner != (os.geteuid(), os.getegid()):
                    with suppress(PermissionError):
                        os.fchown(descriptor, *existing.owner)
                os.fchmod(descriptor, existing.mode)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.replace(partial, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise
