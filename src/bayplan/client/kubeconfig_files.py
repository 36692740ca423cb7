"""Kubeconfig files, merged by kubectl's rules: the first file that sets a value wins, and paths are relative to their file.

The official client for Python, which reads the result, has different rules for several files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document

_LISTS = {"clusters": "cluster", "contexts": "context", "users": "user"}
_NAMES = ("cluster", "user")
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_NO_USER = "bayplan.io/no-user"


def read_kubeconfig(paths: str) -> Document:
    """Return the merged contents of kubeconfig files, with absolute paths.

    Contexts without a user get one without credentials, names become strings, and empty values are omitted.

    Args:
        paths: the files, separated as in ``KUBECONFIG``; those that don't exist are ignored.

    Raises:
        InputError: a file is not a kubeconfig.
        OSError, UnicodeDecodeError, yaml.YAMLError: a file can't be read.
    """
    named: dict[str, dict[str, Document]] = {name: {} for name in _LISTS}
    current = ""
    for path in _existing(paths):
        document = _read(path)
        current = current or _name(document.get("current-context"))
        for name, member in _LISTS.items():
            for entry in _entries(document, name, path):
                value = entry.get(member)
                found = _without_empty(value if isinstance(value, dict) else {})
                _make_absolute(found, path.parent)
                if member == "context":
                    found.update({each: _name(found[each]) for each in _NAMES if each in found})
                key = _name(entry.get("name"))
                named[name].setdefault(key, {"name": key, member: found})
    named["users"][_NO_USER] = {"name": _NO_USER, "user": {}}
    for context in named["contexts"].values():
        properties = context["context"]
        assert isinstance(properties, dict)
        properties.setdefault("user", _NO_USER)
    merged: Document = {name: list(entries.values()) for name, entries in named.items()}
    return {**merged, "current-context": current} if current else merged


def _existing(paths: str) -> list[Path]:
    found = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    return [path for path in found if path.exists()]


def _read(path: Path) -> Document:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InputError("kubeconfig", where=str(path), got=type(document).__name__, wanted="an object")
    return document


def _entries(document: Document, name: str, path: Path) -> list[Document]:
    entries = document.get(name) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(name, where=str(path), got=type(entries).__name__, wanted="a list of objects with names")
    return entries


def _name(value: object) -> str:
    """Return a name as a string: YAML reads names such as 1 as numbers."""
    return "" if value is None else str(value)


def _without_empty(value: Mapping[str, object]) -> Document:
    return {key: each for key, each in value.items() if each is not None and each != ""}


def _make_absolute(value: Document, folder: Path) -> None:
    """Resolve the paths in a cluster or user. A plugin's command is a path only if it contains a separator."""
    for name in _PATHS:
        path = value.get(name)
        if isinstance(path, str):
            value[name] = str(folder.absolute() / path)
    plugin = value.get("exec")
    command = plugin.get("command") if isinstance(plugin, dict) else None
    if isinstance(plugin, dict) and isinstance(command, str) and os.sep in command:
        value["exec"] = {**plugin, "command": os.path.normpath(folder.absolute() / command)}
