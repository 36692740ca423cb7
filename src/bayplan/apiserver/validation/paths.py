"""Checks of file paths in volumes."""

from __future__ import annotations

from bayplan.apiserver.model.errors import invalid_value
from bayplan.apiserver.validation.engine import Causes
from bayplan.objects.selectors import quote


def no_backsteps(found: object, path: str, out: Causes) -> None:
    """Report a path with a segment ``..``."""
    if ".." in str(found).split("/"):
        out.append(invalid_value(path, quote(str(found)), "must not contain '..'"))


def descending_path(found: object, path: str, out: Causes) -> None:
    """Check a relative path without segments ``..``."""
    if str(found).startswith("/"):
        out.append(invalid_value(path, quote(str(found)), "must be a relative path"))
    no_backsteps(found, path, out)


def unreserved_path(found: object, path: str, out: Causes) -> None:
    """Check a relative path that does not start with two dots, because the kubelet reserves such names."""
    descending_path(found, path, out)
    text = str(found)
    if text.startswith("..") and not text.startswith("../"):
        out.append(invalid_value(path, quote(text), "must not start with '..'"))
